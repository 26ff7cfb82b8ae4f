"""How a turn ends: done, error or cancelled, exactly once, and what becomes true with it.

The END transaction holds the terminal event, the turn's usage, the text that was under way, a ledger row for a
request nobody has accounted for, the conversation's totals and the release of its claim.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import TransactionRefused, Update, Write
from fermata.conversations import rows
from fermata.conversations.healing import INTERRUPTED
from fermata.turns import log as logs
from fermata.turns import pause as pauses
from fermata.turns import turn as turns
from fermata.turns.accounting import charge, closed, dead_request
from fermata.turns.log import Ended, Entry, Log
from fermata.turns.progress import close
from fermata.turns.standing import Standing
from fermata.turns.turn import Turn
from fermata.turns.undone import Outcome
from fermata.usage.booking import close as close_books
from fermata.usage.ledger import Spent
from fermata.words.blocks import Block, TextBlock
from fermata.words.caller import Caller, Capability
from fermata.words.errors import NotFound
from fermata.words.events import Cancelled, Done, End, Event, Text, TurnError, UsageReport
from fermata.words.messages import Message
from fermata.words.money import shown_usd

MOST_ERROR = 200


@dataclass(frozen=True)
class Last:
    """What the round that ends the turn still has to say: its reply, its usage and its ledger rows."""

    events: tuple[Event, ...] = ()
    content: tuple[Block, ...] = ()
    spent: tuple[Spent, ...] = ()
    accounted: bool = False
    """Whether `spent` covers the request under way, so that no estimate is needed."""


NOTHING_LEFT = Last()


def end(
    desk: Desk,
    turn: Turn,
    log: Log,
    terminal: End,
    last: Last = NOTHING_LEFT,
    expect: Callable[[Standing], bool] = lambda _: True,
) -> Entry:
    """Append the terminal event; raises Ended when the turn is already over."""
    ending = _Ending(desk, turn, terminal, last)
    try:
        made = log.append(ending.events, ending.along, expect=expect, changes=ending.changes)
    except TransactionRefused as refused:
        if not refused.reasons[0].failed:
            raise
        # The conversation is gone or its claim has moved on: the turn ends without touching it.
        made = log.append(ending.events, ending.along_without_conversation, expect=expect, changes=ending.changes)
    _tell(turn, terminal, made.standing)
    signals.count({"TurnsEnded": 1, "Errors": int(isinstance(terminal, TurnError))}, {"how": terminal.type})
    return made


class _Ending:
    """The parts of one END, each asked again when somebody else's append came first."""

    def __init__(self, desk: Desk, turn: Turn, terminal: End, last: Last) -> None:
        self.desk, self.turn, self.terminal, self.last = desk, turn, terminal, last
        self.undone: Outcome | None = None

    def events(self, before: Standing) -> Sequence[Event]:
        after = before.replace(**self.changes(before))
        return (*self.last.events, *self._closed_calls(before), _usage(after), self._told(before))

    def _told(self, before: Standing) -> End:
        """The terminal event; an undo's has its report, looked up again whenever an answer came first."""
        if not self.turn.undoes:
            return self.terminal
        self.undone = Outcome(self.desk, self.turn, before)
        return self.terminal.model_copy(update={"report": self.undone.report})

    def changes(self, before: Standing) -> Mapping[str, Any]:
        return charge(before, self._spent(before))

    def _spent(self, before: Standing) -> tuple[Spent, ...]:
        """What the last round used; a request nobody accounts for any more is estimated."""
        if before.phase != "asking" or self.last.accounted:
            return self.last.spent
        return (*self.last.spent, dead_request(self.desk, self.turn, before, outcome=self.terminal.type))

    def along(self, made: Entry, before: Standing) -> Sequence[Write]:
        messages = self._messages(before)
        position = before.position + sum(rows.width(message) for message in messages)
        kept = [rows.put(self.desk, self.turn.tenant, self.turn.conversation, message) for message in messages]
        return (self._conversation(made.standing, position), *kept, *self.along_without_conversation(made, before))

    def along_without_conversation(self, made: Entry, before: Standing) -> Sequence[Write]:
        if self.turn.undoes:  # it asked no provider
            return (self._turn_row(),)
        end_row = closed(self.desk, self.turn, self.terminal, made.standing)
        return (self._turn_row(), *close_books(self.desk, end_row, self._spent(before)))

    def _closed_calls(self, before: Standing) -> tuple[Event, ...]:
        if before.phase != "calls":
            return ()
        pause = pauses.load(self.desk, self.turn, before.round)
        return close(pause, INTERRUPTED) if pause else ()

    def _messages(self, before: Standing) -> list[Message]:
        """The reply that ended the turn, or the text that was under way. Calls left open are healed when read.

        Of an undo: what the user took back, in the user's name, since it was nothing the model did.
        """
        note = self.undone.note if self.undone else ""
        said = (TextBlock(text=note),) if note else self.last.content
        content = said or self._cut_off_text(before)
        if not content:
            return []
        message = Message(
            position=before.position,
            role="user" if note else "assistant",
            content=content,
            turn=self.turn.id,
            round=before.round,
            created_at=self.desk.clock.instant(),
            partial=(not said and not isinstance(self.terminal, Done)) or None,
        )
        return [message]

    def _cut_off_text(self, before: Standing) -> tuple[Block, ...]:
        if before.phase != "asking":
            return ()
        stored = logs.since(self.desk, self.turn.pk, before.begun) if before.chars else []
        events = [event for entry in stored for event in entry.events] + list(self.last.events)
        text = "".join(event.text for event in events if isinstance(event, Text))
        return (TextBlock(text=text),) if text else ()

    def _conversation(self, after: Standing, position: int) -> Update:
        turn, now = self.turn, self.desk.clock.instant()
        return Update(
            self.desk.settings.conversations_table,
            rows.partition(turn.tenant, turn.conversation),
            "meta",
            "SET next_position = :position, context_tokens = :context, updated_at = :now, gsk = :now "
            "REMOVE claim ADD prompt_tokens_total :prompt, completion_tokens_total :completion, "
            "cache_read_tokens_total :read, cache_creation_tokens_total :creation, cost_usd_total :cost",
            {
                ":position": position,
                ":context": after.context,
                ":now": now,
                ":prompt": after.prompt,
                ":completion": after.completion,
                ":read": after.cache_read,
                ":creation": after.cache_creation,
                ":cost": after.cost_usd,
                ":turn": turn.id,
            },
            condition="claim = :turn",
        )

    def _turn_row(self) -> Update:
        return Update(
            self.desk.settings.bridges_table,
            self.turn.pk,
            "turn",
            "SET #state = :state, endedMs = :now REMOVE #open, openSince",
            {":state": self.terminal.type, ":now": int(self.desk.clock.time() * 1000)},
            names={"#state": "state", "#open": "open"},
        )


