"""A named, ordered collection of tools: what is offered to the model, and who is meant by a name."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from fermata.tools.names import Names, prefixed_name, wire_name
from fermata.tools.tool import Execution, Tool
from fermata.words.dialect import Called
from fermata.words.tools import ToolSpec


@dataclass(frozen=True)
class Toolset:
    name: str
    tools: tuple[Tool, ...] = ()

    def find(self, name: str) -> Tool | None:
        """By canonical name, alias or prefixed name."""
        return self._by_name.get(name)

    def naming(self, names: Names) -> Called:
        @cache
        def called(name: str) -> str:
            tool = self.find(name)
            return wire_name(tool, names) if tool else name

        return called

    def offered(
        self,
        capabilities: frozenset[str],
        scope: str,
        names: Names = Names.SEED,
        *,
        tenant: str = "",
        role: str | None = None,
        phase: str | None = None,
    ) -> tuple[ToolSpec, ...]:
        """What the model is told it may call."""
        return tuple(
            ToolSpec(name=wire_name(tool, names), description=tool.description, input_schema=tool.input_schema)
            for tool in self.open_to(capabilities, scope, tenant=tenant, role=role, phase=phase)
        )

    def open_to(
        self,
        capabilities: frozenset[str],
        scope: str,
        *,
        tenant: str = "",
        role: str | None = None,
        phase: str | None = None,
    ) -> Iterator[Tool]:
        """The tools of one caller: the server's first, then the others, each in their own order."""
        for tool in sorted(self.tools, key=lambda tool: tool.execution is not Execution.SERVER):
            if tool.exists_for(scope, tenant) and tool.permits(capabilities, role) and tool.in_phase(phase):
                yield tool

    def __post_init__(self) -> None:
        taken: set[str] = set()
        for tool in self.tools:
            clash = taken & _names_of(tool)
            if clash:
                raise ValueError(f"Toolset {self.name}: two tools answer to {', '.join(sorted(clash))}.")
            taken |= _names_of(tool)

    @cached_property
    def _by_name(self) -> dict[str, Tool]:
        return {name: tool for tool in self.tools for name in _names_of(tool)}


def _names_of(tool: Tool) -> set[str]:
    return {tool.name, prefixed_name(tool), *tool.aliases}
