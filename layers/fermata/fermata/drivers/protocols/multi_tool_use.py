"""Unfold calls of `multi_tool_use.parallel`, which OpenAI's models write instead of several calls (decision 0208)."""

from collections.abc import Iterator, Sequence
from typing import Any

from fermata.domain.blocks import Block, ToolCallBlock
from fermata.drivers.protocols.tool_arguments import build_tool_call

_PARALLEL_NAMES = ("multi_tool_use.parallel", "multi_tool_use_parallel", "multi_tool_use:parallel", "parallel")


def unfold_parallel_calls(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks with each such call replaced by the calls that it lists. Ids may then come twice."""
    return tuple(unfolded for block in blocks for unfolded in _iter_unfolded(block))


def _iter_unfolded(block: Block) -> Iterator[Block]:
    uses = _find_uses(block) if isinstance(block, ToolCallBlock) else []
    if not isinstance(block, ToolCallBlock) or not uses:
        yield block
        return
    for use in uses:
        yield build_tool_call(block.tool_call_id, str(use["recipient_name"]), use.get("parameters"))


def _find_uses(call: ToolCallBlock) -> list[dict[str, Any]]:
    """Return the calls that the call lists; none if any of them is not readable."""
    uses = call.input.get("tool_uses") if isinstance(call.input, dict) else None
    if call.tool_name.removeprefix("functions.") not in _PARALLEL_NAMES or call.malformed or not isinstance(uses, list):
        return []
    named = [use for use in uses if isinstance(use, dict) and isinstance(use.get("recipient_name"), str)]
    return named if len(named) == len(uses) else []