def _usage(after: Standing) -> UsageReport:
    return UsageReport(
        prompt_tokens=after.prompt,
        completion_tokens=after.completion,
        cost_usd=shown_usd(after.cost_usd),
        cache_read_tokens=after.cache_read,
        cache_creation_tokens=after.cache_creation,
    )


def _tell(turn: Turn, terminal: End, after: Standing) -> None:
    """The turn's last line in the audit; a cancelled one is completed, by its user's own wish."""
    failure = terminal if isinstance(terminal, TurnError) else None
    signals.audit(
        f"ai.{'undo' if turn.undoes else 'chat'}.{'failed' if failure else 'completed'}",
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.conversation,
        turn=turn.id,
        provider=turn.provider,
        model=turn.model,
        how=terminal.type,
        rounds=after.round,
        prompt=after.prompt,
        completion=after.completion,
        cache_read=after.cache_read,
        cache_creation=after.cache_creation,
        cost=after.cost,
        code=failure.code if failure else None,
        error=failure.message[:MOST_ERROR] if failure else None,
    )


def how_it_ended(desk: Desk, turn: Turn) -> str | None:
    """done, error or cancelled; None while the turn runs."""
    tail = logs.last(desk, turn.pk)
    if tail is None or tail.standing.phase != "ended":
        return None
    return tail.events[-1].type


def owned(desk: Desk, caller: Caller, bridge_id: str) -> Turn:
    """The caller's own turn, or any of the tenant's for who manages turns; others do not exist."""
    turn = turns.find(desk, caller.tenant, bridge_id)
    if turn.user != caller.user and not caller.may(Capability.TURNS):
        raise NotFound("There is no such turn, or it is too old to be remembered.")
    return turn


def cancel(desk: Desk, caller: Caller, bridge_id: str) -> dict[str, Any]:
    """End the turn and wake its execution; again and again if need be, the answer says how it ended."""
    turn = owned(desk, caller, bridge_id)
    return {"bridgeId": turn.id, "status": stop(desk, turn, Cancelled())}


def stop(desk: Desk, turn: Turn, terminal: End) -> str:
    """End a turn from outside its rounds; returns how it ended, which may be otherwise than asked for."""
    tail = logs.last(desk, turn.pk)
    if tail is None:
        raise NotFound("There is no such turn, or it is too old to be remembered.")
    log = Log.behind(desk, turn.place, tail)
    try:
        end(desk, turn, log, terminal)
        how: str = terminal.type
    except Ended:
        how = how_it_ended(desk, turn) or terminal.type
    wake(desk, turn, log.standing.round)
    return how


def wake(desk: Desk, turn: Turn, round_: int) -> None:
    """Let a paused execution of an ended turn finish."""
    pause = pauses.load(desk, turn, round_) if round_ else None
    if pause and pause.token:
        desk.workflow.go_on(pause.token, "finish")
