"""Put together the tools of a turn of a tenant's agent, from what its definition names (decision 0368).

The order decides which tool has a name that two of them want: toolsets of built-in agents, endpoints, MCP servers,
sub-agents, files, last the state of the page.
"""

from collections.abc import Iterable

from fermata.agents.approval_policy import list_folded_names
from fermata.agents.definitions.configured_agent import ConfiguredAgent
from fermata.agents.tool_sources.endpoint_tools import list_endpoint_tools
from fermata.agents.tool_sources.file_tools import list_file_tools
from fermata.agents.tool_sources.mcp_tools import list_mcp_tools
from fermata.agents.tool_sources.page_state import answer_at_service, build_update_page_state_tool
from fermata.agents.tool_sources.sub_agents import list_sub_agent_tools
from fermata.aws.resources import Resources
from fermata.tools.tool import Tool
from fermata.tools.toolset import Toolset
from fermata.turns.mcp_pin import load_mcp_pin
from fermata.turns.turn import Turn


def build_agent_toolset(resources: Resources, turn: Turn, agent: ConfiguredAgent) -> Toolset:
    """Return the tools of a turn.

    Args:
        resources: The bucket with the files of agents, and the cache of the process.
        turn: The turn, with what its client has said about the page.
        agent: The agent that it has pinned.
    """
    sources = (
        agent.get_toolset(turn.generation).tools,
        list_endpoint_tools(agent.definition, turn.tenant),
        list_mcp_tools(load_mcp_pin(resources, turn), [one.confirm for one in agent.definition.mcp], turn.tenant),
        list_sub_agent_tools(agent.definition),
        list_file_tools(resources, agent.definition),
        _list_page_tools(turn),
    )
    return Toolset(turn.scope, tuple(_keep_first_names(tool for source in sources for tool in source)))


def _list_page_tools(turn: Turn) -> tuple[Tool, ...]:
    if not turn.has_browser_tools:
        return ()
    context = turn.agent_context
    tool = build_update_page_state_tool(context.shared_state, is_read_only=context.shared_state_read_only)
    if tool and turn.protocol == "agui":
        return (answer_at_service(tool, context.shared_state or ()),)
    return (tool,) if tool else ()


def _keep_first_names(tools: Iterable[Tool]) -> Iterable[Tool]:
    used: set[str] = set()
    for tool in tools:
        if used.isdisjoint(names := list_folded_names(tool)):
            used |= names
            yield tool
