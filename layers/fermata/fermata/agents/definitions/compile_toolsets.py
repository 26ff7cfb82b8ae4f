"""Compile the toolsets of built-in agents that an agent names (decision 0445)."""

from collections.abc import Iterable

from fermata.agents.definitions.agent_definition import ToolsetReference
from fermata.agents.definitions.definition_problems import Place, ProblemList
from fermata.agents.definitions.source_models import ToolsetSource
from fermata.agents.tool_sources.built_in_tools import (
    UNSHARED_TOOLSETS,
    build_shared_toolset,
    list_shared_toolset_names,
)
from fermata.tools.toolset import list_tool_names


def compile_toolsets(
    place: Place, agent_id: str, written: Iterable[str | ToolsetSource], problems: ProblemList
) -> tuple[ToolsetReference, ...] | None:
    """Return the toolsets that an agent names, without those that have mistakes; None if it names none.

    Args:
        place: The member `toolsets` of the agent.
        agent_id: The agent.
        written: As they are written.
        problems: Where mistakes are added.
    """
    references: dict[str, ToolsetReference] = {}
    owners: dict[str, str] = {}
    for index, item in enumerate(written):
        one = ToolsetSource(toolset=item) if isinstance(item, str) else item
        problem = _find_problem(agent_id, one, references.keys(), problems)
        reference = ToolsetReference(toolset=one.toolset, tools=_freeze(one.tools), confirm=one.confirm)
        problem = problem or _find_clash(reference, owners)
        if problem:
            problems.add_error(place.inside(index), problem)
            continue
        references[one.toolset] = reference
        owners |= dict.fromkeys(_list_names(reference), one.toolset)
    return tuple(references.values()) or None


def list_shared_tool_names(references: tuple[ToolsetReference, ...] | None) -> dict[str, str]:
    """Return all names that the tools of toolsets answer to, each with its toolset."""
    return {name: one.toolset for one in references or () for name in _list_names(one)}


def _find_problem(agent_id: str, one: ToolsetSource, used: Iterable[str], problems: ProblemList) -> str:
    known = list_shared_toolset_names()
    if one.toolset in UNSHARED_TOOLSETS:
        return f"The toolset {one.toolset!r} works only with the built-in agent of that name. Ask that agent instead."
    if one.toolset not in known:
        message = f"The agent {agent_id!r} names the toolset {one.toolset!r}, which does not exist."
        return f"{message} There are {', '.join(known)}.{problems.suggest_name(one.toolset, known)}"
    if one.toolset in used:
        return f"The agent {agent_id!r} names the toolset {one.toolset!r} twice."
    names = [tool.name for tool in build_shared_toolset((ToolsetReference(toolset=one.toolset),)).tools]
    unknown = next((name for name in one.tools or () if name not in names), None)
    if unknown is None:
        return ""
    return f"The toolset {one.toolset!r} has no tool {unknown!r}.{problems.suggest_name(unknown, names)}"


def _find_clash(reference: ToolsetReference, owners: dict[str, str]) -> str:
    name = next((name for name in _list_names(reference) if name in owners), None)
    if name is None:
        return ""
    return (
        f"The toolsets {owners[name]!r} and {reference.toolset!r} both have the tool {name!r}. "
        "List with 'tools' which tools of one of them the agent is to have."
    )


def _list_names(reference: ToolsetReference) -> list[str]:
    return [name for tool in build_shared_toolset((reference,)).tools for name in sorted(list_tool_names(tool))]


def _freeze(tools: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if tools is None else tuple(dict.fromkeys(tools))
