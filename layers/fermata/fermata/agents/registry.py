"""Open agents by id, with the version that a turn has pinned, and answer what other packages ask about a scope."""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast

from fermata.agents.agent import Agent
from fermata.domain.agent_ids import SCOPES, read_agent_id
from fermata.domain.dialect import OLDEST_GENERATION, EditorGeneration, ToolNameMapper, ToolNameVariant
from fermata.tools.tool_names import ToolNaming
from fermata.tools.toolset import Toolset

if TYPE_CHECKING:
    from fermata.agents.definitions.agent_definition import AgentDefinition

DefinitionLoader = Callable[[str, str], "AgentDefinition"]
"""Returns a tenant's definition, given the tenant and `id@version`; raises LookupError where there is none."""


def find_agent(agent_id: str) -> Agent | None:
    """Return the built-in agent of this id, or None."""
    path = SCOPES.get(agent_id)
    return cast(Agent, resolve_name(path)) if path else None


def open_agent(
    reference: str,
    *,
    tenant: str = "",
    definitions: DefinitionLoader | None = None,
    resolved: dict[str, Any] | None = None,
) -> Agent:
    """Return the agent `id@version`, or the deployed version of a built-in `id`.

    A deployment holds one version of each built-in agent. A turn that has pinned another one goes on with it
    (decision 0312). Of an agent of a tenant every version is kept (decision 0358).

    Args:
        reference: The agent, with its version.
        tenant: The tenant whose agents count besides the built-in ones.
        definitions: Loads the definition of a tenant's agent; without it there are only built-in agents.
        resolved: The values of the properties with operators, as the turn has pinned them.

    Raises:
        LookupError: No agent has this id and version.
    """
    agent_id = reference.partition("@")[0]
    agent = find_agent(agent_id)
    if agent is not None:
        return agent
    if definitions is None or not tenant:
        raise LookupError(f"There is no agent {agent_id!r}.")
    from fermata.agents.definitions.configured_agent import make_configured_agent  # most turns have a built-in agent

    return make_configured_agent(definitions(tenant, reference), resolved)


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


def get_editor_toolset(scope: str) -> Toolset:
    """Return the tools that an editor carries out in a scope, by which its answers and inverses are read.

    For an agent of a tenant these are all that such agents can be given, so that no definition has to be loaded.
    """
    if not read_agent_id(scope):
        return get_toolset(scope)
    from fermata.agents.tool_sources.built_in_tools import build_shared_editor_toolset  # most turns are of other agents

    return build_shared_editor_toolset()


def get_tool_namer(scope: str, naming: ToolNameVariant) -> ToolNameMapper:
    """Return a function that gives the tools of a scope the names a client uses (wire/http/tool_naming.py)."""
    return get_editor_toolset(scope).get_tool_namer(ToolNaming(naming))
