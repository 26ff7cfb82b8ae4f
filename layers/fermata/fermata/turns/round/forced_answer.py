"""Decide whether a round is asked without tools, so that the turn ends with an answer (decision 0202).

This follows from the stored messages of the turn, so every invocation decides the same.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from fermata.conversations.call_input_digests import describe_inputs
from fermata.conversations.history.stale_results import is_success
from fermata.domain.events import WarningEvent
from fermata.domain.messages import Message
from fermata.domain.value_dataclass import value_dataclass

ForcedAnswerReason = Literal["roundLimit", "repeatedCall", "repeatedFailures", "turnCost"]

_INSTRUCTION = (
    "{} Tools cannot be called any more in this turn. Answer now, in words: what is done, what is not done and why."
)
_ADVICE = "What it did is kept. Tell it what to do differently, or choose another model."


@value_dataclass(frozen=True)
class ForcedAnswer:
    """Why a round is asked without tools.

    Attributes:
        reason: What the event and the turn's state say.
        instruction: What the model reads.
        warning: What the user reads. A turn that answers in its last round has nothing to warn about.
    """

    reason: ForcedAnswerReason
    instruction: str
    warning: str = ""

    @property
    def warning_events(self) -> tuple[WarningEvent, ...]:
        """The warning that the turn ends with, if there is one."""
        return (WarningEvent(message=self.warning, code=self.reason),) if self.warning else ()


def force_answer_in_last_round(round_: int, max_rounds: int | None) -> ForcedAnswer | None:
    """Return why a round has no tools because the turn may have no further one. None is for any number of rounds."""
    if max_rounds is None or round_ < max_rounds:
        return None
    begun = f"This is step {round_} of {max_rounds}, the last one." if round_ > 1 else "This turn has one step."
    return ForcedAnswer("roundLimit", _INSTRUCTION.format(begun))


def force_answer_after_denied_cost(*, is_cost_denied: bool) -> ForcedAnswer | None:
    """Return why a round has no tools because no person has let the turn go on at its cost."""
    if not is_cost_denied:
        return None
    denied = "This turn was not allowed to go on, because of its cost."
    return ForcedAnswer("turnCost", _INSTRUCTION.format(denied), f"{denied} What it did is kept.")


_Call = tuple[str, str]
"""A tool's name and its input."""


class TurnProgress:
    """What a turn has come to: counts that grow with its messages, so that no round is looked at twice."""

    def __init__(self, turn: str, is_edit: Callable[[str], bool]) -> None:
        """
        Args:
            turn: The turn's id. Messages of other turns do not count.
            is_edit: Whether the tool of that name changes something.
        """
        self._turn = turn
        self._is_edit = is_edit
        self._read_count = 0
        self._counts: Counter[_Call] = Counter()
        """In how many rounds each call was answered since the document was changed by another one."""
        self._most_repeated: _Call = ("", "")
        self._edit_counts: Counter[_Call] = Counter()
        """In how many rounds each edit was done, whatever was done in between."""
        self._newest_edit_counts = (0, 0)
        """Of the last two rounds with edits: how often all of their edits have been done by then."""
        self.failed_rounds = 0
        """Rounds in a row whose calls have all failed."""

    @property
    def most_repeated_call(self) -> tuple[str, int]:
        """The tool of the call that was answered in most rounds, and how many these are."""
        return self._most_repeated[0], self._counts[self._most_repeated]

    @property
    def edits_in_turn(self) -> int:
        """How often the edits of the last two rounds with edits were done: often only if the model goes in circles."""
        return min(self._newest_edit_counts)

    def read_messages(self, stored: Sequence[Message]) -> None:
        """Count the messages that were added since the last time. They end with the last result of a round.

        Args:
            stored: The messages of the conversation, in order; those of the last time and what follows them.
        """
        added = stored[self._read_count :]
        self._read_count = len(stored)
        for round_messages in _group_rounds(message for message in added if message.turn == self._turn):
            self._add_round(round_messages)

    def _add_round(self, messages: list[Message]) -> None:
        """Count the answered calls of a round. What is read again after an edit is not the same any more."""
        reply, *results = messages
        results = [message for message in results if message.role == "tool"]
        if not results:
            return
        inputs = describe_inputs(reply)
        calls = {(result.tool_name or "", inputs.get(result.tool_call_id, "")): result for result in results}
        edits = {call for call, result in calls.items() if is_success(result) and self._is_edit(call[0])}
        if edits:
            self._edit_counts.update(edits)
            newest = min(self._edit_counts[call] for call in edits)
            self._newest_edit_counts = (self._newest_edit_counts[1], newest)
            self._counts = Counter({call: self._counts[call] for call in edits if call in self._counts})
            self._most_repeated = max(self._counts, key=self._counts.__getitem__, default=("", ""))
        self._counts.update(calls.keys())
        self._most_repeated = max(self._most_repeated, *calls, key=self._counts.__getitem__)
        self.failed_rounds = 0 if any(map(is_success, results)) else self.failed_rounds + 1


def force_answer_of_stuck_model(
    progress: TurnProgress, max_repeated_calls: int, max_failed_rounds: int
) -> ForcedAnswer | None:
    """Return why a model that makes no progress gets no more tools.

    Args:
        progress: Of the turn, with all its messages.
        max_repeated_calls: Rounds in which the same call with the same input may be answered; 0 for any number.
        max_failed_rounds: Rounds in a row whose calls may all fail; 0 for any number.
    """
    tool_name, repeated = progress.most_repeated_call
    if max_repeated_calls and repeated >= max_repeated_calls:
        return ForcedAnswer(
            "repeatedCall",
            _INSTRUCTION.format(f"You have called {tool_name} {repeated} times with the same input."),
            f"The model called {tool_name} {repeated} times with the same input, so it had to answer without tools. "
            + _ADVICE,
        )
    if max_repeated_calls and progress.edits_in_turn >= max_repeated_calls:
        return ForcedAnswer(
            "repeatedCall",
            _INSTRUCTION.format(f"You have made the same edits {progress.edits_in_turn} times in turn."),
            f"The model made the same edits {progress.edits_in_turn} times in turn, so it had to answer without tools. "
            + _ADVICE,
        )
    if max_failed_rounds and progress.failed_rounds >= max_failed_rounds:
        return ForcedAnswer(
            "repeatedFailures",
            _INSTRUCTION.format(f"Your calls have failed {progress.failed_rounds} times in a row."),
            f"The model's calls failed {progress.failed_rounds} times in a row, so it had to answer without tools. "
            + _ADVICE,
        )
    return None


def _group_rounds(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """Yield the messages of each round, its reply first."""
    group: list[Message] = []
    for message in messages:
        if message.role == "assistant":
            if group:
                yield group
            group = [message]
        elif group:
            group.append(message)
    if group:
        yield group
