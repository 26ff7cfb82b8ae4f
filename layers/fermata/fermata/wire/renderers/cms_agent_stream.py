"""Render the log of a turn as the named server-sent events of the CMS agent's own clients (decision 0453)."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from fermata.domain.events import ApprovalRequestedEvent, CancelledEvent, ErrorEvent, Event, UsageEvent
from fermata.domain.value_dataclass import value_dataclass
from fermata.wire.renderers.turn_fold import TurnFold
from fermata.wire.renderers.turn_steps import (
    ApprovalShown,
    CallAnswered,
    CallShown,
    HoldShown,
    NoticeShown,
    RoundBegun,
    TextPiece,
    TextRetracted,
    TurnOver,
    TurnStep,
    UsageShown,
)

NamedEvent: TypeAlias = tuple[str, dict[str, Any]]
CMS_CUT_OFF_WORDS = "The answer goes on, and this connection has reached its limit. Follow the trace."
_RETRACTED_WORDS = "The text of this step is void, because the model is asked again."
_MAX_STEPS = "max-steps"


@value_dataclass(frozen=True)
class CmsAnswerHead:
    """What is known of an answer before it begins. `prompt` is empty for a stream that is read again.

    `price` is the list price of the model in dollars for a million tokens, of prompts and of answers, if it is known.
    """

    trace_id: str
    session_id: str
    model: str
    prompt: str = ""
    price: tuple[float, float] | None = None


class CmsProgress(NamedTuple):
    """When an entry was stored (epoch milliseconds), and what the turn had used until then."""

    at_ms: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: Decimal = Decimal(0)


@dataclass
class CmsAnswer:
    """An answer as far as it has come. Its text is that of the last step."""

    head: CmsAnswerHead
    text: list[str] = field(default_factory=list)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: list[dict[str, Any]] = field(default_factory=list)
    approvals: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Those that wait, by the ids of their calls."""
    usage: dict[str, Any] | None = None
    finish_reason: str = ""
    failure: ErrorEvent | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the answer as its clients read it."""
        waiting = "approval-required" if self.approvals else "in-progress"
        return {
            "traceId": self.head.trace_id,
            "sessionId": self.head.session_id,
            "text": "".join(self.text),
            "toolCalls": list(self.calls.values()),
            "toolResults": self.results,
            "finishReason": self.finish_reason or waiting,
            "usage": self.usage,
        }


class CmsAgentRenderer:
    """Renders a turn from its first entry on."""

    def __init__(
        self, fold: TurnFold, head: CmsAnswerHead, get_now: Callable[[], str], *, is_whole: bool = False
    ) -> None:
        """Begin before the first entry.

        Args:
            fold: The fold of the turn.
            head: What the answer begins with.
            get_now: Returns the instant of a log event.
            is_whole: Render nothing and end where a person has to decide, for a client that reads the answer at once.
        """
        self.answer = CmsAnswer(head)
        self._fold = fold
        self._get_now = get_now
        self._is_whole = is_whole
        self._has_begun = False
        self._step_number = 0
        self._step_tools: list[str] = []
        self._step_begun = self._progress = CmsProgress()
        self._is_limited = False
        self._held_until = ""

    def see_progress(self, progress: CmsProgress) -> None:
        """Take how far the turn was with the entry whose events are rendered next."""
        self._progress = progress

    def render_events(self, events: Sequence[Event]) -> bytes:
        """Return the events of an entry."""
        named = [] if self._has_begun else list(self._begin())
        for _, step in self._fold.fold(events):
            named += self._render(step)
        return b"" if self._is_whole else encode_named_events(named)

    def is_response_over(self) -> bool:
        """Return whether the turn is over; or waits for a person, for a client that reads the answer at once."""
        waits = self._is_whole and (self._fold.waits_for_client or bool(self._held_until))
        return self._fold.is_over or waits

    def render_end(self) -> bytes:
        """Return what comes after the last entry: the end of a stream whose turn goes on."""
        if self._fold.is_over or self._is_whole:
            return b""
        ids = self._ids()
        if self._held_until:
            return encode_named_events([("done", ids | {"heldUntil": self._held_until})])
        return encode_named_events([("error", {"traceId": ids["traceId"], "error": CMS_CUT_OFF_WORDS}), ("done", ids)])

    def _ids(self) -> dict[str, Any]:
        return {"traceId": self.answer.head.trace_id, "sessionId": self.answer.head.session_id}

    def _begin(self) -> Iterator[NamedEvent]:
        self._has_begun = True
        yield self._log("info", "The agent begins.")
        price = self.answer.head.price
        shown = {"inputPerMTok": price[0], "outputPerMTok": price[1], "currency": "USD"} if price else None
        yield "model-info", {"modelId": self.answer.head.model, "pricing": shown}
        if self.answer.head.prompt:
            yield "user-prompt", {"prompt": self.answer.head.prompt}

    def _log(self, level: str, message: str, **metadata: Any) -> NamedEvent:
        line = {"level": level, "message": message, "metadata": metadata, "timestamp": self._get_now()}
        return "log", {"traceId": self.answer.head.trace_id} | line

    def _render(self, step: TurnStep) -> Iterator[NamedEvent]:
        match step:
            case RoundBegun():
                yield from self._end_step("tool-calls")
                self._step_number, self._step_begun = step.round, self._progress
                self.answer.text.clear()
                yield "step-start", {"stepNumber": step.round}
            case TextPiece():
                self.answer.text.append(step.text)
                yield "text-delta", {"delta": step.text}
            case TextRetracted():
                self.answer.text.clear()
                yield self._log("warn", _RETRACTED_WORDS)
            case CallShown() | ApprovalShown() | CallAnswered():
                yield self._render_call(step)
            case NoticeShown():
                self._is_limited = self._is_limited or step.code == "roundLimit"
                yield self._log("warn", step.message, **({"code": step.code} if step.code else {}))
            case HoldShown():
                self._held_until = step.until
                yield self._log("info", "The turn waits for a person.", until=step.until)
            case UsageShown():
                self.answer.usage = _describe_usage(step.usage)
            case TurnOver():
                yield from self._end(step)

    def _render_call(self, step: CallShown | ApprovalShown | CallAnswered) -> NamedEvent:
        match step:
            case CallShown():
                call = {"toolCallId": step.call_id, "toolName": step.tool_name, "args": step.input}
                self.answer.calls[step.call_id] = call
                return "tool-call", {"toolName": step.tool_name, "toolCallId": step.call_id, "args": step.input}
            case ApprovalShown():
                approval = describe_cms_approval(step.request, step.call_id)
                self.answer.approvals[step.call_id] = approval
                return "approval-required", approval
            case CallAnswered():
                self._held_until = ""
                self.answer.approvals.pop(step.call_id, None)
                self._step_tools.append(step.tool_name)
                return self._render_answer(step)

    def _render_answer(self, step: CallAnswered) -> NamedEvent:
        call = {"toolCallId": step.call_id, "toolName": step.tool_name}
        if step.is_denied:
            result: Any = {"success": False, "cancelled": True, "reason": step.denial_reason}
        elif step.ok:
            result = step.output
        else:
            own = step.output if isinstance(step.output, dict) else {}
            self.answer.results.append(call | {"result": {"success": False, "error": step.error} | own})
            return "tool-error", call | {"error": step.error} | own
        self.answer.results.append(call | {"result": result})
        return "tool-result", call | {"result": result}

    def _end_step(self, reason: str) -> Iterator[NamedEvent]:
        if self._step_number:
            measured = {"duration": self._progress.at_ms - self._step_begun.at_ms, "usage": self._describe_step_usage()}
            yield "step-finish", {"stepNumber": self._step_number, **measured, "finishReason": reason}
            yield "step-completed", {"toolsExecuted": self._step_tools, "finishReason": reason}
            self._step_number, self._step_tools = 0, []

    def _describe_step_usage(self) -> dict[str, Any]:
        begun, now = self._step_begun, self._progress
        prompt, completion = now.prompt_tokens - begun.prompt_tokens, now.completion_tokens - begun.completion_tokens
        return _describe_tokens(prompt, completion, float(now.cost_usd - begun.cost_usd))

    def _end(self, step: TurnOver) -> Iterator[NamedEvent]:
        match step.end:
            case ErrorEvent():
                self.answer.failure, reason = step.end, "error"
            case CancelledEvent():
                reason = "cancelled"
            case _:
                reason = _MAX_STEPS if self._is_limited else "stop"
        self.answer.finish_reason = reason
        self.answer.approvals.clear()
        yield from self._end_step(reason)
        if self.answer.failure is not None:
            yield "error", {"traceId": self.answer.head.trace_id, "error": self.answer.failure.message}
        else:
            count = len(self.answer.calls)
            yield "finish", {"finishReason": reason, "usage": self.answer.usage, "toolCallsCount": count}
            yield "result", self.answer.to_wire()
        yield "done", self._ids()


def describe_cms_approval(request: ApprovalRequestedEvent, call_id: str) -> dict[str, Any]:
    """Return an approval as its clients show it to a person.

    Args:
        request: The approval.
        call_id: The call, as the clients know it.
    """
    return {
        "approvalId": request.approval_id,
        "toolCallId": call_id,
        "toolName": request.tool_name,
        "input": request.input,
        "description": request.description,
        "timestamp": request.timestamp,
    }


def encode_named_events(events: Sequence[NamedEvent]) -> bytes:
    """Return server-sent events, each with its name and its data on one line."""
    return "".join(
        f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"
        for name, data in events
    ).encode()


def _describe_usage(usage: UsageEvent) -> dict[str, Any]:
    return _describe_tokens(usage.prompt_tokens, usage.completion_tokens, usage.cost_usd)


def _describe_tokens(prompt: int, completion: int, cost_usd: float) -> dict[str, Any]:
    tokens = {"inputTokens": prompt, "outputTokens": completion, "totalTokens": prompt + completion}
    return tokens | {"costUsd": cost_usd}
