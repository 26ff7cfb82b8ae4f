"""Fold the log of a turn into steps, and find where the responses of a chat client end.

A response ends where the client has to act: run tools, or ask its user for an approval. It then sends a new request,
whose response goes on behind that place. So the log falls into *segments*, one for each response. The model's calls
are shown in their order, and those behind one that the client answers wait for it: a client takes every call that it
has seen for one that needs a result before it may send (decision 0379).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fermata.domain.events import (
    ApprovalDecidedEvent,
    ApprovalRequestedEvent,
    BridgeReadyEvent,
    CancelledEvent,
    DataPartEvent,
    DoneEvent,
    ErrorEvent,
    Event,
    HeldEvent,
    ReasoningEvent,
    RoundRetractedEvent,
    RoundStartedEvent,
    TerminalEvent,
    TextEvent,
    ToolCallEvent,
    ToolRequestEvent,
    ToolResultEvent,
    UsageEvent,
    WarningEvent,
)
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


@dataclass
class FoldedCall:
    """A call of the round, and how far it has come. `call_id` is unique in the turn."""

    call_id: str
    tool_call_id: str
    tool_name: str
    input: Any
    is_browser: bool
    approval: ApprovalRequestedEvent | None = None
    is_decided: bool = False
    is_denied: bool = False
    denial_reason: str = ""
    is_shown: bool = False
    request: ToolRequestEvent | None = None
    """The open request of a browser's call."""
    answer: ToolResultEvent | None = None

    @property
    def waits_for_approval(self) -> bool:
        """Whether nobody has decided about it."""
        return self.approval is not None and not self.is_decided

    @property
    def kind(self) -> str:
        """What the client does about it: `approval`, `browser`, or nothing."""
        if self.waits_for_approval:
            return "approval"
        return "browser" if self.is_browser else ""

    @property
    def waits_for_client(self) -> bool:
        """Whether nothing happens until the client acts."""
        return self.is_shown and (self.waits_for_approval or self.request is not None) and self.answer is None


