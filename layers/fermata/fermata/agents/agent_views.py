"""Describe agents for the clients that list them."""

from typing import Any

from fermata.agents.agent import Agent
from fermata.agents.definitions.agent_list import (
    NO_AGENT_MESSAGE,
    AgentListEntry,
    find_entry_for_caller,
    may_ask,
    read_agent_list,
)
from fermata.agents.definitions.definition_store import load_definition
from fermata.agents.registry import find_agent, list_agents
from fermata.agents.tool_listing import describe_tools, list_tools
from fermata.agents.tool_sources.built_in_tools import build_shared_toolset
from fermata.aws.resources import Resources
from fermata.domain.agent_ids import make_agent_scope
from fermata.domain.caller import Caller
from fermata.domain.dialect import EditorGeneration
from fermata.domain.errors import NotFound
from fermata.tools.tool_names import ToolNaming


def list_agent_views(resources: Resources, caller: Caller) -> list[dict[str, Any]]:
    """Describe the agents that the caller may ask: the built-in ones, and those of the tenant.

    Args:
        resources: The settings table.
        caller: The user who asks.
    """
    built_in = [_summarize_agent(agent) for agent in list_agents() if caller.allows_scope(agent.id)]
    agents = sorted(read_agent_list(resources, caller.tenant).agents.items())
    return built_in + [_summarize_entry(*line) for line in agents if _may_see(caller, *line)]


def get_agent_view(
    resources: Resources, caller: Caller, agent_id: str, naming: ToolNaming, generation: EditorGeneration
) -> dict[str, Any]:
    """Describe an agent with the tools that a model is offered in the caller's turns.

    Args:
        resources: The settings table and the bucket.
        caller: The user who asks.
        agent_id: The agent's id, as the client sent it.
        naming: The variant of the tool names.
        generation: The generation of editors whose schemas the tools have.

    Raises:
        NotFound: There is no such agent, or the caller may not ask it, or its API key is not for it.
    """
    agent = find_agent(agent_id)
    if agent is None:
        return _get_view_of_tenant(resources, caller, agent_id, naming, generation)
    if not caller.allows_scope(agent.id):
        raise NotFound(NO_AGENT_MESSAGE)
    limits = {} if agent.max_rounds is None else {"maxRounds": agent.max_rounds}
    tools = list_tools(agent.id, caller.capabilities, naming, caller.tenant, generation)
    return _summarize_agent(agent) | limits | {"tools": tools}


def _get_view_of_tenant(
    resources: Resources, caller: Caller, agent_id: str, naming: ToolNaming, generation: EditorGeneration
) -> dict[str, Any]:
    entry = find_entry_for_caller(read_agent_list(resources, caller.tenant), caller, agent_id)
    if not _may_see(caller, agent_id, entry):
        raise NotFound(NO_AGENT_MESSAGE)
    definition = load_definition(resources, caller.tenant, f"{agent_id}@{entry.version}")
    settings = definition.parse_properties().settings
    limits = {} if settings.max_steps is None else {"maxRounds": settings.max_steps}
    shared = build_shared_toolset(definition.toolsets or ()).for_generation(generation)
    tools = describe_tools(shared, make_agent_scope(agent_id), caller.capabilities, naming, caller.tenant)
    tools += [
        {
            "name": tool.name,
            "description": definition.endpoints[tool.endpoint_id].description,
            "inputSchema": definition.endpoints[tool.endpoint_id].payload_schema or {},
            "execution": "remote",
            "capability": definition.endpoints[tool.endpoint_id].capability,
            "permissions": [],
        }
        for tool in definition.tools
    ]
    return _summarize_entry(agent_id, entry) | limits | {"tools": tools}


def _may_see(caller: Caller, agent_id: str, entry: AgentListEntry) -> bool:
    return may_ask(entry, caller) and caller.allows_scope(make_agent_scope(agent_id))


def _summarize_entry(agent_id: str, entry: AgentListEntry) -> dict[str, Any]:
    return {
        "id": agent_id,
        "version": entry.version,
        "title": entry.title or agent_id,
        "description": entry.description,
    }


def _summarize_agent(agent: Agent) -> dict[str, Any]:
    return {
        "id": agent.id,
        "version": agent.version,
        "title": agent.title,
        "description": agent.description,
    }
