"""Fold the log of a turn into the answers that OpenAI's clients know: text, reasoning and calls of their own tools.

What the service's own tools do is not shown. A response ends where the client's tools have to run, or a person has to
decide about a call; the request with results or decisions goes on behind them. So the fold begins to show when these
are in the log (decisions 0385 and 0441).
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from fermata.domain.base import DomainModel
from fermata.domain.events import ApprovalRequestedEvent, CancelledEvent, ErrorEvent, Event
from fermata.domain.json_shortening import shorten_text
from fermata.domain.value_dataclass import value_dataclass
from fermata.wire.renderers.turn_fold import TurnFold
from fermata.wire.renderers.turn_steps import (
    ApprovalShown,
    CallAnswered,
    CallShown,
    HoldShown,
    ReasoningPiece,
    RoundBegun,
    TextPiece,
    TurnOver,
    TurnStep,
)

HELD_WORDS = "This waits for a decision that is made elsewhere. Ask again when it was made."
UNFINISHED_WORDS = "The answer takes longer than one response may. Send the request again to follow it."
DECISION_TOOL = "decide_approval"
"""The function with which a client of chat completions gets approvals as calls, if it declares it."""
MAX_APPROVAL_INPUT_CHARS = 2_000
"""Of a call's input, in words."""
_CLIENT_ID = re.compile(r"(call|approval|mcpr)_([A-Za-z0-9_-]{1,64})_([0-9]{1,6})")
ApprovalForm = Literal["words", "call", "item"]
"""How a client is asked: in words of the answer, by a call of its function, or by an item of the Responses API."""


@value_dataclass(frozen=True)
class OpenAICall:
    """A call that the client carries out. `arguments` is JSON."""

    call_id: str
    tool_name: str
    arguments: str


@value_dataclass(frozen=True)
class OpenAIApproval:
    """A call that a person has to decide about. `arguments` is JSON."""

    request_id: str
    tool_name: str
    arguments: str


@value_dataclass(frozen=True)
class ClientCallPlace:
    """What an id that a client names is about: a call's place among all of its turn, or the approval of that call."""

    turn: str
    number: int
    is_approval: bool


@value_dataclass(frozen=True)
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

    def subtract(self, others: "TokenTotals") -> "TokenTotals":
        """Return what is left without others that are part of these."""
        return TokenTotals(
            prompt=self.prompt - others.prompt,
            completion=self.completion - others.completion,
            cached=self.cached - others.cached,
        )


AnswerPart: TypeAlias = TextPiece | ReasoningPiece | OpenAICall | OpenAIApproval


def make_client_call_id(turn_id: str, number: int) -> str:
    """Return the id under which a client knows a call.

    Args:
        turn_id: The turn.
        number: The place of the call among all calls of the turn.
    """
    return f"call_{turn_id}_{number}"


def read_client_call_id(call_id: str) -> ClientCallPlace | None:
    """Return what an id that a client names is about; None for an id that is none of ours."""
    matched = _CLIENT_ID.fullmatch(call_id)
    return ClientCallPlace(matched[2], int(matched[3]), matched[1] != "call") if matched else None


