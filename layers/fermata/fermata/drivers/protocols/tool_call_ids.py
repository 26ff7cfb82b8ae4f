"""Names for calls whose provider gave them none, or gave several the same."""

import hashlib
from collections.abc import Sequence

from fermata.domain.blocks import Block, ToolCallBlock


def assign_unique_call_ids(blocks: Sequence[Block], request: bytes) -> tuple[Block, ...]:
    """Every call with an id of its own within the reply.

    Missing ids are made of the request that was answered: no other round has it, and repeating it names them the same.
    """
    used: set[str] = set()
    named: list[Block] = []
    for block in blocks:
        if isinstance(block, ToolCallBlock):
            name = _make_unique(block.tool_call_id or _make_call_id(request, len(used)), used)
            used.add(name)
            block = block if name == block.tool_call_id else block.model_copy(update={"tool_call_id": name})
        named.append(block)
    return tuple(named)


def _make_call_id(request: bytes, number: int) -> str:
    return f"call_{hashlib.sha256(request).hexdigest()[:12]}_{number}"


def _make_unique(name: str, used: set[str]) -> str:
    count, free = 1, name
    while free in used:
        count += 1
        free = f"{name}_{count}"
    return free
