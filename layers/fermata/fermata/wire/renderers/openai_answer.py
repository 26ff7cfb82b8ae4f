"""Fold the log of a turn into the answers that OpenAI's clients know: text, reasoning and calls of their own tools.

What the service's own tools do is not shown. A response ends where the client's tools have to run; the request with
their results goes on behind them. So the fold begins to show when those results are in the log (decision 0385).
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from fermata.domain.base import DomainModel
from fermata.domain.events import CancelledEvent, ErrorEvent, Event
from fermata.wire.renderers.turn_steps import (
    CallAnswered,
    CallShown,
    HoldShown,
    ReasoningPiece,
    RoundBegun,
    TextPiece,
    TurnFold,
    TurnOver,
    TurnStep,
)

HELD_WORDS = "This waits for a decision that is made elsewhere. Ask again when it was made."
UNFINISHED_WORDS = "The answer takes longer than one response may. Send the request again to follow it."
_CALL_ID = re.compile(r"call_([A-Za-z0-9_-]{1,64})_([0-9]{1,6})")


@dataclass(frozen=True)
class OpenAICall:
    """A call that the client carries out. `arguments` is JSON."""

    call_id: str
    tool_name: str
    arguments: str


@dataclass(frozen=True)
class OpenAIFailure:
    """Why there is no answer. `is_final`: the same request would fail again."""

    message: str
    code: str
    is_final: bool


class TokenTotals(DomainModel):
    """The tokens of a response, over all of its model requests."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


AnswerPart: TypeAlias = TextPiece | ReasoningPiece | OpenAICall


def make_client_call_id(turn_id: str, number: int) -> str:
    """Return the id under which a client knows a call.

    Args:
        turn_id: The turn.
        number: The place of the call among all calls of the turn.
    """
    return f"call_{turn_id}_{number}"


def read_client_call_id(call_id: str) -> tuple[str, int] | None:
    """Return the turn and the place of a call that a client names; None for an id that is none of ours."""
    matched = _CALL_ID.fullmatch(call_id)
    return (matched[1], int(matched[2])) if matched else None


@dataclass
class OpenAIAnswer:
    """The answer of one response, entry by entry.

    Attributes:
        turn: The fold of the turn, before its first entry.
        awaited: Ids, as the turn has them, of the calls whose results the request has brought.
        calls: The calls that were shown so far.
        failure: Why the turn has failed; None otherwise.
    """

    turn: TurnFold
    awaited: set[str] = field(default_factory=set)
    calls: list[OpenAICall] = field(default_factory=list)
    failure: OpenAIFailure | None = None
    _pieces: list[str] = field(default_factory=list)
    _shown_ids: set[str] = field(default_factory=set)
    _is_held: bool = False
    _begins_paragraph: bool = False

    @property
    def text(self) -> str:
        """What was shown so far."""
        return "".join(self._pieces)

    @property
    def waits_for_tools(self) -> bool:
        """Whether the client's tools have to run."""
        waiting = self.turn.list_waiting_calls()
        return not self.awaited and self.turn.waits_for_client and waiting[0].request is not None

    def is_over(self) -> bool:
        """Return whether the response has all of its answer."""
        return self.turn.is_over or self._is_held or self.waits_for_tools

    @property
    def finish_reason(self) -> str:
        """Why the answer ends, in the words of chat completions."""
        return "tool_calls" if self.waits_for_tools else "stop"

    def close(self) -> None:
        """Note that the response has reached its limit of time."""
        if not self.is_over() and self.failure is None:
            self.failure = OpenAIFailure(UNFINISHED_WORDS, "timeout", is_final=False)

    def fold(self, events: Sequence[Event]) -> list[AnswerPart]:
        """Return what the client is shown of the next entry."""
        shown: list[AnswerPart] = []
        for _, step in self.turn.fold(events):
            if isinstance(step, CallAnswered):
                self.awaited.discard(step.call_id)
            elif not self.awaited:
                shown += self._show(step)
        return shown

    def _show(self, step: TurnStep) -> list[AnswerPart]:
        match step:
            case RoundBegun():
                self._begins_paragraph = bool(self._pieces)
            case TextPiece():
                return [self._show_text(step.text)]
            case ReasoningPiece():
                return [step]
            case CallShown() if step.is_for_client:
                return self._show_call(step)
            case HoldShown():
                self._is_held = True
                return [self._show_text(f"\n\n{HELD_WORDS}" if self._pieces else HELD_WORDS)]
            case TurnOver():
                self.failure = _describe_failure(step)
        return []

    def _show_text(self, text: str) -> TextPiece:
        piece = f"\n\n{text}" if self._begins_paragraph else text
        self._begins_paragraph = False
        self._pieces.append(piece)
        return TextPiece(piece)

    def _show_call(self, step: CallShown) -> list[AnswerPart]:
        call_id = make_client_call_id(self.turn.bridge_id, self.turn.numbers[step.call_id])
        if call_id in self._shown_ids:
            return []  # a person has changed its input; the client has it already
        self._shown_ids.add(call_id)
        arguments = json.dumps({} if step.input is None else step.input, ensure_ascii=False, separators=(",", ":"))
        self.calls.append(OpenAICall(call_id, step.tool_name, arguments))
        return [self.calls[-1]]


def _describe_failure(step: TurnOver) -> OpenAIFailure | None:
    match step.end:
        case ErrorEvent():
            return OpenAIFailure(step.end.message, step.end.code or "error", is_final=not step.end.retryable)
        case CancelledEvent():
            return OpenAIFailure(step.end.reason or "The answer was cancelled.", "cancelled", is_final=True)
        case _:
            return None
