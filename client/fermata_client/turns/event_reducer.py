"""Fold the events of a turn into a view of it. Folding is pure and idempotent.

Events are numbered by `seq`. An event that was seen, an event after the end and one of an unknown type leave the view
as it is. A client may therefore reconnect, replay and read twice.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

from fermata_client.service.json_types import Event

ToolCallState = Literal["pending", "ok", "failed"]


@dataclass(frozen=True)
class ToolCallView:
    """One tool call as a user sees it."""

    call_id: str
    name: str
    input: Any = None
    state: ToolCallState = "pending"
    error: str | None = None
    is_browser_tool: bool = False
    """The service asked a client to carry it out."""
    undoes: str | None = None
    """Effect key of the edit that this call undoes."""
    is_conflict: bool = False
    """It failed because the document had changed."""


@dataclass(frozen=True)
class RoundView:
    """The output of one model call."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallView, ...] = ()
    is_closed: bool = False
    """Its calls are being worked on, so that further output belongs to a new round."""


@dataclass(frozen=True)
class TurnView:
    """A turn as far as its events were seen."""

    seq: int = 0
    """Number of the last event seen."""
    bridge_id: str | None = None
    undoes: str | None = None
    """Id of the bridge whose edits this turn undoes."""
    rounds: tuple[RoundView, ...] = ()
    usage: Event | None = None
    context: Event | None = None
    held: Event | None = None
    """The event that asks to poll instead of listening, until the next one comes."""
    end: Event | None = None
    """The terminal event."""

    @property
    def text(self) -> str:
        return "\n\n".join(round_view.text for round_view in self.rounds if round_view.text)

    @property
    def tool_calls(self) -> tuple[ToolCallView, ...]:
        return tuple(call for round_view in self.rounds for call in round_view.tool_calls)

    @property
    def undo_report(self) -> Event | None:
        """Result of an undo: `{undone: [effectKey], skipped: [{effectKey, reason}]}`."""
        return self.end.get("report") if self.end else None

    @property
    def status(self) -> str:
        """`running`, or the type of the terminal event: `done`, `error` or `cancelled`."""
        return str(self.end["type"]) if self.end else "running"


def fold_event(view: TurnView, event: Event) -> TurnView:
    """Return the view after this event; the same object if the event changes nothing."""
    event_type, seq = event.get("type"), event.get("seq")
    if view.end is not None:
        return view
    if event_type == "held":
        return replace(view, held=event)  # of the reader's connection; its number is that of the turn's last event
    if not isinstance(seq, int) or seq <= view.seq:
        return view
    fold = FOLD_BY_EVENT_TYPE.get(str(event_type))
    advanced = replace(view, seq=seq, held=None)
    return fold(advanced, event) if fold else advanced


def fold_events(events: Iterable[Event], view: TurnView | None = None) -> TurnView:
    return reduce(fold_event, events, view or TurnView())


def _fold_ready(view: TurnView, event: Event) -> TurnView:
    return replace(view, bridge_id=event.get("bridgeId") or view.bridge_id, undoes=event.get("undoes"))


def _fold_text(view: TurnView, event: Event) -> TurnView:
    round_view = _open_round(view)
    return _with_open_round(view, replace(round_view, text=round_view.text + str(event.get("text", ""))))


def _fold_reasoning(view: TurnView, event: Event) -> TurnView:
    round_view = _open_round(view)
    return _with_open_round(view, replace(round_view, reasoning=round_view.reasoning + str(event.get("text", ""))))


def _fold_tool_call(view: TurnView, event: Event) -> TurnView:
    call = ToolCallView(str(event.get("toolCallId")), str(event.get("toolName")), event.get("input"))
    round_view = _open_round(view)
    return _with_open_round(view, replace(round_view, tool_calls=(*round_view.tool_calls, call)))


def _fold_tool_request(view: TurnView, event: Event) -> TurnView:
    def mark_requested(call: ToolCallView) -> ToolCallView:
        return replace(call, is_browser_tool=True, undoes=event.get("undoes"))

    return _change_tool_call(_close_round(view), event, mark_requested)


def _fold_tool_result(view: TurnView, event: Event) -> TurnView:
    state: ToolCallState = "ok" if event.get("ok") else "failed"

    def set_result(call: ToolCallView) -> ToolCallView:
        return replace(call, state=state, error=event.get("error"), is_conflict=event.get("conflict") is True)

    return _change_tool_call(_close_round(view), event, set_result)


def _fold_context(view: TurnView, event: Event) -> TurnView:
    return replace(_close_round(view), context=event)


def _fold_round_retracted(view: TurnView, _: Event) -> TurnView:
    """Drop the open round. Closed rounds are committed and cannot be retracted."""
    return replace(view, rounds=tuple(round_view for round_view in view.rounds if round_view.is_closed))


def _fold_usage(view: TurnView, event: Event) -> TurnView:
    return replace(view, usage=event)


def _fold_end(view: TurnView, event: Event) -> TurnView:
    return replace(view, end=event)


FOLD_BY_EVENT_TYPE: dict[str, Callable[[TurnView, Event], TurnView]] = {
    "bridgeReady": _fold_ready,
    "text": _fold_text,
    "reasoning": _fold_reasoning,
    "toolCall": _fold_tool_call,
    "toolRequest": _fold_tool_request,
    "toolResult": _fold_tool_result,
    "context": _fold_context,
    "usage": _fold_usage,
    "roundRetracted": _fold_round_retracted,
    "done": _fold_end,
    "error": _fold_end,
    "cancelled": _fold_end,
}


def _open_round(view: TurnView) -> RoundView:
    return RoundView() if not view.rounds or view.rounds[-1].is_closed else view.rounds[-1]


def _with_open_round(view: TurnView, round_view: RoundView) -> TurnView:
    closed_rounds = view.rounds if not view.rounds or view.rounds[-1].is_closed else view.rounds[:-1]
    return replace(view, rounds=(*closed_rounds, round_view))


def _close_round(view: TurnView) -> TurnView:
    if not view.rounds:
        return view
    return replace(view, rounds=(*view.rounds[:-1], replace(view.rounds[-1], is_closed=True)))


def _change_tool_call(view: TurnView, event: Event, change: Callable[[ToolCallView], ToolCallView]) -> TurnView:
    """Change the call that the event belongs to, in any round."""
    call_id = event.get("toolCallId")

    def changed_round(round_view: RoundView) -> RoundView:
        calls = tuple(change(call) if call.call_id == call_id else call for call in round_view.tool_calls)
        return replace(round_view, tool_calls=calls)

    return replace(view, rounds=tuple(changed_round(round_view) for round_view in view.rounds))
