"""Truncate a history to whole turns, the newest ones, as many as the model accepts (decision 0064)."""

from collections.abc import Sequence
from itertools import groupby

from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.domain.blocks import TextBlock
from fermata.domain.messages import Message

BEGINNING_OMITTED_NOTE = (
    "[The beginning of this conversation is left out here, because it is longer than a request may be.]"
)
_NOTE_TOKENS = 40
_MAX_EXTRA_CUT_DIVISOR = 4
"""The cut may remove up to a quarter more than necessary, so that it then stays in place for several turns."""


def truncate_history(messages: Sequence[Message], profile: ModelProfile, *, is_complete: bool = True) -> list[Message]:
    """Return the newest turns that fit, and at least the newest one.

    The cut is between turns, so it never separates a call from its result. The first message gets a note when
    something is missing.

    Args:
        is_complete: Whether the messages go back to the beginning of the conversation.
    """
    turns = [list(group) for _, group in groupby(messages, key=lambda message: message.turn)]
    first = _find_first_fitting_turn(turns, profile.max_history_tokens - _NOTE_TOKENS)
    if not turns or (first == 0 and is_complete):
        return list(messages)
    first_message, *others = [message for turn in turns[_align_to_step(turns, first) :] for message in turn]
    return [_with_note(first_message), *others]


def has_room(tokens: int, profile: ModelProfile) -> bool:
    """Return whether the model accepts messages of so many tokens, so that nothing has to be cut."""
    return tokens <= profile.max_history_tokens - _NOTE_TOKENS


def _find_first_fitting_turn(turns: Sequence[Sequence[Message]], max_tokens: int) -> int:
    free_tokens = max_tokens
    for index in range(len(turns) - 1, -1, -1):
        free_tokens -= estimate_tokens(turns[index])
        if free_tokens < 0:
            return min(index + 1, len(turns) - 1)
    return 0


def _align_to_step(turns: Sequence[Sequence[Message]], first: int) -> int:
    """Return the first turn from `first` on that begins at or behind the next step.

    Steps are multiples of a power of two of positions. So the cut follows from positions alone, and stays the same for
    several turns: providers cache a prefix that does not change. Where turns are so long that the step would remove
    more than a quarter, the cut moves with every turn.
    """
    starts = [turn[0].position for turn in turns]
    max_extra = (turns[-1][-1].position + 1 - starts[first]) // _MAX_EXTRA_CUT_DIVISOR
    step = 1 << max(0, max_extra.bit_length() - 1)
    aligned = -(-starts[first] // step) * step
    candidates = range(first, len(turns))
    return next((index for index in candidates if aligned <= starts[index] <= starts[first] + max_extra), first)


def _with_note(message: Message) -> Message:
    if message.role != "user":
        return message
    return message.model_copy(update={"content": (TextBlock(text=BEGINNING_OMITTED_NOTE), *message.content)})
