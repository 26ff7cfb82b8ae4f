"""Remember in a conversation how its history has to be repaired for its model (decision 0198).

A response to a repaired request holds a mark that says so, and so does each response after it. Like reasoning, marks
are stored unchanged, and only requests of the same provider and model see them; they are never sent.

A mark is about the messages of the request that was refused. Later ones are sent as they are: thinking of the account
that a conversation has now is valid, although that of the one before is not. If these are refused in the same way, the
mark is about all messages from then on (decision 0205).
"""

from collections.abc import Iterable, Sequence
from typing import Self

from fermata.domain.blocks import Block, ReasoningBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest, ModelResponse
from fermata.domain.value_dataclass import value_dataclass
from fermata.domain.weak_cache import WeakCache
from fermata.drivers.adjustments import NO_ADJUSTMENTS, OMIT_REASONING_NAMES, AppliedAdjustments
from fermata.drivers.protocols.flattened_history import flatten_messages

_REPAIR_TYPE = "fermata.repair"
_SEALED_TYPES = ("thinking", "redacted_thinking", "reasoning")
"""Reasoning that its provider verifies."""


@value_dataclass(frozen=True)
class RepairMark:
    """What has helped against a refusal.

    Attributes:
        names: The adjustments.
        last_position: That of the last message that needs them; None if all do.
    """

    names: AppliedAdjustments = NO_ADJUSTMENTS
    last_position: int | None = None

    @property
    def lasting_names(self) -> AppliedAdjustments:
        """The adjustments that all messages need."""
        return self.names if self.last_position is None else NO_ADJUSTMENTS

    def add_names(self, names: AppliedAdjustments, messages: Sequence[Message]) -> "RepairMark":
        """Return the mark of a request with these messages that was repaired anew. The same repair again is for all."""
        is_lasting = bool(names & self.names) or not messages or bool(self.lasting_names)
        return RepairMark(self.names | names, None if is_lasting else messages[-1].position)


def take_mark(request: ModelRequest, provider: str) -> tuple[ModelRequest, RepairMark]:
    """Return the request without its marks and with the messages repaired that its newest mark is about."""
    marks = request.message_prefix_cache.fold_messages("marks", request.messages, _MarkFold).marks
    if not marks:
        return request, RepairMark()
    origin = (provider, request.model)
    own = [mark for mark in marks if (mark.provider, mark.model) == origin]
    mark = _read_mark(own[-1]) if own else RepairMark()
    messages = tuple(map(_without_marks, request.messages))
    return request.model_copy(update={"messages": _repair_messages(messages, mark)}), mark


class _MarkFold:
    """The marks in the messages of a conversation, of whichever provider they are."""

    def __init__(self, marks: Iterable[ReasoningBlock] = ()) -> None:
        self.marks = list(marks)

    def copy(self) -> Self:
        return type(self)(self.marks)

    def add_message(self, message: Message) -> None:
        for block in message.content:
            if block.kind == "reasoning" and _is_mark(block):
                self.marks.append(block)


def _read_mark(block: ReasoningBlock) -> RepairMark:
    names = frozenset(name for name in block.payload.get("names", ()) if isinstance(name, str))
    position = block.payload.get("lastPosition")
    return RepairMark(names, position if isinstance(position, int) else None)


def _repair_messages(messages: Sequence[Message], mark: RepairMark) -> tuple[Message, ...]:
    """Repair the messages that a mark is about, unless it is about all: then the request is built so."""
    if mark.last_position is None:
        return tuple(messages)
    earlier = [message for message in messages if message.position <= mark.last_position]
    later = messages[len(earlier) :]
    if mark.names & OMIT_REASONING_NAMES:
        earlier = [*map(_without_sealed_reasoning, earlier)]
    return (*flatten_messages(earlier, mark.names), *later)


def mark_response(response: ModelResponse, request: ModelRequest, provider: str, mark: RepairMark) -> ModelResponse:
    """Return the response with the mark."""
    position = {} if mark.last_position is None else {"lastPosition": mark.last_position}
    payload = {"type": _REPAIR_TYPE, "names": sorted(mark.names), **position}
    block = ReasoningBlock(provider=provider, model=request.model, payload=payload)
    return response.model_copy(update={"blocks": (block, *response.blocks)})


def _is_mark(block: Block) -> bool:
    return block.kind == "reasoning" and block.payload.get("type") == _REPAIR_TYPE


def _is_sealed(block: Block) -> bool:
    return block.kind == "reasoning" and block.payload.get("type") in _SEALED_TYPES


def _without_marks(message: Message) -> Message:
    return _drop_marks(message) if any(map(_is_mark, message.content)) else message


@WeakCache
def _drop_marks(message: Message) -> Message:
    return message.model_copy(update={"content": tuple(block for block in message.content if not _is_mark(block))})


def _without_sealed_reasoning(message: Message) -> Message:
    return _drop_sealed_reasoning(message) if any(map(_is_sealed, message.content)) else message


@WeakCache
def _drop_sealed_reasoning(message: Message) -> Message:
    return message.model_copy(update={"content": tuple(block for block in message.content if not _is_sealed(block))})
