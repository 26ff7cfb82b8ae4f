"""Render the log of a turn as the events of AG-UI 1.0, as one run of its thread (decision 0379).

A run ends where its client has to act: with the calls that its front end runs, or with interrupts for its user. The
next run of the thread goes on behind it. Optional members are absent, never null.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from fermata.domain.events import CancelledEvent, ErrorEvent, Event
from fermata.domain.value_dataclass import value_dataclass
from fermata.wire.http.messages import EVENT_STREAM
from fermata.wire.renderers.turn_fold import FoldedCall, TurnFold
from fermata.wire.renderers.turn_steps import (
    ApprovalShown,
    CallAnswered,
    CallShown,
    DataPartShown,
    HoldShown,
    NoticeShown,
    ReasoningPiece,
    RoundBegun,
    TextPiece,
    TextRetracted,
    TurnOver,
    TurnStep,
    UsageShown,
)
from fermata.wire.renderers.ui_stream import CUT_OFF_WORDS, DENIED_WORDS, encode_chunks

AguiEvent: TypeAlias = dict[str, Any]
AGUI_PROTOCOL_VERSION = "1.0"
AGUI_HEADERS = {"Content-Type": EVENT_STREAM, "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
PAGE_STATE_TOOL = "update-page-state"
"""The tool whose calls change the state that a client shares."""
APPROVAL_RESPONSE_SCHEMA = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "reason": {"type": "string"},
        "input": {"type": "object", "description": "Another input for the call."},
    },
    "required": ["approved"],
}


@value_dataclass(frozen=True)
class AguiRun:
    """What a client has named of a run. `state` is the shared state that it has sent; None for none."""

    thread_id: str
    run_id: str
    state: Any = None


class AguiRenderer:
    """Renders one run: the segments of a turn from one on.

    Args:
        fold: The fold of the turn, before its first entry.
        run: The run.
        first_segment: The first one that the client does not have.
    """

    def __init__(self, fold: TurnFold, run: AguiRun, *, first_segment: int = 0) -> None:
        self._fold = fold
        self._run = run
        self._first_segment = first_segment
        self._has_started = False
        self._round = 0
        self._open_step = ""
        self._open_message: tuple[str, str] | None = None
        """Kind and id of the text or reasoning that is not ended."""
        self._message_counts: dict[str, int] = {}
        self._usage: list[dict[str, Any]] = []
        self._is_held = False
        self._is_over = False

    def render_events(self, events: Sequence[Event]) -> bytes:
        """Return the events of an entry that the client does not have."""
        steps = self._fold.fold(events)
        shown: list[AguiEvent] = []
        for segment, step in steps:
            if isinstance(step, RoundBegun):
                self._round = step.round
            if segment >= self._first_segment:
                shown += self._render(step)
        is_first = not self._has_started and self._fold.segment >= self._first_segment
        self._has_started = self._has_started or is_first
        return encode_chunks([*(self._begin() if is_first else ()), *shown])

    def is_response_over(self) -> bool:
        """Return whether the turn is over, or waits for its client."""
        return self._fold.is_over or self._is_held or self._fold.waits_for_client

    def render_end(self) -> bytes:
        """Return what comes after the last entry of the run."""
        events: list[AguiEvent] = [] if self._has_started else [*self._begin()]
        if not self._is_over:
            events += self._close_step()
            if self.is_response_over():
                events.append(self._finish(self._describe_wait()))
            else:
                events.append({"type": "RUN_ERROR", "message": CUT_OFF_WORDS, "code": "cut_off"})
        return encode_chunks(events)

    def _begin(self) -> Iterator[AguiEvent]:
        yield {"type": "RUN_STARTED", **self._ids(), "protocolVersion": AGUI_PROTOCOL_VERSION}
        if self._run.state:
            yield {"type": "STATE_SNAPSHOT", "snapshot": self._run.state}

    def _ids(self) -> dict[str, str]:
        return {"threadId": self._run.thread_id, "runId": self._run.run_id}

    def _finish(self, outcome: Mapping[str, Any]) -> AguiEvent:
        usage = {"usage": self._usage} if self._usage else {}
        return {"type": "RUN_FINISHED", **self._ids(), "outcome": dict(outcome), **usage}

    def _describe_wait(self) -> dict[str, Any]:
        waiting = [call for call in self._fold.list_waiting_calls() if call.is_shown]
        interrupts = [_build_interrupt(call) for call in waiting if call.waits_for_approval]
        if interrupts:
            return {"type": "interrupt", "interrupts": interrupts}
        pending = [call.call_id for call in waiting if call.is_browser]
        return {"type": "success"} | ({"pendingToolCallIds": pending} if pending else {})

    def _render(self, step: TurnStep) -> Iterator[AguiEvent]:
        match step:
            case RoundBegun():
                yield from self._close_step()
                self._open_step = f"round {step.round}"
                yield {"type": "STEP_STARTED", "stepName": self._open_step}
            case TextPiece():
                yield from self._open("TEXT")
                yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": self._open_id, "delta": step.text}
            case ReasoningPiece():
                yield from self._open("REASONING")
                yield {"type": "REASONING_MESSAGE_CONTENT", "messageId": self._open_id, "delta": step.text}
            case TextRetracted():
                yield from self._close_message()
            case _:
                yield from self._close_message()
                yield from self._render_whole(step)

    def _render_whole(self, step: TurnStep) -> Iterator[AguiEvent]:
        match step:
            case CallShown():
                yield from self._render_call(step)
            case CallAnswered():
                yield from self._render_answer(step)
            case NoticeShown():
                value = {"message": step.message} | ({"code": step.code} if step.code else {})
                yield {"type": "CUSTOM", "name": "warning", "value": value}
            case DataPartShown(part=part):
                yield {"type": "CUSTOM", "name": part.name, "value": part.data}
            case UsageShown(usage=usage):
                counts = {"inputTokens": usage.prompt_tokens, "outputTokens": usage.completion_tokens}
                self._usage = [counts | {"totalTokens": usage.prompt_tokens + usage.completion_tokens}]
            case HoldShown():
                self._is_held = True
            case TurnOver():
                self._is_over = True
                yield from self._render_over(step)
            case ApprovalShown():
                return  # the run ends with it

    def _render_call(self, step: CallShown) -> Iterator[AguiEvent]:
        if self._fold.shown_in.get(step.call_id) != self._fold.segment:
            return  # the thread has it already
        call = {"toolCallId": step.call_id}
        text = json.dumps({} if step.input is None else step.input, ensure_ascii=False, separators=(",", ":"))
        parent = {"parentMessageId": self._message_id}
        yield {"type": "TOOL_CALL_START", **call, "toolCallName": step.tool_name, **parent}
        yield {"type": "TOOL_CALL_ARGS", **call, "delta": text}
        yield {"type": "TOOL_CALL_END", **call}

    def _render_answer(self, step: CallAnswered) -> Iterator[AguiEvent]:
        if step.is_from_client and step.call_id not in self._fold.settled:
            return  # the thread has it
        content = DENIED_WORDS if step.is_denied else step.error
        if step.ok:
            content = step.output if isinstance(step.output, str) else json.dumps(step.output, ensure_ascii=False)
        ids = {"messageId": f"{step.call_id}-result", "toolCallId": step.call_id}
        yield {"type": "TOOL_CALL_RESULT", **ids, "content": content, "role": "tool"}
        if delta := self._build_state_delta(step):
            yield {"type": "STATE_DELTA", "delta": delta}

    def _build_state_delta(self, step: CallAnswered) -> list[dict[str, Any]]:
        """Return what a call has changed of the shared state, as JSON Patch."""
        written = step.output.get("written") if isinstance(step.output, dict) else None
        if step.tool_name != PAGE_STATE_TOOL or not step.ok or not isinstance(written, list):
            return []
        given = self._fold.calls[step.call_id].input
        updates = given.get("updates", {}) if isinstance(given, dict) else {}
        return [{"op": "add", "path": f"/{_escape_pointer(key)}", "value": updates[key]} for key in written]

    def _render_over(self, step: TurnOver) -> Iterator[AguiEvent]:
        yield from self._close_step()
        match step.end:
            case ErrorEvent(message=message, code=code):
                yield {"type": "RUN_ERROR", "message": message} | ({"code": code} if code else {})
            case CancelledEvent():
                yield self._finish({"type": "cancelled"})
            case _:
                yield self._finish({"type": "success"})

    @property
    def _message_id(self) -> str:
        """The id of the round's message, to which its calls belong too."""
        return f"{self._fold.bridge_id}-{self._round}"

    @property
    def _open_id(self) -> str:
        assert self._open_message
        return self._open_message[1]

    def _open(self, kind: str) -> Iterator[AguiEvent]:
        if self._open_message and self._open_message[0] == kind:
            return
        yield from self._close_message()
        name = self._message_id if kind == "TEXT" else f"{self._message_id}-reasoning"
        count = self._message_counts[name] = self._message_counts.get(name, 0) + 1
        message_id = name if count == 1 else f"{name}-{count}"
        self._open_message = (kind, message_id)
        if kind == "TEXT":
            yield {"type": "TEXT_MESSAGE_START", "messageId": message_id, "role": "assistant"}
        else:
            yield {"type": "REASONING_START", "messageId": message_id}
            yield {"type": "REASONING_MESSAGE_START", "messageId": message_id, "role": "reasoning"}

    def _close_message(self) -> Iterator[AguiEvent]:
        if not self._open_message:
            return
        kind, message_id = self._open_message
        self._open_message = None
        yield {"type": f"{kind}_MESSAGE_END", "messageId": message_id}
        if kind == "REASONING":
            yield {"type": "REASONING_END", "messageId": message_id}

    def _close_step(self) -> Iterator[AguiEvent]:
        yield from self._close_message()
        if self._open_step:
            yield {"type": "STEP_FINISHED", "stepName": self._open_step}
            self._open_step = ""


def _escape_pointer(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _build_interrupt(call: FoldedCall) -> dict[str, Any]:
    request = call.approval
    assert request is not None, call.call_id
    return {
        "id": request.approval_id,
        "reason": "tool_call",
        "message": request.description,
        "toolCallId": call.call_id,
        "responseSchema": APPROVAL_RESPONSE_SCHEMA,
        "expiresAt": request.deadline,
    }
