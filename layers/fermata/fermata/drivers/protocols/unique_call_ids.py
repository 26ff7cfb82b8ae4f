"""Give every tool call of a response an id of its own, where the provider gave none or the same one twice."""

import hashlib
from collections.abc import Iterable, Sequence

from fermata.domain.blocks import Block, ToolCallBlock


def assign_unique_call_ids(blocks: Sequence[Block], request_body: bytes) -> tuple[Block, ...]:
    """Return the blocks with call ids that are unique within the response.

    Missing ids are derived from the request that was answered (decision 0073): no other round has that request, and
    repeating it gives the calls the same ids. The first call with a given id keeps it: an id that is made up here never
    takes one that a later call came with.
    """
    ids = _UniqueIds(block.tool_call_id for block in blocks if isinstance(block, ToolCallBlock))
    digest = ""
    result: list[Block] = []
    for number, block in enumerate(blocks):
        if isinstance(block, ToolCallBlock):
            if not block.tool_call_id and not digest:
                digest = hashlib.sha256(request_body).hexdigest()[:12]
            call_id = ids.take(block.tool_call_id or f"call_{digest}_{number}")
            if call_id != block.tool_call_id:
                block = block.model_copy(update={"tool_call_id": call_id})
        result.append(block)
    return tuple(result)


class _UniqueIds:
    """Hand out ids: the wanted one, or one that nobody has or wants."""

    def __init__(self, wanted: Iterable[str]) -> None:
        self._wanted = set(wanted)
        self._taken: set[str] = set()
        self._counts: dict[str, int] = {}

    def take(self, call_id: str) -> str:
        unique = call_id
        while unique in self._taken or (unique != call_id and unique in self._wanted):
            self._counts[call_id] = self._counts.get(call_id, 1) + 1
            unique = f"{call_id}_{self._counts[call_id]}"
        self._taken.add(unique)
        return unique
