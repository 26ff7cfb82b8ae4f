"""Unfold calls that describe others: of `multi_tool_use.parallel`, and of the name of a template (decision 0208).

OpenAI's models write the first instead of several calls. Others write `tool_call`, or no name, with the call within.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from fermata.domain.blocks import Block, ToolCallBlock
from fermata.drivers.protocols.tool_arguments import build_tool_call

_TEMPLATE_NAMES = ("", "tool_call", "function_call", "functions")
_PARALLEL_NAMES = ("multi_tool_use.parallel", "multi_tool_use_parallel", "multi_tool_use:parallel", "parallel")


def unfold_parallel_calls(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks with each such call replaced by the calls that it lists. Ids may then come twice."""
    return tuple(unfolded for block in blocks for unfolded in _iter_unfolded(block))


def _iter_unfolded(block: Block) -> Iterator[Block]:
    uses = (_find_described(block) or _find_uses(block)) if isinstance(block, ToolCallBlock) else []
    if not isinstance(block, ToolCallBlock) or not uses:
        yield block
        return
    for use in uses:
        yield build_tool_call(block.tool_call_id, str(use["recipient_name"]), use.get("parameters"))


def _find_described(call: ToolCallBlock) -> list[dict[str, Any]]:
    """Return the call that a call of a template's name describes; none if it describes none plainly."""
    described = call.input
    if call.tool_name.strip() not in _TEMPLATE_NAMES or call.malformed or not isinstance(described, dict):
        return []
    name, rest = described.get("name"), [member for member in described if member not in ("name", "id", "type")]
    if not isinstance(name, str) or not name.strip() or rest not in (["arguments"], ["parameters"], ["input"]):
        return []
    return [{"recipient_name": name, "parameters": described[rest[0]]}]


def _find_uses(call: ToolCallBlock) -> list[dict[str, Any]]:
    """Return the calls that the call lists; none if any of them is not readable."""
    uses = call.input.get("tool_uses") if isinstance(call.input, dict) else None
    if call.tool_name.removeprefix("functions.") not in _PARALLEL_NAMES or call.malformed or not isinstance(uses, list):
        return []
    named = [use for use in uses if isinstance(use, dict) and isinstance(use.get("recipient_name"), str)]
    return named if len(named) == len(uses) else []
