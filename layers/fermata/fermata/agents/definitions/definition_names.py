"""Know which ids and names definitions may use."""

import re

from fermata.domain.agent_ids import AGENT_ID_PATTERN, SCOPES

PLATFORM_TOOL_NAMES = ("update-page-state", "read-file", "list-files", "search-files", "stat-file", "find_tools")
RESERVED_KEYS = frozenset(
    {
        "__proto__",
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "prototype",
        "toLocaleString",
        "toString",
        "valueOf",
    }
)
"""Names that every JavaScript object answers to, so that a client could take them for something else."""
TOOL_NAME_PATTERN = "^[a-zA-Z0-9_-]{1,64}$"
ITEM_ID_PATTERN = "^[a-zA-Z0-9_-]+(?:/[a-zA-Z0-9_-]+)*$"
MAX_ITEM_ID_CHARS = 120
_TOOL_NAME = re.compile(TOOL_NAME_PATTERN.removesuffix("$") + r"\Z")
_ITEM_ID = re.compile(r"[a-zA-Z0-9_-]+(?:/[a-zA-Z0-9_-]+)*+")
_AGENT_ID = re.compile(AGENT_ID_PATTERN)


def find_agent_id_problem(agent_id: str) -> str:
    """Return what is wrong with the id of an agent; empty if nothing is."""
    if agent_id in RESERVED_KEYS:
        return f"The agent id {agent_id!r} is a reserved name."
    if agent_id in SCOPES:
        return f"The agent id {agent_id!r} is that of a built-in agent."
    if not _AGENT_ID.fullmatch(agent_id):
        return f"The agent id {agent_id!r} must match ^{AGENT_ID_PATTERN}$."
    return ""


def find_item_id_problem(kind: str, item_id: str) -> str:
    """Return what is wrong with the id of a connection or an endpoint; empty if nothing is.

    Args:
        kind: What it is the id of, for the message.
        item_id: The id.
    """
    if item_id in RESERVED_KEYS:
        return f"The {kind} id {item_id!r} is a reserved name."
    if len(item_id) > MAX_ITEM_ID_CHARS or not _ITEM_ID.fullmatch(item_id):
        return f"The {kind} id {item_id!r} must match {ITEM_ID_PATTERN}."
    return ""


def make_tool_name(endpoint_id: str) -> str:
    """Return the name of a tool whose definition gives none."""
    return endpoint_id.replace("/", "__")


def find_tool_name_problem(name: str) -> str:
    """Return what is wrong with the name of a tool; empty if nothing is."""
    if not _TOOL_NAME.match(name):
        return f"The tool name {name!r} must match {TOOL_NAME_PATTERN}."
    if name in RESERVED_KEYS:
        return f"The tool name {name!r} is a reserved name."
    if name in PLATFORM_TOOL_NAMES:
        return f"The tool name {name!r} is reserved: a tool of the platform has it."
    return ""