@dataclass
class TurnFold:
    """The steps of one turn, entry by entry.

    Attributes:
        is_browser_tool: Tells which tools the client runs.
        to_client_name: Maps a tool's name to the one that the client knows.
        settled: Ids of calls whose results are known, where a log is read again: they are shown with them.
    """

    is_browser_tool: Callable[[str], bool]
    to_client_name: Callable[[str], str] = str
    settled: frozenset[str] = frozenset()
    segment: int = 0
    """The number of the response that the next step belongs to."""
    calls: dict[str, FoldedCall] = field(default_factory=dict)
    """All calls of the turn, by the ids that clients know."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The place of each call among all of the turn."""
    shown_in: dict[str, int] = field(default_factory=dict)
    """The segment in which each call was shown."""
    bridge_id: str = ""
    is_over: bool = False
    _round: int = 0
    _queue: list[FoldedCall] = field(default_factory=list)
    _has_calls: bool = False
    _was_waiting: bool = False

    @property
    def waits_for_client(self) -> bool:
        """Whether the turn waits for its client. The response then ends."""
        return bool(self._queue) and self._queue[0].waits_for_client

    def list_waiting_calls(self) -> list[FoldedCall]:
        """Return the calls that have no result yet, in their order."""
        return [call for call in self._queue if call.answer is None]

    def fold(self, events: Sequence[Event]) -> list[tuple[int, TurnStep]]:
        """Return the steps of the next entry, each with its segment.

        Args:
            events: Of one log entry.
        """
        approvals = {event.tool_call_id: event for event in events if isinstance(event, ApprovalRequestedEvent)}
        steps: list[TurnStep] = []
        if self._was_waiting and events:
            self.segment += 1
        for event in events:
            steps += self._fold_event(event, approvals)
        steps += self._show_calls()
        self._was_waiting = self.waits_for_client
        return [(self.segment, step) for step in steps]

    def _fold_event(self, event: Event, approvals: dict[str, ApprovalRequestedEvent]) -> Iterator[TurnStep]:
        if isinstance(event, RoundStartedEvent | TextEvent | ReasoningEvent | TerminalEvent):
            yield from self._show_calls()
        match event:
            case BridgeReadyEvent():
                self.bridge_id = event.bridge_id
            case RoundStartedEvent() if event.round > self._round:
                self._round, self._has_calls = event.round, False
                yield RoundBegun(event.round)
            case TextEvent() if event.text:
                self._has_calls = False
                yield TextPiece(event.text)
            case ReasoningEvent() if event.text:
                yield ReasoningPiece(event.text)
            case RoundRetractedEvent():
                yield TextRetracted()
            case ToolCallEvent():
                self._add_call(event, approvals.get(event.tool_call_id))
            case ToolRequestEvent():
                yield from self._request_call(event)
            case ApprovalDecidedEvent():
                yield from self._decide(event)
            case ToolResultEvent():
                self._answer(event)
            case WarningEvent():
                yield NoticeShown(event.message, event.code)
            case DataPartEvent():
                yield DataPartShown(event)
            case UsageEvent():
                yield UsageShown(event)
            case HeldEvent():
                yield HoldShown(event.until)
            case DoneEvent() | ErrorEvent() | CancelledEvent():
                self.is_over = True
                yield TurnOver(event, self._has_calls)

    def _add_call(self, event: ToolCallEvent, approval: ApprovalRequestedEvent | None) -> None:
        """Queue a call. A provider may give the same id again in a later round."""
        is_new = event.tool_call_id not in self.calls
        call_id = event.tool_call_id if is_new else f"{event.tool_call_id}~{self._round}"
        name = self.to_client_name(event.tool_name)
        call = FoldedCall(call_id, event.tool_call_id, name, event.input, self.is_browser_tool(event.tool_name))
        call.approval = approval
        if approval is not None:
            call.input = approval.input
        self.numbers.setdefault(call_id, len(self.calls))
        self.calls[call_id] = call
        self._queue.append(call)
        self._has_calls = True

    def _find_queued(self, tool_call_id: str) -> FoldedCall | None:
        return next((call for call in self._queue if call.tool_call_id == tool_call_id), None)

    def _request_call(self, event: ToolRequestEvent) -> Iterator[TurnStep]:
        call = self._find_queued(event.tool_call_id)
        if call is None:
            return
        call.request, call.input = event, event.input
        if call.is_shown and call.approval is not None:
            yield self._build_shown(call)

    def _decide(self, event: ApprovalDecidedEvent) -> Iterator[TurnStep]:
        call = self._find_queued(event.tool_call_id)
        if call is None:
            return
        call.is_decided, call.is_denied = True, not event.approved
        call.denial_reason = "" if event.approved else event.reason or ""
        if event.approved and event.input is not None and not call.is_browser:
            call.input = event.input
            if call.is_shown:
                yield self._build_shown(call)

    def _answer(self, event: ToolResultEvent) -> None:
        call = self._find_queued(event.tool_call_id)
        if call is not None:
            call.answer = event

    def _show_calls(self) -> Iterator[TurnStep]:
        """Show the calls in their order, up to where the client has to act."""
        group = ""
        for call in list(self._queue):
            if call.answer is None and group and call.kind != group:
                return
            if not call.is_shown:
                yield from self._show(call)
            if call.answer is not None and call is self._queue[0]:
                self._queue.pop(0)
                yield self._build_answered(call, call.answer)
            group = group or ("" if call.answer else call.kind)

    def _show(self, call: FoldedCall) -> Iterator[TurnStep]:
        call.is_shown = True
        self.shown_in[call.call_id] = self.segment
        yield self._build_shown(call)
        if call.waits_for_approval and call.approval is not None and call.call_id not in self.settled:
            yield ApprovalShown(call.call_id, call.approval)

    def _build_shown(self, call: FoldedCall) -> CallShown:
        is_for_client = call.is_browser and not call.waits_for_approval
        return CallShown(call.call_id, call.tool_name, call.input, is_for_client, call.call_id in self.settled)

    def _build_answered(self, call: FoldedCall, answer: ToolResultEvent) -> CallAnswered:
        return CallAnswered(
            call.call_id,
            call.tool_name,
            answer.ok,
            answer.output,
            answer.error or "",
            call.is_denied,
            is_from_client=call.request is not None,
            denial_reason=call.denial_reason,
        )


def list_settled_calls(entries: Sequence[Sequence[Event]]) -> frozenset[str]:
    """Return the ids of the calls that were answered in these entries, as `TurnFold` numbers them.

    Args:
        entries: The events of the entries, from the log's beginning.
    """
    fold = TurnFold(lambda _: False)
    for events in entries:
        fold.fold(events)
    return frozenset(call.call_id for call in fold.calls.values() if call.answer is not None)
