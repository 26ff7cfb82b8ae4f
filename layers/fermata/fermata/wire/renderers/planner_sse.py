"""Render the log of a planner's turn as frames: unnamed server-sent events with `_seq` (decision 0340).

A pure fold: a reader that returns with `afterSeq` folds the log from its beginning, and gets the frames behind it.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fermata.domain.events import (
    ApprovalRequestedEvent,
    BridgeReadyEvent,
    CancelledEvent,
    DoneEvent,
    EditPlanEvent,
    ErrorEvent,
    Event,
    HeldEvent,
    ReasoningEvent,
    RoundRetractedEvent,
    TextEvent,
    ToolCallEvent,
    ToolResultEvent,
    WarningEvent,
)
from fermata.wire.bodies.planner_frames import (
    CanceledFrame,
    ChangelogEntryFrame,
    ErrorFrame,
    FinalFrame,
    HeartbeatFrame,
    ImageProgressFrame,
    OpAppliedFrame,
    OpCandidateFrame,
    OpSkippedFrame,
    PlanMetaFrame,
    PlannerFrame,
    RollbackDoneFrame,
    RollbackStartedFrame,
    StatusFrame,
    SummaryTokenFrame,
    ThinkingEndFrame,
    ThinkingStartFrame,
    ThinkingTokenFrame,
    TokenFrame,
)
from fermata.wire.renderers.planner_result import VALIDATION_STATUS, build_result

FRAMES_PER_EVENT = 1000
"""`_seq` is the number of the event times this, plus the place of the frame. The second half is for heartbeats."""
PLAN_TOOL = "submit_edit_plan"
_PLANNING, _APPLYING = ("planning", "Planning the changes"), ("applying", "Applying the changes")


class PlannerFold:
    """The frames of one turn, event by event."""

    def __init__(self, model: str = "") -> None:
        """Begin before the first event.

        Args:
            model: The name of the model, for the result.
        """
        self.stage = _PLANNING
        self.result: dict[str, Any] | None = None
        """What the turn has come to, once it has ended."""
        self._model = model
        self._is_thinking = False
        self._pieces: list[str] = []
        self._outcome: Mapping[str, Any] | None = None
        self._is_answered = False
        self._deferred_images = 0

    def fold(self, event: Event) -> list[PlannerFrame]:
        """Return the frames of the next event."""
        frames = list(self._render(event))
        if self._is_thinking and not isinstance(event, ReasoningEvent) and frames:
            self._is_thinking = False
            frames.insert(0, ThinkingEndFrame())
        return frames

    def _render(self, event: Event) -> Iterator[PlannerFrame]:
        match event:
            case BridgeReadyEvent():
                yield StatusFrame(message="Planning your update…")
            case ReasoningEvent():
                yield from self._render_thinking(event.text)
            case TextEvent():
                yield from self._render_text(event.text)
            case RoundRetractedEvent():
                self._pieces.clear()
                yield StatusFrame(message="The connection to the model was lost. Starting over…")
            case ToolCallEvent():
                yield from self._render_call(event)
            case ToolResultEvent() if event.execution is not None and event.execution.deferred:
                self._deferred_images += 1
                yield ImageProgressFrame(percent=0, stage="queued")
            case EditPlanEvent():
                yield from self._render_plan(event)
            case ApprovalRequestedEvent():
                yield StatusFrame(message=f"Waiting for an approval: {event.description}")
            case HeldEvent():
                yield StatusFrame(message="Waiting for a decision…")
            case WarningEvent():
                yield StatusFrame(message=event.message)
            case DoneEvent() | ErrorEvent() | CancelledEvent():
                yield from self._render_end(event)

    def _render_thinking(self, text: str) -> Iterator[PlannerFrame]:
        if not self._is_thinking:
            self._is_thinking = True
            yield ThinkingStartFrame()
        yield ThinkingTokenFrame(text=text)

    def _render_text(self, text: str) -> Iterator[PlannerFrame]:
        if self._is_answered:
            yield SummaryTokenFrame(text=text)
        else:
            self._pieces.append(text)
            yield TokenFrame(text=text)

    def _render_call(self, event: ToolCallEvent) -> Iterator[PlannerFrame]:
        if event.tool_name != PLAN_TOOL:
            yield StatusFrame(message=f"Looking something up ({event.tool_name})…")
            return
        plan = event.input if isinstance(event.input, dict) else {}
        operations: Any = plan.get("ops") if isinstance(plan.get("ops"), list) else []
        named = {"intent": plan.get("intent"), "summary": plan.get("summary_for_user")}
        texts = {name: text for name, text in named.items() if isinstance(text, str)}
        yield PlanMetaFrame(**texts, estimated_ops=len(operations))
        for index, operation in enumerate(operations[: FRAMES_PER_EVENT // 4]):
            yield OpCandidateFrame(index=index + 1, op=operation)

    def _render_plan(self, event: EditPlanEvent) -> Iterator[PlannerFrame]:
        outcome = event.outcome
        self._outcome, self._is_answered = outcome, event.is_final
        status = outcome.get("status")
        if self._deferred_images and event.is_final:
            yield ImageProgressFrame(percent=100, stage="done")
        if status == "applied":
            self.stage = _APPLYING
            yield from _render_changes(outcome)
        elif status == "validation_error":
            yield from _render_rollback(outcome)
            if not event.is_final:
                yield StatusFrame(message="Correcting the plan…")
        elif status == "plan_ready":
            yield StatusFrame(message="The plan waits for you.")

    def _render_end(self, event: DoneEvent | ErrorEvent | CancelledEvent) -> Iterator[PlannerFrame]:
        if isinstance(event, CancelledEvent):
            self.result = {"status": "canceled", "summary": event.reason or "Cancelled.", "changes": []}
            yield CanceledFrame(message=event.reason or "Cancelled.")
        elif isinstance(event, ErrorEvent):
            self.result = {"status": "error", "summary": event.message, "changes": []}
            yield ErrorFrame(result=self.result, code=event.code or "error")
        else:
            self.result = build_result(self._outcome, "".join(self._pieces), self._model)
            is_refused = self.result["status"] == "validation_error"
            yield (
                ErrorFrame(result=self.result, code=VALIDATION_STATUS) if is_refused else FinalFrame(result=self.result)
            )


def _render_changes(outcome: Mapping[str, Any]) -> Iterator[PlannerFrame]:
    outcomes = outcome.get("outcomes", ())
    for one in outcomes:
        place = {"index": one["index"], "total": len(outcomes), "op": one.get("op")}
        if one.get("skipped"):
            yield OpSkippedFrame(**place, reason=one["skipped"])
            continue
        updated = {"updated_slug": one["updatedSlug"]} if one.get("updatedSlug") else {}
        version = outcome.get("previewVersion", 0)
        yield OpAppliedFrame(**place, preview_version=version, focus_block_id=one.get("focusBlockId"), **updated)
    for entry in outcome.get("changes", ())[: FRAMES_PER_EVENT // 8]:
        yield ChangelogEntryFrame(entry=entry)


def _render_rollback(outcome: Mapping[str, Any]) -> Iterator[PlannerFrame]:
    """Nothing of a plan that fails is stored. Clients that count applied operations are told to take them back."""
    count = outcome.get("appliedCount")
    if count:
        yield RollbackStartedFrame(applied_count=count, reason=outcome.get("summary"))
        yield RollbackDoneFrame()


class PlannerSseRenderer:
    """Renders a log for one reader.

    Args:
        after: `_seq` of the last frame that the reader has.
        started_ms: When the turn started, in epoch milliseconds.
    """

    def __init__(self, model: str, after: int, started_ms: int) -> None:
        self._fold = PlannerFold(model)
        self._after = after
        self._started_ms = started_ms
        self._last_number = 0
        self._heartbeats = 0

    def render(self, number: int, event: Event) -> bytes:
        """Return the frames of an event, without those that the reader has."""
        self._last_number, self._heartbeats = number, 0
        numbered = enumerate(self._fold.fold(event), number * FRAMES_PER_EVENT)
        return b"".join(encode_frame(frame, seq) for seq, frame in numbered if seq > self._after)

    def render_heartbeat(self, now_ms: int) -> bytes:
        """Return a frame that says that the turn goes on."""
        self._heartbeats = min(self._heartbeats + 1, FRAMES_PER_EVENT // 2 - 1)
        stage, label = self._fold.stage
        frame = HeartbeatFrame(stage=stage, label=label, elapsed_ms=max(0, now_ms - self._started_ms))
        return encode_frame(frame, self._last_number * FRAMES_PER_EVENT + FRAMES_PER_EVENT // 2 + self._heartbeats)


class PlannerJsonRenderer:
    """Renders a log as its result only: blanks, which JSON allows before a value, and then one object."""

    def __init__(self, model: str, extra: Mapping[str, Any]) -> None:
        """Begin before the first event.

        Args:
            model: The name of the model.
            extra: Further members of the result.
        """
        self._fold = PlannerFold(model)
        self._extra = extra

    def render(self, _number: int, event: Event) -> bytes:
        """Return the result at the end of the turn, and a blank before."""
        self._fold.fold(event)
        return b" " if self._fold.result is None else json.dumps({**self._fold.result, **self._extra}).encode()


def encode_frame(frame: PlannerFrame, seq: int) -> bytes:
    """Return a frame as a server-sent event."""
    body = json.dumps({**frame.to_wire(), "_seq": seq}, ensure_ascii=False, separators=(",", ":"))
    return f"data: {body}\n\n".encode()
