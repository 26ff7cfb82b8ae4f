"""Offer a model the tools that its turn is likely to need, and a tool that finds others (decisions 0319 and 0418)."""

from collections.abc import Collection, Iterable
from typing import Annotated, Any

from pydantic import Field

from fermata.aws.resources import Resources
from fermata.domain.blocks import Block, TextBlock, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.tools import ToolSpec
from fermata.tools.tool import Access, Execution, Tool, ToolContext, ToolInput
from fermata.tools.tool_names import ToolNaming, get_wire_name
from fermata.tools.tool_search import find_matching_tools, rank_tools
from fermata.tools.toolset import Toolset
from fermata.turns.turn import Turn
from fermata.turns.turn_toolset import open_turn_toolset

MAX_UNNARROWED_TOOLS = 40
"""A list of so many tools is offered whole."""
OFFERED_TOOL_COUNT = 30
FOUND_TOOL_COUNT = 8
MAX_FOUND_DESCRIPTION_CHARS = 300
FIND_TOOLS_NAME = "find_tools"
FIND_TOOLS_TOOLSET = "search"
_MAX_LISTED_NAMES = 200
_NOTHING_FOUND = (
    "No tool has one of these words in its name or description. otherTools lists what you are not given yet: "
    "ask again with words of a name, in the language of the names."
)


class FindToolsInput(ToolInput):
    query: Annotated[str, Field(min_length=1, max_length=500)]


def select_offered_tools(resources: Resources, turn: Turn, content: Iterable[Block]) -> tuple[str, ...]:
    """Return the canonical names of the tools that a turn is offered; empty if it is offered all of them.

    Args:
        resources: Where the tenant's own tools are.
        turn: The turn, before it is stored.
        content: Its prompt.
    """
    permitted = list_permitted(open_turn_toolset(resources, turn), turn)
    if len(permitted) <= MAX_UNNARROWED_TOOLS:
        return ()
    text = " ".join(block.text for block in content if isinstance(block, TextBlock))
    # Without the tool that ends its turn, an agent could not do what it is there for.
    needed = [tool.name for tool in permitted if tool.ends_turn]
    ranked = [tool.name for tool in rank_tools(permitted, text)]
    best = set(list(dict.fromkeys([*needed, *ranked]))[:OFFERED_TOOL_COUNT])
    return tuple(tool.name for tool in permitted if tool.name in best)


def list_permitted(toolset: Toolset, turn: Turn) -> list[Tool]:
    """Return the tools that a turn may call, in the order in which they are offered."""
    permitted = toolset.list_permitted_tools(frozenset(turn.capabilities), turn.scope, tenant=turn.tenant)
    return [tool for tool in permitted if tool.name not in turn.withheld_tools]


def add_find_tools(toolset: Toolset, turn: Turn) -> Toolset:
    """Return the tools of a turn with `find_tools`, if it is not offered all of them."""
    if not turn.offered_tools or toolset.find_tool(FIND_TOOLS_NAME) is not None:
        return toolset
    naming = ToolNaming(turn.tool_names)
    permitted = list_permitted(toolset, turn)

    def find_tools(tool_input: FindToolsInput, _context: ToolContext) -> dict[str, Any]:
        found = find_matching_tools(permitted, tool_input.query)[:FOUND_TOOL_COUNT]
        if not found:
            others = [get_wire_name(tool, naming) for tool in permitted if tool.name not in turn.offered_tools]
            return {"tools": [], "note": _NOTHING_FOUND, "otherTools": others[:_MAX_LISTED_NAMES]}
        return {
            "tools": [
                {
                    "name": get_wire_name(tool, naming),
                    "description": tool.description[:MAX_FOUND_DESCRIPTION_CHARS],
                }
                for tool in found
            ]
        }

    tool = Tool(
        name=FIND_TOOLS_NAME,
        toolset=FIND_TOOLS_TOOLSET,
        description=(
            f"Finds tools that you are not given yet, among {len(permitted)} in all. Say in a few words what you want "
            "to do. The tools that it names can be called from your next reply on."
        ),
        execution=Execution.SERVER,
        access=Access.READ,
        input_model=FindToolsInput,
        handler=find_tools,
        idempotent=True,
        instant=True,
    )
    return Toolset(toolset.name, (*toolset.tools, tool))


def is_find_tools(tool: Tool) -> bool:
    """Return whether a tool is the service's own `find_tools`. A tool of somebody else may have its name."""
    return tool.name == FIND_TOOLS_NAME and tool.toolset == FIND_TOOLS_TOOLSET


def build_offered_specs(toolset: Toolset, turn: Turn, found: Collection[str] = ()) -> tuple[ToolSpec, ...]:
    """Build what the model receives about its tools.

    What was found comes last, so that providers can cache the tools before it.

    Args:
        toolset: The tools of the turn.
        turn: The turn.
        found: Names of tools that the turn has found, as `list_found_tools` returns them.
    """
    naming = ToolNaming(turn.tool_names)
    specs = toolset.build_tool_specs(
        frozenset(turn.capabilities), turn.scope, naming, tenant=turn.tenant, withheld=turn.withheld_tools
    )
    if not turn.offered_tools:
        return specs
    by_name = {spec.name: spec for spec in specs}
    offered = [tool for name in (*turn.offered_tools, FIND_TOOLS_NAME) if (tool := toolset.find_tool(name))]
    names = dict.fromkeys([*(get_wire_name(tool, naming) for tool in offered), *found])
    return tuple(by_name[name] for name in names if name in by_name)


def list_found_tools(messages: Iterable[Message], turn_id: str) -> tuple[str, ...]:
    """Return the names of the tools that a turn has found, in the order in which it has found them."""
    names: dict[str, None] = {}
    for message in sorted(messages, key=lambda message: message.position):
        if message.turn != turn_id or message.tool_name != FIND_TOOLS_NAME:
            continue
        for block in message.content:
            data = block.data if isinstance(block, ToolResultBlock) else None
            found = data.get("tools") if isinstance(data, dict) else None
            listed = found if isinstance(found, list) else ()  # a client's own tool may have the name
            names |= dict.fromkeys(str(tool["name"]) for tool in listed if isinstance(tool, dict) and "name" in tool)
    return tuple(names)
