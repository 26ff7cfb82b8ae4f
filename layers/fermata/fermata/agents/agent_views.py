"""Describe agents for the clients that list them."""

from typing import Any

from fermata.agents.agent import Agent
from fermata.agents.registry import find_agent, list_agents
from fermata.agents.tool_listing import list_tools
from fermata.domain.caller import Caller
from fermata.domain.dialect import EditorGeneration
from fermata.domain.errors import NotFound
from fermata.tools.tool_names import ToolNaming


def list_agent_views(caller: Caller) -> list[dict[str, Any]]:
    """Describe the agents that the caller may ask."""
    return [_summarize_agent(agent) for agent in list_agents() if caller.allows_scope(agent.id)]


def get_agent_view(caller: Caller, agent_id: str, naming: ToolNaming, generation: EditorGeneration) -> dict[str, Any]:
    """Describe an agent with the tools that a model is offered in the caller's turns.

    Args:
        caller: The user who asks.
        agent_id: The agent's id, as the client sent it.
        naming: The variant of the tool names.
        generation: The generation of editors whose schemas the tools have.

    Raises:
        NotFound: There is no such agent, or the caller's API key is not for it.
    """
    agent = find_agent(agent_id)
    if agent is None or not caller.allows_scope(agent.id):
        raise NotFound("There is no such agent.")
    limits = {} if agent.max_rounds is None else {"maxRounds": agent.max_rounds}
    tools = list_tools(agent.id, caller.capabilities, naming, caller.tenant, generation)
    return _summarize_agent(agent) | limits | {"tools": tools}


def _summarize_agent(agent: Agent) -> dict[str, Any]:
    return {
        "id": agent.id,
        "version": agent.version,
        "title": agent.title,
        "description": agent.description,
    }