@dataclass
class OpenAIAnswer:
    """The answer of one response, entry by entry.

    Attributes:
        turn: The fold of the turn, before its first entry.
        awaited: Ids, as the turn has them, of the calls whose results the request has brought.
        undecided: Ids of the calls about which it has brought decisions.
        approval_form: How the client is asked for approvals.
        calls: The calls that were shown so far.
        failure: Why the turn has failed; None otherwise.
    """

    turn: TurnFold
    awaited: set[str] = field(default_factory=set)
    undecided: set[str] = field(default_factory=set)
    approval_form: ApprovalForm = "words"
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
    def has_begun(self) -> bool:
        """Whether all that the request has brought is in the log, so that what follows is the answer."""
        return not self.awaited and not self.undecided

    @property
    def waits_for_tools(self) -> bool:
        """Whether the client's tools have to run."""
        waiting = self.turn.list_waiting_calls()
        return self.has_begun and self.turn.waits_for_client and waiting[0].request is not None

    @property
    def waits_for_approval(self) -> bool:
        """Whether a person has to decide."""
        return self.has_begun and self.turn.waits_for_client and self.turn.list_waiting_calls()[0].waits_for_approval

    def is_over(self) -> bool:
        """Return whether the response has all of its answer."""
        return self.turn.is_over or self._is_held or self.waits_for_tools or self.waits_for_approval

    @property
    def finish_reason(self) -> str:
        """Why the answer ends, in the words of chat completions."""
        has_call = self.waits_for_tools or (self.waits_for_approval and self.approval_form == "call")
        return "tool_calls" if has_call else "stop"

    def close(self) -> None:
        """Note that the response has reached its limit of time."""
        if not self.is_over() and self.failure is None:
            self.failure = OpenAIFailure(UNFINISHED_WORDS, "timeout", is_final=False)

    def fold(self, events: Sequence[Event]) -> list[AnswerPart]:
        """Return what the client is shown of the next entry."""
        shown: list[AnswerPart] = []
        steps = self.turn.fold(events)
        self.undecided = {call_id for call_id in self.undecided if not self._is_decided(call_id)}
        for _, step in steps:
            if isinstance(step, CallAnswered):
                self.awaited.discard(step.call_id)
            elif self.has_begun or isinstance(step, TurnOver):
                shown += self._show(step)
        return shown

    def _is_decided(self, call_id: str) -> bool:
        call = self.turn.calls.get(call_id)
        return call is not None and (call.is_decided or call.answer is not None)

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
            case ApprovalShown():
                return [self._show_approval(step)]
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

    def _show_approval(self, step: ApprovalShown) -> AnswerPart:
        call, number = self.turn.calls[step.call_id], self.turn.numbers[step.call_id]
        place = f"{self.turn.bridge_id}_{number}"
        match self.approval_form:
            case "item":
                return OpenAIApproval(f"mcpr_{place}", call.tool_name, _write_arguments(call.input))
            case "call":
                self.calls.append(
                    OpenAICall(f"approval_{place}", DECISION_TOOL, _describe_approval(call.tool_name, step.request))
                )
                return self.calls[-1]
            case "words":
                words = _word_approval(call.tool_name, step.request)
                return self._show_text(f"\n\n{words}" if self._pieces and not self._begins_paragraph else words)

    def _show_call(self, step: CallShown) -> list[AnswerPart]:
        call_id = make_client_call_id(self.turn.bridge_id, self.turn.numbers[step.call_id])
        if call_id in self._shown_ids:
            return []  # a person has changed its input; the client has it already
        self._shown_ids.add(call_id)
        self.calls.append(OpenAICall(call_id, step.tool_name, _write_arguments(step.input)))
        return [self.calls[-1]]


def _write_arguments(value: Any) -> str:
    return json.dumps({} if value is None else value, ensure_ascii=False, separators=(",", ":"))


def _describe_approval(tool_name: str, request: ApprovalRequestedEvent) -> str:
    """Return the arguments of the client's function. It answers with `approved`, perhaps `reason` and `input`."""
    described = {
        "approval_id": request.approval_id,
        "tool_name": tool_name,
        "input": request.input,
        "description": request.description,
        "deadline": request.deadline,
    }
    return _write_arguments(described)


def _word_approval(tool_name: str, request: ApprovalRequestedEvent) -> str:
    given = shorten_text(_write_arguments(request.input), MAX_APPROVAL_INPUT_CHARS)
    return (
        f"The call {tool_name} with the input {given} waits for an approval. To decide, answer with nothing but one of "
        f"these lines:\n\napprove {request.approval_id}\ndeny {request.approval_id}"
    )


def _describe_failure(step: TurnOver) -> OpenAIFailure | None:
    match step.end:
        case ErrorEvent():
            return OpenAIFailure(step.end.message, step.end.code or "error", is_final=not step.end.retryable)
        case CancelledEvent():
            return OpenAIFailure(step.end.reason or "The answer was cancelled.", "cancelled", is_final=True)
        case _:
            return None
