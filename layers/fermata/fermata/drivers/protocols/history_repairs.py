"""Remember in a conversation how its history has to be repaired for its model (decision 0198).

A response to a repaired request holds a block that says so. Like reasoning, it is stored unchanged, and only requests
of the same provider and model see it; it is never sent.
"""

from collections.abc import Iterable

from fermata.domain.blocks import Block, ReasoningBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest, ModelResponse
from fermata.drivers.adjustments import NO_ADJUSTMENTS, AppliedAdjustments

_REPAIR_TYPE = "fermata.repair"


def take_repairs(request: ModelRequest, provider: str) -> tuple[ModelRequest, AppliedAdjustments]:
    """Return the request without its marks, and the adjustments that they name."""
    marks = [block for message in request.messages for block in message.content if _is_mark(block)]
    if not marks:
        return request, NO_ADJUSTMENTS
    origin = (provider, request.model)
    own = [mark for mark in marks if isinstance(mark, ReasoningBlock) and (mark.provider, mark.model) == origin]
    names = frozenset(name for mark in own for name in mark.payload.get("names", ()) if isinstance(name, str))
    return request.model_copy(update={"messages": tuple(map(_without_marks, request.messages))}), names


def mark_response(response: ModelResponse, request: ModelRequest, provider: str, names: Iterable[str]) -> ModelResponse:
    """Return the response with a mark that names the adjustments."""
    payload = {"type": _REPAIR_TYPE, "names": sorted(names)}
    mark = ReasoningBlock(provider=provider, model=request.model, payload=payload)
    return response.model_copy(update={"blocks": (mark, *response.blocks)})


def _is_mark(block: Block) -> bool:
    return block.kind == "reasoning" and block.payload.get("type") == _REPAIR_TYPE


def _without_marks(message: Message) -> Message:
    content = tuple(block for block in message.content if not _is_mark(block))
    return message if len(content) == len(message.content) else message.model_copy(update={"content": content})
