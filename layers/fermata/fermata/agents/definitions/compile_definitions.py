"""Compile the files that define agents: every mistake is found at once, with its file, line and path.

The first pass compiles each agent by itself, the second what agents say of each other. A mistake in one agent
hides none of another.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from fermata.agents.definitions.agent_access import AccessRules
from fermata.agents.definitions.agent_definition import AgentDefinition, ConnectionDefinition, EndpointDefinition
from fermata.agents.definitions.compile_agent_definition import AgentCompiler, CompileScope, FindBundle
from fermata.agents.definitions.compile_connection_definitions import compile_connection, compile_endpoint
from fermata.agents.definitions.definition_problems import (
    DefinitionProblem,
    FindAddressProblem,
    Place,
    ProblemList,
    SourceDocument,
)
from fermata.agents.definitions.source_models import AgentTestSource, DefinitionFile
from fermata.agents.definitions.sub_agents import SubAgentChecker
from fermata.domain.value_dataclass import value_dataclass

ItemT = TypeVar("ItemT", ConnectionDefinition, EndpointDefinition)
MAX_ITEMS = 500
"""Of agents, connections, endpoints and tests each."""
TOP_LEVEL_NAMES = tuple(DefinitionFile.model_fields)


@value_dataclass(frozen=True)
class CompiledFiles:
    """The agents of some files, without those that have mistakes, and what was found.

    Attributes:
        tests: The prompts with which `fermata agents test` tries agents.
    """

    definitions: Mapping[str, AgentDefinition]
    problems: tuple[DefinitionProblem, ...]
    tests: tuple[AgentTestSource, ...] = ()

    @property
    def errors(self) -> tuple[DefinitionProblem, ...]:
        """The problems that keep the agents from being pushed."""
        return tuple(problem for problem in self.problems if not problem.is_warning)


def refuse_folders(_base_path: str) -> str:
    """Stand for files that no folder belongs to."""
    raise ValueError("does not exist")


def compile_definitions(
    documents: Sequence[SourceDocument],
    find_bundle: FindBundle = refuse_folders,
    find_address_problem: FindAddressProblem | None = None,
) -> CompiledFiles:
    """Compile files that belong together.

    Args:
        documents: The files, as their parser has read them.
        find_bundle: Finds the files of a folder that an agent reads.
        find_address_problem: Says which addresses are worth a warning; None where the service itself checks them.
    """
    return _FilesCompiler(find_bundle, find_address_problem).compile(documents)


class _FilesCompiler:
    def __init__(self, find_bundle: FindBundle, find_address_problem: FindAddressProblem | None) -> None:
        self._problems = ProblemList(find_address_problem)
        self._find_bundle = find_bundle
        self._broken: set[str] = set()

    def compile(self, documents: Sequence[SourceDocument]) -> CompiledFiles:
        roots = [Place(document) for document in documents if self._check_top(document)]
        connections = self._compile_items(roots, "connections", compile_connection)
        endpoints = self._compile_items(roots, "endpoints", compile_endpoint)
        access = AccessRules.read(roots, self._problems)
        scope = CompileScope(connections, endpoints, frozenset(self._broken), self._find_bundle)
        agents: dict[str, AgentDefinition] = {}
        places: dict[str, Place] = {}
        for place, value in self._iter_items(roots, "agents"):
            agent_id = value.get("id") if isinstance(value, Mapping) else None
            if isinstance(agent_id, str) and agent_id in places:
                self._problems.add_error(place.inside("id"), f'Duplicate agentId "{agent_id}".')
                continue
            compiled = AgentCompiler(place, scope, self._problems).compile(value, access.find(str(agent_id)))
            if isinstance(agent_id, str):
                places[agent_id] = place
            if compiled is not None:
                agents[compiled.id] = compiled
        access.check_ids(places.keys(), self._problems)
        pinned = SubAgentChecker(agents, places, self._problems).pin_versions()
        tests = self._read_tests(roots, places)
        found = sorted(self._problems.found, key=lambda one: (one.file, one.line))
        return CompiledFiles(pinned, tuple(found), tests)

    def _check_top(self, document: SourceDocument) -> bool:
        """Check that a file is an object with the members that are known. An empty file is one without members."""
        if document.value is None:
            return False
        if not isinstance(document.value, Mapping):
            self._problems.add_error(Place(document), "The file has to be an object with 'agents'.")
            return False
        for name in document.value:
            if name not in TOP_LEVEL_NAMES:
                message = f"{name!r} is not known here; a file has {', '.join(TOP_LEVEL_NAMES)}."
                self._problems.add_error(
                    Place(document, (str(name),)), message + self._problems.suggest_name(str(name), TOP_LEVEL_NAMES)
                )
        return True

    def _iter_items(self, roots: Sequence[Place], kind: str) -> list[tuple[Place, Any]]:
        """Return the items of a list in all files. What is no list is a mistake."""
        items: list[tuple[Place, Any]] = []
        for root in roots:
            value = root.document.value.get(kind)
            if value is None:
                continue
            if not isinstance(value, (list, tuple)):
                self._problems.add_error(root.inside(kind), f"{kind} must be a list.")
                continue
            items += [(root.inside(kind, index), item) for index, item in enumerate(value)]
        if len(items) > MAX_ITEMS:
            self._problems.add_error(
                items[MAX_ITEMS][0], f"There are {len(items)} {kind}; at most {MAX_ITEMS} are allowed."
            )
        return items[:MAX_ITEMS]

    def _compile_items(
        self, roots: Sequence[Place], kind: str, compile_item: Callable[[Place, Any, ProblemList], ItemT | None]
    ) -> dict[str, ItemT]:
        items: dict[str, ItemT] = {}
        for place, value in self._iter_items(roots, kind):
            item_id = value.get("id") if isinstance(value, Mapping) else None
            if isinstance(item_id, str) and item_id in items:
                self._problems.add_error(place.inside("id"), f"Duplicate id {item_id!r} in {kind}.")
                continue
            compiled = compile_item(place, value, self._problems)
            if compiled is not None:
                items[compiled.id] = compiled
            elif isinstance(item_id, str):
                self._broken.add(item_id)
        return items

    def _read_tests(self, roots: Sequence[Place], places: Mapping[str, Place]) -> tuple[AgentTestSource, ...]:
        tests: list[AgentTestSource] = []
        for place, value in self._iter_items(roots, "tests"):
            test = self._problems.check_model(place, AgentTestSource, value)
            if test is None:
                continue
            if test.agent_id not in places:
                message = f"The test names the agent {test.agent_id!r}, which does not exist."
                self._problems.add_error(place.inside("agentId"), message)
            tests.append(test)
        return tuple(tests)
