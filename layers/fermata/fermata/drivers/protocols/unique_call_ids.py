"""Give every tool call of a response an id of its own, where the provider gave none or the same one twice."""

import hashlib
from collections.abc import Sequence

from fermata.domain.blocks import Block, ToolCallBlock


def assign_unique_call_ids(blocks: Sequence[Block], request_body: bytes) -> tuple[Block, ...]:
    """Return the blocks with call ids that are unique within the response.

    Missing ids are derived from the request that was answered (decision 0073): no other round has that request, and
    repeating it gives the calls the same ids. The first call with a given id keeps it: an id that is made up here never
    takes one that a later call came with.
    """
    given = {block.tool_call_id for block in blocks if isinstance(block, ToolCallBlock)}
    used: set[str] = set()
    result: list[Block] = []
    for block in blocks:
        if isinstance(block, ToolCallBlock):
            call_id = block.tool_call_id
            if not call_id or call_id in used:
                call_id = _make_unique(call_id or _make_call_id(request_body, len(used)), used | given)
            used.add(call_id)
            if call_id != block.tool_call_id:
                block = block.model_copy(update={"tool_call_id": call_id})
        result.append(block)
    return tuple(result)


def _make_call_id(request_body: bytes, number: int) -> str:
    return f"call_{hashlib.sha256(request_body).hexdigest()[:12]}_{number}"


def _make_unique(call_id: str, used: set[str]) -> str:
    count = 1
    unique = call_id
    while unique in used:
        count += 1
        unique = f"{call_id}_{count}"
    return unique
