"""Check what agents say of each other, and pin the version of each sub-agent."""

from collections.abc import Iterator, Mapping
from graphlib import TopologicalSorter

from fermata.agents.definitions.agent_definition import AgentDefinition
from fermata.agents.definitions.definition_problems import Place, ProblemList
from fermata.agents.tool_sources.built_in_tools import build_shared_toolset

MAX_NAMED_TOOLS = 8
MAX_NESTING = 5
"""How deep sub-agents may be nested. The agent that a person asks has the depth 0."""


class SubAgentChecker:
    """The second pass over agents that are each right by themselves.

    Args:
        agents: The compiled agents.
        places: Where each agent is, also those with mistakes.
        problems: Where mistakes are added.
    """

    def __init__(
        self, agents: Mapping[str, AgentDefinition], places: Mapping[str, Place], problems: ProblemList
    ) -> None:
        self._agents, self._places, self._problems = agents, places, problems

    def pin_versions(self) -> dict[str, AgentDefinition]:
        """Return the agents with the versions of their sub-agents, without those that have mistakes."""
        refused = {agent_id for agent_id in self._agents if not self._check_references(agent_id)}
        cyclic = list(dict.fromkeys(self._find_cyclic()))
        for agent_id in cyclic:
            message = f"The agent {agent_id!r} asks itself: its sub-agents lead back to it."
            self._problems.add_error(self._places[agent_id].inside("agents"), message)
        if cyclic:
            return {}
        pinned: dict[str, AgentDefinition] = {}
        depths: dict[str, int] = {}
        for agent_id in self._list_children_first():
            children = [one.agent_id for one in self._agents[agent_id].agents]
            if agent_id in refused or any(child not in pinned for child in children):
                continue
            depths[agent_id] = 1 + max((depths[child] for child in children), default=-1)
            if depths[agent_id] > MAX_NESTING:
                message = f"The sub-agents of {agent_id!r} are nested more than {MAX_NESTING} deep: the deepest fail."
                self._problems.add_warning(self._places[agent_id].inside("agents"), message)
            pinned[agent_id] = self._pin(self._agents[agent_id], pinned)
        return {agent_id: pinned[agent_id] for agent_id in self._agents if agent_id in pinned}

    def _check_references(self, agent_id: str) -> bool:
        """Return whether all sub-agents of an agent are there, under names that it has for nothing else."""
        agent = self._agents[agent_id]
        tool_names = {tool.name for tool in agent.tools}
        count = self._problems.error_count
        for index, one in enumerate(agent.agents):
            place = self._places[agent_id].inside("agents", index)
            if one.name in tool_names:
                message = (
                    f"The sub-agent {one.name!r} of {agent_id!r} conflicts with an endpoint tool of the same name."
                )
                self._problems.add_error(place, message)
            if one.agent_id not in self._places:
                message = f"The agent {agent_id!r} references the sub-agent {one.agent_id!r}, which does not exist."
                self._problems.add_error(place, message + self._problems.suggest_name(one.agent_id, list(self._places)))
            self._warn_of_confirmed_tools(place, one.agent_id)
        return self._problems.error_count == count

    def _warn_of_confirmed_tools(self, place: Place, child_id: str) -> None:
        child = self._agents.get(child_id)
        confirmed = _list_confirmed_tools(child) if child else []
        if confirmed:
            names = ", ".join(confirmed[:MAX_NAMED_TOOLS]) + (" …" if len(confirmed) > MAX_NAMED_TOOLS else "")
            message = f"The sub-agent {child_id!r} has tools that need an approval ({names})."
            self._problems.add_warning(place, f"{message} See docs/agents.md for what happens inside of a sub-agent.")

    def _find_cyclic(self) -> Iterator[str]:
        """Yield one agent of each cycle, found depth first without recursion."""
        done: set[str] = set()
        for root in self._agents:
            stack: list[tuple[str, Iterator[str]]] = [(root, self._iter_children(root))] if root not in done else []
            active = {root}
            while stack:
                agent_id, children = stack[-1]
                child = next(children, None)
                if child is None:
                    stack.pop()
                    active.discard(agent_id)
                    done.add(agent_id)
                elif child in active:
                    yield child
                elif child not in done:
                    active.add(child)
                    stack.append((child, self._iter_children(child)))

    def _iter_children(self, agent_id: str) -> Iterator[str]:
        return iter([one.agent_id for one in self._agents[agent_id].agents if one.agent_id in self._agents])

    def _list_children_first(self) -> list[str]:
        """Return the agents so that each comes behind its sub-agents. There is no cycle."""
        children = {agent_id: list(self._iter_children(agent_id)) for agent_id in self._agents}
        return list(TopologicalSorter(children).static_order())

    @staticmethod
    def _pin(agent: AgentDefinition, pinned: Mapping[str, AgentDefinition]) -> AgentDefinition:
        agents = tuple(one.model_copy(update={"version": pinned[one.agent_id].version}) for one in agent.agents)
        return agent.model_copy(update={"agents": agents})


def _list_confirmed_tools(agent: AgentDefinition) -> list[str]:
    shared = build_shared_toolset(agent.toolsets or ()).tools
    return [tool.name for tool in agent.tools if tool.confirm] + [one.name for one in shared if one.needs_approval]
