"""Offer the tool by which a model fills in fields of the page that its user sees (decision 0370).

The client carries it out. It takes only the keys that it has exposed, and answers which it has written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fermata.domain.tools import ToolOutput
from fermata.tools.tool import Access, Execution, JsonInput, Tool, ToolContext

PAGE_TOOLSET = "page"
UPDATE_PAGE_STATE_NAME = "update-page-state"
_LEAD = (
    "Updates fields of the page that the user is looking at. Only the fields listed here can be written; everything "
    "else is ignored. The values were read when the user sent the message."
)
UPDATE_PAGE_STATE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "description": "The fields to update.",
    "properties": {
        "updates": {
            "type": "object",
            "additionalProperties": True,
            "description": "The new value of each field, by the key of the field.",
        }
    },
    "required": ["updates"],
}


def build_update_page_state_tool(shared_state: Any, *, is_read_only: bool = False) -> Tool | None:
    """Return the tool for the fields of a page; None without any field, or if the page can only be read.

    It counts as a read: what it fills in is stored nowhere until the user of the page sends it.

    Args:
        shared_state: What the client exposes of its page, as it was when the prompt was sent.
        is_read_only: Whether the client takes no updates.
    """
    if is_read_only or not isinstance(shared_state, dict) or not shared_state:
        return None
    return Tool(
        name=UPDATE_PAGE_STATE_NAME,
        toolset=PAGE_TOOLSET,
        description="\n".join([_LEAD, *(f"- {key} ({describe_kind(value)})" for key, value in shared_state.items())]),
        execution=Execution.BROWSER,
        access=Access.READ,
        input_model=JsonInput,
        declared_schema=UPDATE_PAGE_STATE_SCHEMA,
        idempotent=True,
    )


def answer_at_service(tool: Tool, exposed: Iterable[str]) -> Tool:
    """Return the tool for clients that are told which state has changed: the service answers its calls (decision 0382).

    Args:
        tool: As clients carry it out.
        exposed: The keys that the client has exposed.
    """
    keys = tuple(exposed)

    def answer(tool_input: JsonInput, _context: ToolContext) -> ToolOutput:
        updates = tool_input.arguments.get("updates")
        return ToolOutput.success(answer_page_state_updates(keys, updates if isinstance(updates, dict) else {}))

    return replace(tool, execution=Execution.SERVER, handler=answer, instant=True)


def describe_kind(value: Any) -> str:
    """Return what kind of JSON value this is."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case dict():
            return "object"
        case _:
            return "number"


def answer_page_state_updates(exposed: Iterable[str], updates: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a client answers: which keys it has written, and which it has ignored.

    Args:
        exposed: The keys that the client has exposed.
        updates: What the model wants to write, by key.
    """
    known = set(exposed)
    written = [key for key in updates if key in known]
    return {"ok": True, "written": written, "ignored": [key for key in updates if key not in known]}
