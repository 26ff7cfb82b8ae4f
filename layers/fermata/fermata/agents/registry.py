"""Open agents by id, with the version that a turn has pinned, and answer what other packages ask about a scope."""

from pkgutil import resolve_name
from typing import cast

from fermata.agents.agent import Agent
from fermata.domain.dialect import OLDEST_GENERATION, EditorGeneration, ToolNameMapper, ToolNameVariant
from fermata.domain.scopes import SCOPES
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset


def find_agent(agent_id: str) -> Agent | None:
    """Return the built-in agent of this id, or None."""
    path = SCOPES.get(agent_id)
    return cast(Agent, resolve_name(path)) if path else None


def open_agent(reference: str) -> Agent:
    """Return the agent `id@version`, or the deployed version of `id`.

    A deployment holds one version of each built-in agent. A turn that has pinned another one goes on with it
    (decision 0312).

    Raises:
        LookupError: No agent has this id.
    """
    agent_id = reference.partition("@")[0]
    agent = find_agent(agent_id)
    if agent is None:
        raise LookupError(f"There is no agent {agent_id!r}.")
    return agent


def list_agents() -> list[Agent]:
    """Return all built-in agents, in the order of SCOPES."""
    return [open_agent(agent_id) for agent_id in SCOPES]


def list_scopes_with_tools() -> list[str]:
    """Return the scopes whose agents have tools."""
    return [agent.id for agent in list_agents() if agent.toolsets]


def get_toolset(scope: str, generation: EditorGeneration = OLDEST_GENERATION) -> Toolset:
    """Return the tools of a scope's agent, loaded on first use; an empty toolset where there is no agent.

    Args:
        scope: The scope.
        generation: The generation of editors whose schemas the tools have.
    """
    agent = find_agent(scope)
    return agent.get_toolset(generation) if agent else Toolset(scope)


def get_tool_namer(scope: str, naming: ToolNameVariant) -> ToolNameMapper:
    """Return a function that gives the tools of a scope the names a client uses (wire/http/tool_names_header.py)."""
    return get_toolset(scope).get_tool_namer(ToolNaming(naming))
