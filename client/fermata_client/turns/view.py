"""From the events of a turn to what a screen shows: `fold(view, event) -> view`, pure, safe against repetition.

Events are keyed by `seq`. One that was seen, one after the end and one of an unknown type change nothing that shows,
so a client may reconnect, replay and read twice as it likes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

Event = dict[str, Any]


@dataclass(frozen=True)
class ToolCallView:
    """One tool call as a user sees it; `asked` means that this side was asked to carry it out, `undoes` the effect key
    of the edit it takes back, `conflict` that somebody else had changed the document.
    """

    call_id: str
    name: str
    input: Any = None
    state: Literal["pending", "ok", "failed"] = "pending"
    error: str | None = None
    is_browser_tool: bool = False
    undoes: str | None = None
    is_conflict: bool = False


@dataclass(frozen=True)
class RoundView:
    """What one model call brought. It is `closed` once its calls are being worked on: what follows is a new round."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCallView, ...] = ()
    is_closed: bool = False


@dataclass(frozen=True)
class TurnView:
    """A turn so far. `seq` is the last event seen; `end` the one terminal event; `held` tells when to ask again;
    `undoes` the bridge whose edits it takes back.
    """

    seq: int = 0
    bridge_id: str | None = None
    undoes: str | None = None
    rounds: tuple[RoundView, ...] = ()
    usage: Event | None = None
    context: Event | None = None
    held: Event | None = None
    end: Event | None = None

    @property
    def text(self) -> str:
        return "\n\n".join(a_round.text for a_round in self.rounds if a_round.text)

    @property
    def tool_calls(self) -> tuple[ToolCallView, ...]:
        return tuple(badge for a_round in self.rounds for badge in a_round.tool_calls)

    @property
    def undo_report(self) -> Event | None:
        """What an undo came to: `{undone: [effectKey], skipped: [{effectKey, reason}]}`."""
        return self.end.get("report") if self.end else None

    @property
    def status(self) -> str:
        """`running`, or how it ended: `done`, `error` or `cancelled`."""
        return str(self.end["type"]) if self.end else "running"


def fold_event(view: TurnView, event: Event) -> TurnView:
    kind, seq = event.get("type"), event.get("seq")
    if view.end is not None:
        return view
    if seq is None and kind == "held":
        return replace(view, held=event)  # a reader's own remark, not an event of the turn
    if not isinstance(seq, int) or seq <= view.seq:
        return view
    step = FOLD_BY_EVENT_TYPE.get(str(kind))
    moved = replace(view, seq=seq, held=None)
    return step(moved, event) if step else moved


def fold_events(events: Iterable[Event], view: TurnView | None = None) -> TurnView:
    return reduce(fold_event, events, view or TurnView())


def _ready(view: TurnView, event: Event) -> TurnView:
    return replace(view, bridge_id=event.get("bridgeId"), undoes=event.get("undoes"))


def _text(view: TurnView, event: Event) -> TurnView:
    a_round = _open_round(view)
    return _with_open(view, replace(a_round, text=a_round.text + str(event.get("text", ""))))


def _reasoning(view: TurnView, event: Event) -> TurnView:
    a_round = _open_round(view)
    return _with_open(view, replace(a_round, reasoning=a_round.reasoning + str(event.get("text", ""))))


def _call(view: TurnView, event: Event) -> TurnView:
    badge = ToolCallView(str(event.get("toolCallId")), str(event.get("toolName")), event.get("input"))
    a_round = _open_round(view)
    return _with_open(view, replace(a_round, tool_calls=(*a_round.tool_calls, badge)))


def _request(view: TurnView, event: Event) -> TurnView:
    return _badge(_close(view), event, is_browser_tool=True, undoes=event.get("undoes"))


def _result(view: TurnView, event: Event) -> TurnView:
    state = "ok" if event.get("ok") else "failed"
    is_conflict = event.get("conflict") is True
    return _badge(_close(view), event, state=state, error=event.get("error"), is_conflict=is_conflict)


def _context(view: TurnView, event: Event) -> TurnView:
    return replace(_close(view), context=event)


def _retracted(view: TurnView, _: Event) -> TurnView:
    """Only the round that is still being said can be taken back; a closed one was committed."""
    return replace(view, rounds=tuple(a_round for a_round in view.rounds if a_round.is_closed))


def _usage(view: TurnView, event: Event) -> TurnView:
    return replace(view, usage=event)


def _held(view: TurnView, event: Event) -> TurnView:
    return replace(view, held=event)


def _end(view: TurnView, event: Event) -> TurnView:
    return replace(view, end=event)


FOLD_BY_EVENT_TYPE: dict[str, Callable[[TurnView, Event], TurnView]] = {
    "bridgeReady": _ready,
    "text": _text,
    "reasoning": _reasoning,
    "toolCall": _call,
    "toolRequest": _request,
    "toolResult": _result,
    "context": _context,
    "usage": _usage,
    "roundRetracted": _retracted,
    "held": _held,
    "done": _end,
    "error": _end,
    "cancelled": _end,
}


def _open_round(view: TurnView) -> RoundView:
    return RoundView() if not view.rounds or view.rounds[-1].is_closed else view.rounds[-1]


def _with_open(view: TurnView, a_round: RoundView) -> TurnView:
    before = view.rounds if not view.rounds or view.rounds[-1].is_closed else view.rounds[:-1]
    return replace(view, rounds=(*before, a_round))


def _close(view: TurnView) -> TurnView:
    """Nothing said and nothing called (a context line alone) closes nothing."""
    if not view.rounds:
        return view
    return replace(view, rounds=(*view.rounds[:-1], replace(view.rounds[-1], is_closed=True)))


def _badge(view: TurnView, event: Event, **changes: Any) -> TurnView:
    """Change the badge of the call the event speaks of, wherever it is."""
    call = event.get("toolCallId")

    def changed(a_round: RoundView) -> RoundView:
        tools = tuple(replace(badge, **changes) if badge.call_id == call else badge for badge in a_round.tool_calls)
        return replace(a_round, tool_calls=tools)

    return replace(view, rounds=tuple(changed(a_round) for a_round in view.rounds))
