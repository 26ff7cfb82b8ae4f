"""List what an MCP client may call: the tools of the editors, and the agents of the workspace (decision 0378)."""

from collections.abc import Iterator
from typing import Any

from fermata.agents.definitions.agent_list import may_ask, read_agent_list
from fermata.agents.registry import find_agent, get_toolset
from fermata.aws.resources import Resources
from fermata.content.space_access import may_read_content
from fermata.domain.agent_ids import make_agent_scope
from fermata.domain.caller import Caller, Capability
from fermata.domain.dialect import NEWEST_GENERATION, EditorGeneration
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.tool import Access, Execution, Tool
from fermata.tools.tool_names import get_prefixed_name
from fermata.turns.direct_tools import DirectTool, list_direct_tools

EDITOR_TOOL_SCOPES = ("site", "content")
CONTENT_AGENT_SCOPES = ("cms", "studio")
"""Built-in agents that work in a content space, and need no editor."""
AGENT_TOOL_PREFIX = "ask_"
OPEN_EDITOR_NOTE = "Runs in the open editor: the user has to have it open in a browser."
AGENT_TOOL_SCHEMA = {
    "type": "object",
    "properties": {"prompt": {"type": "string", "minLength": 1, "description": "What the agent has to do."}},
    "required": ["prompt"],
}


@value_dataclass(frozen=True)
class EditorTool:
    """A tool of an editor, and the scope that it belongs to."""

    scope: str
    tool: Tool


def list_mcp_tool_views(resources: Resources, caller: Caller, space: str = "") -> list[dict[str, Any]]:
    """Return the tools as the protocol describes them, those of the editors first.

    Args:
        resources: Of the process.
        caller: Who may call them.
        space: The content space that the client or its connector names.
    """
    editor_tools = [_describe_tool(tool) for scope in EDITOR_TOOL_SCOPES for tool in _list_editor_tools(caller, scope)]
    direct_tools = [_describe_tool(one.tool) for one in _list_direct_tools(resources, caller)]
    return editor_tools + direct_tools + _describe_agents(resources, caller, space)


def find_editor_tool(caller: Caller, name: str, generation: EditorGeneration = NEWEST_GENERATION) -> EditorTool | None:
    """Return the tool of an editor that the caller may call; None for any other name.

    Args:
        caller: Who calls.
        name: The name, as it was listed.
        generation: The generation of editors whose schemas the tool has.
    """
    for scope in EDITOR_TOOL_SCOPES:
        for tool in _list_editor_tools(caller, scope, generation):
            if name == get_prefixed_name(tool):
                return EditorTool(scope, tool)
    return None


def find_direct_tool(resources: Resources, caller: Caller, name: str) -> DirectTool | None:
    """Return the tool with this name that a turn calls without a model; None for any other name."""
    return next((one for one in _list_direct_tools(resources, caller) if get_prefixed_name(one.tool) == name), None)


def _list_direct_tools(resources: Resources, caller: Caller) -> Iterator[DirectTool]:
    """Yield these tools without those that the endpoint carries out itself."""
    for one in list_direct_tools(resources, caller, EDITOR_TOOL_SCOPES):
        if one.is_remote or not _can_be_called(one.scope, one.tool):
            yield one


def find_agent_of_tool(resources: Resources, caller: Caller, name: str, space: str = "") -> str:
    """Return the scope of the agent that a tool asks; empty if there is none that the caller may ask.

    Args:
        resources: Of the process.
        caller: Who asks.
        name: The name, as it was listed.
        space: The content space that the client or its connector names.
    """
    agent_id = name.removeprefix(AGENT_TOOL_PREFIX)
    if agent_id == name:
        return ""
    if agent_id in _list_agents(resources, caller):
        return make_agent_scope(agent_id)
    return agent_id if agent_id in _list_content_agents(caller, space) else ""


def _list_editor_tools(
    caller: Caller, scope: str, generation: EditorGeneration = NEWEST_GENERATION
) -> tuple[Tool, ...]:
    if not caller.allows_scope(scope):
        return ()
    toolset = get_toolset(scope, generation)
    permitted = toolset.list_permitted_tools(caller.capabilities, scope, tenant=caller.tenant)
    return tuple(tool for tool in permitted if _can_be_called(scope, tool))


def _can_be_called(scope: str, tool: Tool) -> bool:
    """Return whether the endpoint can carry a tool out: it asks no content system, whose secrets only rounds open."""
    if tool.execution is Execution.SERVER:
        return tool.works_without_host is None or scope == "site"
    return tool.execution is Execution.BROWSER


def _describe_tool(tool: Tool) -> dict[str, Any]:
    note = f" {OPEN_EDITOR_NOTE}" if tool.execution is Execution.BROWSER else ""
    return {
        "name": get_prefixed_name(tool),
        "description": tool.description + note,
        "inputSchema": {"type": "object", "properties": {}} | tool.input_schema,
        "annotations": {
            "readOnlyHint": tool.access is Access.READ,
            "destructiveHint": tool.access is Access.WRITE,
            "idempotentHint": tool.idempotent,
            "openWorldHint": tool.reads_outside_content,
        },
    }


def _list_agents(resources: Resources, caller: Caller) -> dict[str, str]:
    """Return the descriptions of the agents that the caller may ask, by their ids. Only those with one are shown."""
    if not caller.has_capability(Capability.CHAT):
        return {}
    agents = read_agent_list(resources, caller.tenant).agents
    return {
        agent_id: entry.description
        for agent_id, entry in sorted(agents.items())
        if entry.description and may_ask(entry, caller) and caller.allows_scope(make_agent_scope(agent_id))
    }


def _list_content_agents(caller: Caller, space: str) -> dict[str, str]:
    """Return the descriptions of the built-in agents that work in a content space, if one is named, by their scopes."""
    if not space or not caller.has_capability(Capability.CHAT) or not may_read_content(caller):
        return {}
    agents = {scope: find_agent(scope) for scope in CONTENT_AGENT_SCOPES if caller.allows_scope(scope)}
    return {scope: f"{agent.description} Works in {space}." for scope, agent in agents.items() if agent}


def _describe_agents(resources: Resources, caller: Caller, space: str) -> list[dict[str, Any]]:
    return [
        {"name": AGENT_TOOL_PREFIX + agent_id, "description": description, "inputSchema": AGENT_TOOL_SCHEMA}
        for agent_id, description in (_list_content_agents(caller, space) | _list_agents(resources, caller)).items()
    ]
