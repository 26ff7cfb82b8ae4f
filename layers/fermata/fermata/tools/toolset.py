"""Group tools into a named, ordered toolset, list the ones a caller may use, and find one by its name."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from fermata.domain.dialect import ToolNameMapper
from fermata.domain.tools import ToolSpec
from fermata.tools.tool import Execution, Tool
from fermata.tools.tool_names import ToolNaming, get_prefixed_name, get_wire_name


@dataclass(frozen=True)
class Toolset:
    """The tools of one scope.

    Raises:
        ValueError: Two tools share a name or an alias.
    """

    name: str
    tools: tuple[Tool, ...] = ()

    def find_tool(self, name: str) -> Tool | None:
        """Find a tool by its canonical name, its prefixed name or an alias."""
        return self._tools_by_name.get(name)

    def get_tool_namer(self, naming: ToolNaming) -> ToolNameMapper:
        """Return a function from any name of a tool to its wire name; other names are returned unchanged."""

        @cache
        def map_tool_name(name: str) -> str:
            tool = self.find_tool(name)
            return get_wire_name(tool, naming) if tool else name

        return map_tool_name

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
        """Build what the model receives about the tools that the caller may use.

        Args:
            capabilities: Those of the caller.
            scope: The scope of the turn.
            naming: The variant of the names.
            tenant: The caller's tenant, which may have registered tools of its own.
            role: The caller's role; tools that name roles need one of theirs.
            phase: The phase of the document's workflow; tools that name phases need one of theirs.
        """
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
        """Yield the tools that the caller may use: server tools first, each group in the order of definition."""
        for tool in sorted(self.tools, key=lambda tool: tool.execution is not Execution.SERVER):
            if tool.is_available_in(scope, tenant) and tool.permits(capabilities, role) and tool.is_in_phase(phase):
                yield tool

    def __post_init__(self) -> None:
        used_names: set[str] = set()
        for tool in self.tools:
            names = _list_tool_names(tool)
            if shared_names := used_names & names:
                raise ValueError(f"Toolset {self.name}: two tools answer to {', '.join(sorted(shared_names))}.")
            used_names |= names

    @cached_property
    def _tools_by_name(self) -> dict[str, Tool]:
        return {name: tool for tool in self.tools for name in _list_tool_names(tool)}


def _list_tool_names(tool: Tool) -> set[str]:
    return {tool.name, get_prefixed_name(tool), *tool.aliases}
