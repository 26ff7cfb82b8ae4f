"""Render the log of a turn as the AI SDK's stream of UI messages: server-sent events, one chunk each (decision 0379).

The chunks are those that the versions 5, 6 and 7 of the npm package `ai` know: one unknown type ends a client's stream.
A client of version 5 knows no approvals; it gets them as data, and the decision goes to the approvals of the service.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from fermata.domain.events import CancelledEvent, DataPartEvent, ErrorEvent, Event
from fermata.wire.http.messages import EVENT_STREAM
from fermata.wire.renderers.turn_fold import TurnFold
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

UiChunk: TypeAlias = dict[str, Any]
AiSdkVersion = Literal[5, 6, 7]
UI_STREAM_HEADERS = {
    "Content-Type": EVENT_STREAM,
    "Cache-Control": "no-cache",
    "X-Accel-Buffering": "no",
    "X-Vercel-AI-UI-Message-Stream": "v1",
}
END_OF_UI_STREAM = b"data: [DONE]\n\n"
DENIED_WORDS = "A person has denied this call."
CUT_OFF_WORDS = "The answer goes on, and this connection has reached its limit. Resume the stream."


class UiStreamRenderer:
    """Renders one response: the segments of a turn from one on, as one assistant message.

    Args:
        fold: The fold of the turn, before its first entry.
        message_id: The id that the client has given the message already; empty for the turn's own id.
        first_segment: The first one that the client does not have.
        sdk: The version of the client.
    """

    def __init__(self, fold: TurnFold, *, message_id: str = "", first_segment: int = 0, sdk: AiSdkVersion = 6) -> None:
        self._fold = fold
        self._message_id = message_id
        self._first_segment = first_segment
        self._sdk = sdk
        self._has_started = False
        self._is_step_open = False
        self._open_part: tuple[str, str] | None = None
        """Type and id of the text or reasoning that is not ended."""
        self._part_count = 0
        self._is_held = False
        self._is_over = False

    def render_events(self, events: Sequence[Event]) -> bytes:
        """Return the chunks of an entry that the client does not have."""
        steps = self._fold.fold(events)
        chunks: list[UiChunk] = []
        if not self._has_started and self._fold.segment >= self._first_segment:
            self._has_started = True
            chunks.append({"type": "start", "messageId": self._message_id or self._fold.bridge_id})
        for segment, step in steps:
            if segment >= self._first_segment:
                chunks += self._render(step)
        return encode_chunks(chunks)

    def is_response_over(self) -> bool:
        """Return whether the turn is over, or waits for its client."""
        return self._fold.is_over or self._is_held or self._fold.waits_for_client

    def render_end(self) -> bytes:
        """Return what comes after the last entry of the response."""
        chunks: list[UiChunk] = []
        if not self._has_started:  # nothing is new: an empty step, so that no client sends its results once more
            chunks += [{"type": "start", "messageId": self._message_id or self._fold.bridge_id}]
            chunks += [{"type": "start-step"}, {"type": "finish-step"}]
        if not self._is_over:
            chunks += self._close_step()
            reason = "tool-calls" if self._fold.waits_for_client else "other"
            is_cut_off = not self.is_response_over()
            chunks.append(_error_chunk(CUT_OFF_WORDS) if is_cut_off else {"type": "finish", "finishReason": reason})
        return encode_chunks(chunks) + END_OF_UI_STREAM

    def _render(self, step: TurnStep) -> Iterator[UiChunk]:
        match step:
            case RoundBegun():
                yield from self._close_step()
                self._is_step_open = True
                yield {"type": "start-step"}
            case TextPiece():
                yield from self._open("text")
                yield self._delta(step.text)
            case ReasoningPiece():
                yield from self._open("reasoning")
                yield self._delta(step.text)
            case TextRetracted():
                yield from self._close_part()
            case _:
                yield from self._close_part()
                yield from self._render_whole(step)

    def _render_whole(self, step: TurnStep) -> Iterator[UiChunk]:
        match step:
            case CallShown():
                yield from self._render_call(step)
            case ApprovalShown():
                yield self._render_approval(step)
            case CallAnswered():
                yield from self._render_answer(step)
            case NoticeShown():
                data = {"message": step.message} | ({"code": step.code} if step.code else {})
                yield {"type": "data-warning", "data": data}
            case DataPartShown():
                yield _build_data_part(step.part)
            case UsageShown():
                yield {"type": "data-usage", "data": _without_type(step.usage), "transient": True}
            case HoldShown():
                self._is_held = True
                yield {"type": "data-held", "data": {"until": step.until}, "transient": True}
            case TurnOver():
                self._is_over = True
                yield from self._render_over(step)

    def _render_call(self, step: CallShown) -> Iterator[UiChunk]:
        call = {"toolCallId": step.call_id, "toolName": step.tool_name}
        tool_input = {} if step.input is None else step.input
        yield {"type": "tool-input-start", **call}
        if step.is_settled:  # a call that is available is run by the client
            text = json.dumps(tool_input, ensure_ascii=False, separators=(",", ":"))
            yield {"type": "tool-input-delta", "toolCallId": step.call_id, "inputTextDelta": text}
        else:
            yield {"type": "tool-input-available", **call, "input": tool_input}

    def _render_approval(self, step: ApprovalShown) -> UiChunk:
        request = step.request
        if self._sdk > 5:
            ids = {"approvalId": request.approval_id, "toolCallId": step.call_id}
            return {"type": "tool-approval-request", **ids}
        return {"type": "data-approval", "id": request.approval_id, "data": _without_type(request)}

    def _render_answer(self, step: CallAnswered) -> Iterator[UiChunk]:
        call = {"toolCallId": step.call_id}
        if step.is_from_client and step.call_id not in self._fold.settled:
            return  # the client has it
        if step.is_denied and self._sdk > 5:
            yield {"type": "tool-output-denied", **call}
        elif step.ok:
            yield {"type": "tool-output-available", **call, "output": step.output}
        else:
            error = DENIED_WORDS if step.is_denied else step.error
            yield {"type": "tool-output-error", **call, "errorText": error}

    def _render_over(self, step: TurnOver) -> Iterator[UiChunk]:
        """End the message. Behind a step with calls comes an empty one, so that no client sends their results."""
        if step.has_open_step:
            yield from self._close_step()
            self._is_step_open = True
            yield {"type": "start-step"}
        match step.end:
            case ErrorEvent(message=message):
                yield _error_chunk(message)
                yield from self._close_step()
                if self._part_count or step.has_open_step:
                    yield {"type": "finish", "finishReason": "error"}
            case CancelledEvent(reason=reason):
                yield from self._close_step()
                yield {"type": "abort"} | ({"reason": reason} if reason else {})
            case _:
                yield from self._close_step()
                yield {"type": "finish", "finishReason": "stop"}

    def _open(self, kind: str) -> Iterator[UiChunk]:
        if self._open_part and self._open_part[0] == kind:
            return
        yield from self._close_part()
        self._part_count += 1
        self._open_part = (kind, f"{kind}-{self._part_count}")
        yield {"type": f"{kind}-start", "id": self._open_part[1]}

    def _delta(self, text: str) -> UiChunk:
        assert self._open_part, text
        kind, part_id = self._open_part
        return {"type": f"{kind}-delta", "id": part_id, "delta": text}

    def _close_part(self) -> Iterator[UiChunk]:
        if self._open_part:
            kind, part_id = self._open_part
            self._open_part = None
            yield {"type": f"{kind}-end", "id": part_id}

    def _close_step(self) -> Iterator[UiChunk]:
        yield from self._close_part()
        if self._is_step_open:
            self._is_step_open = False
            yield {"type": "finish-step"}


class PlainTextRenderer:
    """Renders a turn as its text only, for callers that read `text/plain`."""

    def __init__(self, fold: TurnFold) -> None:
        """Begin before the first entry.

        Args:
            fold: The fold of the turn.
        """
        self._fold = fold
        self._is_held = False

    def render_events(self, events: Sequence[Event]) -> bytes:
        """Return the text of an entry."""
        steps = [step for _, step in self._fold.fold(events)]
        self._is_held = self._is_held or any(isinstance(step, HoldShown) for step in steps)
        return "".join(step.text for step in steps if isinstance(step, TextPiece)).encode()

    def is_response_over(self) -> bool:
        """Return whether the turn is over, or waits for a person."""
        return self._fold.is_over or self._is_held or self._fold.waits_for_client


def encode_chunks(chunks: Sequence[Mapping[str, Any]]) -> bytes:
    """Return values as server-sent events, each on one line."""
    lines = (json.dumps(chunk, ensure_ascii=False, separators=(",", ":")) for chunk in chunks)
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def _error_chunk(text: str) -> UiChunk:
    return {"type": "error", "errorText": text}


def _build_data_part(part: DataPartEvent) -> UiChunk:
    identity = {"id": part.part_id} if part.part_id else {}
    return {"type": part.name, **identity, "data": part.data, **({"transient": True} if part.transient else {})}


def _without_type(event: Event) -> dict[str, Any]:
    return {name: value for name, value in event.to_wire().items() if name != "type"}
