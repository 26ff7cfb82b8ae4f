"""A named, ordered collection of tools: what is offered to the model, and who is meant by a name."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from fermata.domain.dialect import ToolNameMapper
from fermata.domain.tools import ToolSpec
from fermata.tools.tool import Execution, Tool
from fermata.tools.tool_names import ToolNaming, get_prefixed_name, get_wire_name


@dataclass(frozen=True)
class Toolset:
    name: str
    tools: tuple[Tool, ...] = ()

    def find_tool(self, name: str) -> Tool | None:
        """By canonical name, alias or prefixed name."""
        return self._by_name.get(name)

    def get_tool_namer(self, naming: ToolNaming) -> ToolNameMapper:
        @cache
        def called(name: str) -> str:
            tool = self.find_tool(name)
            return get_wire_name(tool, naming) if tool else name

        return called

    def build_tool_specs(
        self,
        capabilities: frozenset[str],
        scope: str,
        naming: ToolNaming = ToolNaming.CANONICAL,
        *,
        tenant: str = "",
        role: str | None = None,
        phase: str | None = None,
    ) -> tuple[ToolSpec, ...]:
        """What the model is told it may call."""
        return tuple(
            ToolSpec(name=get_wire_name(tool, naming), description=tool.description, input_schema=tool.input_schema)
            for tool in self.list_permitted_tools(capabilities, scope, tenant=tenant, role=role, phase=phase)
        )

    def list_permitted_tools(
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
            if tool.is_available_in(scope, tenant) and tool.permits(capabilities, role) and tool.is_in_phase(phase):
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
    return {tool.name, get_prefixed_name(tool), *tool.aliases}
