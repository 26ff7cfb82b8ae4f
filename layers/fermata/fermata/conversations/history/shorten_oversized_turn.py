"""Fit a turn that is too long by itself into the model's window (decision 0200).

The newest results, which the model has just asked for and not read yet, are always there: cut to what fits, with a note
of what is missing. Room is made by what is older, in this order:

1. Older results are cut to a share of the window each, the oldest first, until what is newer fits (decision 0357).
2. The oldest of them are left out.
3. The oldest rounds are left out.

Each step removes more than it must, so that the beginning of the next requests stays the same: providers cache a prefix
that does not change.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.result_cutting import (
    MIN_RESULT_TOKENS,
    cut_reply,
    cut_result,
    make_left_out_result,
)
from fermata.conversations.history.stale_results import is_success, with_only_block
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.domain.blocks import TextBlock
from fermata.domain.json_shortening import share_room
from fermata.domain.messages import Message
from fermata.domain.value_dataclass import value_dataclass

FetchBlocks = Callable[[Sequence[Message]], Sequence[Message]]
"""Fetches the blocks of messages that are in S3."""

ROUNDS_OMITTED_NOTE = (
    "[The first steps of your work on this are left out here, because they no longer fit into your context window.]"
)
_NOTE_TOKENS = 40
_OLDER_RESULT_DIVISOR = 5
"""An older result has at most a fifth of the window."""
_NEWEST_RESULTS_DIVISOR = 2
"""The newest results have half of the window, if they need it, and more if it is free."""
_STEP_DIVISOR = 4
"""When results or rounds are left out, a quarter of the window is freed at once."""
_CUT_STEP_DIVISOR = 10
"""When older results are cut, a tenth of the window is freed at once."""


def fit_history(messages: Sequence[Message], profile: ModelProfile, fetch: FetchBlocks = list) -> list[Message]:
    """Return messages that fit the window, with the newest results among them. Older turns are cut away before.

    The messages are longer than the window only if the prompt is, or nearly so.
    """
    limit = profile.max_history_tokens
    if estimate_tokens(messages) <= limit:
        return list(messages)
    split = _Turn.split(messages)
    turn, shares = _make_room_among_older_results(split, limit)
    turn = _omit_oldest_rounds(turn, limit)
    older = _cut_results(turn.older, shares[len(split.older) - len(turn.older) :], fetch)
    room = limit - estimate_tokens([*turn.prompts, *older])
    reply = turn.reply
    if estimate_tokens(reply) > room - MIN_RESULT_TOKENS * len(turn.newest):
        reply = [cut_reply(message, room // 2) for message in fetch(reply)]
    newest_shares = share_room(_list_sizes(turn.newest), room - estimate_tokens(reply))
    return [*turn.prompts, *older, *reply, *_cut_results(turn.newest, newest_shares, fetch)]


@value_dataclass(frozen=True)
class _Turn:
    """The parts of a turn, in order: its prompts, its older rounds, its last reply, and the unread results of that."""

    prompts: Sequence[Message]
    older: Sequence[Message]
    reply: Sequence[Message]
    newest: Sequence[Message]

    @classmethod
    def split(cls, messages: Sequence[Message]) -> "_Turn":
        replies = _list_replies(messages) or [len(messages)]
        first, last = replies[0], replies[-1]
        return cls(messages[:first], messages[first:last], messages[last : last + 1], messages[last + 1 :])


def _make_room_among_older_results(turn: _Turn, limit: int) -> tuple[_Turn, list[int]]:
    """Cut and leave out the oldest results of the older rounds. Returns the turn, and the size of each older message.

    What becomes of each follows from going through the rounds as the turn did, so that what was cut or left out once
    stays so, and a result that fits stays whole (decision 0357).
    """
    walk = _RoomWalk([*turn.older, *turn.reply, *turn.newest], estimate_tokens(turn.prompts), limit)
    for reply, end in _list_rounds(walk.messages):
        walk.add_round(reply, end)
    older_count = len(turn.older)
    return replace(turn, older=walk.messages[:older_count]), walk.shares[:older_count]


class _RoomWalk:
    """Goes through the rounds of a turn, and makes the room that each of them needs."""

    def __init__(self, messages: list[Message], used: int, limit: int) -> None:
        self.messages = messages
        """Those that are left out are replaced by a note."""
        self.shares = _list_sizes(messages)
        """How many tokens of each message are sent."""
        self._used = used
        self._limit = limit
        self._next_to_cut = 0
        self._next_to_leave_out = 0

    def add_round(self, reply: int, end: int) -> None:
        """Make room for the messages of a round, which are those from the reply to `end`."""
        self._used += self.shares[reply]
        unread = self.messages[reply + 1 : end]
        self._cut_oldest(reply, self._used + estimate_tokens(unread) - self._limit)
        self._leave_out_oldest(reply, self._used + _claim(unread, self._limit) - self._limit)
        shown = share_room(self.shares[reply + 1 : end], self._limit - self._used)
        cut_size = self._limit // _OLDER_RESULT_DIVISOR
        for index, share in enumerate(shown, reply + 1):
            self.shares[index] = max(share, min(self.shares[index], cut_size))
        self._used += sum(self.shares[reply + 1 : end])

    def _cut_oldest(self, end: int, excess: int) -> None:
        """Cut the oldest results before `end` to their part of the window, the last of them by what is needed."""
        if excess <= 0:
            return
        excess += self._limit // _CUT_STEP_DIVISOR
        while self._next_to_cut < end and excess > 0:
            index = self._next_to_cut
            cut = min(excess, self.shares[index] - _capped_size(self.messages[index], self._limit))
            if cut > 0:
                self.shares[index] -= cut
                self._used -= cut
                excess -= cut
            if excess > 0:
                self._next_to_cut += 1

    def _leave_out_oldest(self, end: int, excess: int) -> None:
        """Leave out the oldest results before `end` whose size is worth it."""
        if excess <= 0:
            return
        excess += self._limit // _STEP_DIVISOR
        while self._next_to_leave_out < end and excess > 0:
            index = self._next_to_leave_out
            self._next_to_leave_out += 1
            message = self.messages[index]
            if message.role != "tool" or not is_success(message) or estimate_tokens([message]) <= MIN_RESULT_TOKENS:
                continue
            self.messages[index] = with_only_block(message, make_left_out_result(message.tool_name or ""))
            saved = self.shares[index] - estimate_tokens([self.messages[index]])
            self.shares[index] -= saved
            self._used -= saved
            excess -= saved


def _omit_oldest_rounds(turn: _Turn, limit: int) -> _Turn:
    """Omit the oldest rounds, calls and results, until the newest results have their part of the window."""
    step = max(1, limit // _STEP_DIVISOR)
    used = estimate_tokens([*turn.prompts, *turn.reply]) + sum(_capped_size(message, limit) for message in turn.older)
    excess = used + _claim(turn.newest, limit) - limit
    if excess <= 0 or not turn.older:
        return turn
    freed = 0
    for reply, end in _list_rounds(turn.older):
        freed += sum(_capped_size(message, limit) for message in turn.older[reply:end])
        if freed >= -(-(excess + _NOTE_TOKENS) // step) * step:
            return replace(turn, prompts=_with_note(turn.prompts), older=turn.older[end:])
    return replace(turn, prompts=_with_note(turn.prompts), older=())


def _with_note(prompts: Sequence[Message]) -> list[Message]:
    if not prompts:
        return []
    content = (*prompts[-1].content, TextBlock(text=ROUNDS_OMITTED_NOTE))
    return [*prompts[:-1], prompts[-1].model_copy(update={"content": content})]


def _claim(unread: Sequence[Message], limit: int) -> int:
    return min(estimate_tokens(unread), limit // _NEWEST_RESULTS_DIVISOR)


def _capped_size(message: Message, limit: int) -> int:
    size = estimate_tokens([message])
    return min(size, limit // _OLDER_RESULT_DIVISOR) if message.role == "tool" else size


def _list_sizes(messages: Sequence[Message]) -> list[int]:
    return [estimate_tokens([message]) for message in messages]


def _list_replies(messages: Sequence[Message]) -> list[int]:
    return [index for index, message in enumerate(messages) if message.role == "assistant"]


def _list_rounds(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Return where each round begins, with its reply, and ends."""
    return list(pairwise([*_list_replies(messages), len(messages)]))


def _cut_results(messages: Sequence[Message], max_sizes: Sequence[int], fetch: FetchBlocks) -> list[Message]:
    """Cut each result to its size. Only those that are too long are fetched."""
    shortened = list(messages)
    too_long = [
        index
        for index, size in enumerate(_list_sizes(messages))
        if messages[index].role == "tool" and size > max_sizes[index]
    ]
    for index, message in zip(too_long, fetch([messages[index] for index in too_long]), strict=True):
        shortened[index] = cut_result(message, max_sizes[index])
    return shortened
