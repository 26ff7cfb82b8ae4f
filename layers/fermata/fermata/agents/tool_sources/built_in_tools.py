"""Offer tools of built-in agents to agents of a tenant, which name them as toolsets (decision 0445)."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, lru_cache

from fermata.agents.agent import Agent
from fermata.agents.definitions.agent_definition import ToolsetReference
from fermata.agents.registry import list_agents, open_agent
from fermata.domain.dialect import EditorGeneration
from fermata.tools.tool import Access, Approval, Execution, Tool
from fermata.tools.toolset import Toolset

UNSHARED_TOOLSETS = frozenset({"planner"})
"""A plan is made from the draft of a session of the planner, which conversations with other agents do not have."""
_CACHED_TOOLSETS = 256


@cache
def list_shared_toolset_names() -> tuple[str, ...]:
    """Return the toolsets that agents of a tenant can name, which are the ids of built-in agents."""
    return tuple(agent.id for agent in list_agents() if agent.toolsets and agent.id not in UNSHARED_TOOLSETS)


def list_toolset_agents(references: Iterable[ToolsetReference]) -> tuple[Agent, ...]:
    """Return the built-in agents whose toolsets are named."""
    return tuple(open_agent(one.toolset) for one in references if one.toolset in list_shared_toolset_names())


@lru_cache(_CACHED_TOOLSETS)
def build_shared_toolset(references: tuple[ToolsetReference, ...]) -> Toolset:
    """Return the named tools, in every scope. Rights, schemas and limits are those of the built-in agents.

    A toolset or tool that a later release no longer has is left out.

    Args:
        references: As the definition of an agent names them. Of two tools with one name the first is taken.
    """
    tools: dict[str, Tool] = {}
    revised: dict[EditorGeneration, dict[str, Tool]] = {}
    for reference, agent in zip(_list_known(references), list_toolset_agents(references), strict=True):
        for tool in _share_tools(agent.toolset.tools, reference):
            tools.setdefault(tool.name, tool)
        for generation, changed in agent.toolset.revised_tools.items():
            for tool in _share_tools(changed, reference):
                revised.setdefault(generation, {}).setdefault(tool.name, tool)
    by_generation = {generation: tuple(changed.values()) for generation, changed in revised.items()}
    return Toolset("shared", tuple(tools.values()), by_generation)


@cache
def build_shared_editor_toolset() -> Toolset:
    """Return all tools that an editor can carry out for agents of tenants, by which its answers are read."""
    toolset = build_shared_toolset(tuple(ToolsetReference(toolset=name) for name in list_shared_toolset_names()))
    return Toolset(toolset.name, tuple(tool for tool in toolset.tools if tool.execution is Execution.BROWSER))


def _list_known(references: Iterable[ToolsetReference]) -> list[ToolsetReference]:
    return [one for one in references if one.toolset in list_shared_toolset_names()]


def _share_tools(tools: Iterable[Tool], reference: ToolsetReference) -> Iterator[Tool]:
    for tool in tools:
        if reference.tools is not None and tool.name not in reference.tools:
            continue
        asks_person = reference.confirm and tool.access is Access.WRITE
        yield replace(tool, scopes=frozenset(), approval=Approval.ALWAYS if asks_person else tool.approval)
