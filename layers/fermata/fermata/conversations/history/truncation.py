"""How far back a request goes: whole turns, the newest first, as many as the model has room for."""

from collections.abc import Sequence
from itertools import groupby

from fermata.conversations.history.model_profile import ModelProfile, estimate_tokens
from fermata.domain.blocks import TextBlock
from fermata.domain.messages import Message

BEGINNING_OMITTED_NOTE = (
    "[The beginning of this conversation is left out here, because it is longer than a request may be.]"
)
_TURN_CUT_STEPS = 4
"""The cut moves on by up to a quarter of what is kept, so that it then stays where it is for a while."""


def truncate_history(messages: Sequence[Message], profile: ModelProfile, *, is_complete: bool = True) -> list[Message]:
    """Cuts between turns only, so never between a call and its result. The newest turn always stays.

    `is_whole` says whether the messages go back to the conversation's beginning.
    """
    turns = [list(group) for _, group in groupby(messages, key=lambda message: message.turn)]
    first = _find_first_fitting_turn(turns, profile.max_history_tokens)
    if not turns or (first == 0 and is_complete):
        return list(messages)
    kept = turns[_align_to_step(turns, first) :]
    return [_with_note(message) if message is kept[0][0] else message for turn in kept for message in turn]


def _find_first_fitting_turn(turns: Sequence[Sequence[Message]], max_tokens: int) -> int:
    for index in range(len(turns) - 1, -1, -1):
        max_tokens -= estimate_tokens(turns[index])
        if max_tokens < 0:
            return min(index + 1, len(turns) - 1)
    return 0


def _align_to_step(turns: Sequence[Sequence[Message]], first: int) -> int:
    """The first turn from `first` on that begins behind the next step; steps are powers of two of positions.

    Where turns are so long that this would leave out more than a quarter, the cut moves with every turn.
    """
    begins = [turn[0].position for turn in turns]
    most = (turns[-1][-1].position + 1 - begins[first]) // _TURN_CUT_STEPS
    step = 1 << max(0, most.bit_length() - 1)
    behind = -(-begins[first] // step) * step
    later = range(first, len(turns))
    return next((index for index in later if behind <= begins[index] <= begins[first] + most), first)


def _with_note(message: Message) -> Message:
    if message.role != "user":
        return message
    return message.model_copy(update={"content": (TextBlock(text=BEGINNING_OMITTED_NOTE), *message.content)})
