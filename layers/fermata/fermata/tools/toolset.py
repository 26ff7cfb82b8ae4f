"""Group tools into a named, ordered toolset, list the ones a caller may use, and find one by its name."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache, cached_property
from typing import Any

from fermata.domain.dialect import OLDEST_GENERATION, EditorGeneration, ToolNameMapper
from fermata.domain.tools import ToolSpec
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.tool import Execution, Tool
from fermata.tools.tool_names import ToolNaming, get_prefixed_name, get_wire_name, iter_name_keys, make_name_key


@value_dataclass(frozen=True)
class Toolset:
    """The tools of one scope, in the form that the oldest generation of editors knows.

    Attributes:
        revised_tools: The tools that a later generation changed (decision 0210).

    Raises:
        ValueError: Two tools share a name or an alias.
    """

    name: str
    tools: tuple[Tool, ...] = ()
    revised_tools: Mapping[EditorGeneration, tuple[Tool, ...]] = field(default_factory=dict)

    def for_generation(self, generation: EditorGeneration) -> "Toolset":
        """Return the toolset with the tools as the editors of this generation know them."""
        return self if generation == OLDEST_GENERATION else self._toolsets_by_generation.get(generation, self)

    def find_tool(self, name: str) -> Tool | None:
        """Find a tool by its canonical name, its prefixed name or an alias.

        Models add a namespace (`functions.x`), blanks or other letters; a name is recognised in spite of that if only
        one tool can be meant (decision 0197).
        """
        return self._tools_by_name.get(name) or self._find_tool_by_key(name)

    def _find_tool_by_key(self, name: str) -> Tool | None:
        for key in iter_name_keys(name):
            if len(tools := self._tools_by_key.get(key, ())) == 1:
                return next(iter(tools))
        return None

    def list_tools_without_host(self, snapshot: Any) -> tuple[str, ...]:
        """Return the canonical names of the tools that cannot work for a tenant without a content system.

        Args:
            snapshot: What the editor has posted; a tool that can answer from it is not among them.
        """
        checks = ((tool.name, tool.works_without_host) for tool in self.tools)
        return tuple(name for name, works in checks if works is not None and not works(snapshot))

    def list_browser_tools(self) -> tuple[str, ...]:
        """Return the canonical names of the tools that the browser carries out."""
        return tuple(tool.name for tool in self.tools if tool.execution is Execution.BROWSER)

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
        withheld: Container[str] = (),
    ) -> tuple[ToolSpec, ...]:
        """Build what the model receives about the tools that the caller may use.

        Args:
            capabilities: Those of the caller.
            scope: The scope of the turn.
            naming: The variant of the names.
            tenant: The caller's tenant, which may have registered tools of its own.
            role: The caller's role; tools that name roles need one of theirs.
            phase: The phase of the document's workflow; tools that name phases need one of theirs.
            withheld: Canonical names of tools that would only fail.
        """
        return tuple(
            tool.get_spec(get_wire_name(tool, naming))
            for tool in self.list_permitted_tools(capabilities, scope, tenant=tenant, role=role, phase=phase)
            if tool.name not in withheld
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
        """Yield the tools that the caller may use: server tools first, each group in the order of definition.

        Args:
            capabilities: The caller's.
            scope: The scope of the turn.
            tenant: The caller's tenant, which may have tools of its own.
            role: The caller's role; tools that name roles need one of theirs.
            phase: The phase of the document's workflow; tools that name phases need one of theirs.
        """
        for tool in sorted(self.tools, key=lambda tool: tool.execution is not Execution.SERVER):
            if tool.is_available_in(scope, tenant) and tool.permits(capabilities, role) and tool.is_in_phase(phase):
                yield tool

    def __post_init__(self) -> None:
        used_names: set[str] = set()
        for tool in self.tools:
            names = list_tool_names(tool)
            if shared_names := used_names & names:
                raise ValueError(f"Toolset {self.name}: two tools answer to {', '.join(sorted(shared_names))}.")
            used_names |= names

    @cached_property
    def _tools_by_key(self) -> dict[str, list[Tool]]:
        tools_by_key: dict[str, list[Tool]] = {}
        for tool in self.tools:
            for key in {make_name_key(name) for name in list_tool_names(tool)}:
                tools_by_key.setdefault(key, []).append(tool)
        return tools_by_key

    @cached_property
    def _toolsets_by_generation(self) -> "dict[EditorGeneration, Toolset]":
        toolsets: dict[EditorGeneration, Toolset] = {}
        for generation, revised_tools in self.revised_tools.items():
            revised = {tool.name: tool for tool in revised_tools}
            toolsets[generation] = Toolset(self.name, tuple(revised.get(tool.name, tool) for tool in self.tools))
        return toolsets

    @cached_property
    def _tools_by_name(self) -> dict[str, Tool]:
        return {name: tool for tool in self.tools for name in list_tool_names(tool)}


def list_tool_names(tool: Tool) -> set[str]:
    """Return all names that a tool answers to."""
    return {tool.name, get_prefixed_name(tool), *tool.aliases}


def merge_toolsets(name: str, toolsets: Sequence[Toolset]) -> Toolset:
    """Return the tools of several toolsets in one.

    Args:
        name: The name of the result.
        toolsets: In the order in which their tools are offered.

    Raises:
        ValueError: Two of the tools share a name or an alias.
    """
    generations = {generation for toolset in toolsets for generation in toolset.revised_tools}
    return Toolset(
        name,
        tuple(tool for toolset in toolsets for tool in toolset.tools),
        {
            generation: tuple(tool for toolset in toolsets for tool in toolset.revised_tools.get(generation, ()))
            for generation in generations
        },
    )
