"""Open the tools of a turn: those of its agent, the remote tools that it has pinned, and its client's."""

from collections.abc import Sequence

from fermata.agents.approval_policy import list_folded_names
from fermata.aws.resources import Resources
from fermata.domain.tools import ClientTool
from fermata.tools.tool import Access, Execution, JsonInput, Tool
from fermata.tools.toolset import Toolset
from fermata.turns.turn import Turn
from fermata.turns.turn_agent import open_turn_agent

CLIENT_TOOLSET = "client"
CLIENT_TOOL_SECONDS = 24 * 3600
"""Such a tool may ask the user. Nothing runs meanwhile, and the user's next prompt ends the wait (decision 0380)."""
_TOOLSET_CACHE_SECONDS = 3600


def open_turn_toolset(resources: Resources, turn: Turn) -> Toolset:
    """Return the tools of a turn. With remote tools, a process builds them once for the same versions.

    Args:
        resources: The settings table, and the cache of the process.
        turn: The turn.
    """
    return add_client_tools(_open_service_tools(resources, turn), turn.client_tools)


def add_client_tools(toolset: Toolset, client_tools: Sequence[ClientTool]) -> Toolset:
    """Return the tools of a turn with those that its client has declared. A name that another tool has is left out.

    Args:
        toolset: The other tools of the turn.
        client_tools: As the turn has pinned them.
    """
    if not client_tools:
        return toolset
    used = set().union(*map(list_folded_names, toolset.tools))
    added: dict[str, Tool] = {}
    for declared in client_tools:
        tool = _build_client_tool(declared)
        if used.isdisjoint(names := list_folded_names(tool)):
            added[tool.name] = tool
            used |= names
    return Toolset(toolset.name, (*toolset.tools, *added.values()))


def _build_client_tool(declared: ClientTool) -> Tool:
    return Tool(
        name=declared.name,
        toolset=CLIENT_TOOLSET,
        description=declared.description,
        execution=Execution.BROWSER,
        access=Access.READ,
        input_model=JsonInput,
        declared_schema={"type": "object", "properties": {}} | declared.input_schema,
        timeout_seconds=CLIENT_TOOL_SECONDS,
        reads_outside_content=True,
    )


def _open_service_tools(resources: Resources, turn: Turn) -> Toolset:
    agent = open_turn_agent(resources, turn)
    if agent.connection:
        from fermata.agents.definitions.configured_agent import ConfiguredAgent
        from fermata.turns.agent_tools import build_agent_toolset  # most turns have a built-in agent

        assert isinstance(agent, ConfiguredAgent)
        return build_agent_toolset(resources, turn, agent)
    toolset = agent.get_toolset(turn.generation)
    if not turn.remote_tools:
        return toolset
    from fermata.remote_tools.pinned_tools import add_remote_tools, load_definitions  # few turns have remote tools

    def build() -> Toolset:
        return add_remote_tools(toolset, load_definitions(resources, turn.tenant, turn.remote_tools))

    key = ("toolset", turn.tenant, turn.agent, turn.scope, turn.generation, turn.remote_tools)
    return resources.cache.get_or_load(key, _TOOLSET_CACHE_SECONDS, build)
