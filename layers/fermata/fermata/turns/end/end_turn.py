"""How a turn ends: done, error or cancelled, exactly once, and what becomes true with it.

The END transaction holds the terminal event, the turn's usage, the text that was under way, a ledger row for a
request nobody has accounted for, the conversation's totals and the release of its claim.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fermata.aws import observability
from fermata.aws.dynamodb import TransactionCanceled, Update, Write
from fermata.aws.resources import Resources
from fermata.conversations import message_store
from fermata.conversations.history.repair import INTERRUPTED_CALL_ERROR
from fermata.domain.blocks import Block, TextBlock
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import NotFound
from fermata.domain.events import CancelledEvent, DoneEvent, ErrorEvent, Event, TerminalEvent, TextEvent, UsageEvent
from fermata.domain.messages import Message
from fermata.domain.money import round_usd
from fermata.turns.accounting import add_usage, build_turn_end_entry, estimate_dead_request
from fermata.turns.pause import load_pause
from fermata.turns.state import TurnState
from fermata.turns.transitions import build_closing_events
from fermata.turns.turn import Turn, find_turn
from fermata.turns.turn_log import LogEntry, TurnEnded, TurnLog, read_entries_from, read_last_entry
from fermata.turns.undo.undo_report import UndoOutcome
from fermata.usage.ledger.ledger_store import RequestUsage
from fermata.usage.settlement import build_turn_end_writes as close_books

MAX_AUDITED_ERROR_CHARS = 200


@dataclass(frozen=True)
class FinalRound:
    """What the round that ends the turn still has to say: its reply, its usage and its ledger rows."""

    events: tuple[Event, ...] = ()
    content: tuple[Block, ...] = ()
    request_entries: tuple[RequestUsage, ...] = ()
    accounts_for_open_request: bool = False
    """Whether `spent` covers the request under way, so that no estimate is needed."""


NO_FINAL_ROUND = FinalRound()


def end_turn(
    resources: Resources,
    turn: Turn,
    log: TurnLog,
    terminal: TerminalEvent,
    final_round: FinalRound = NO_FINAL_ROUND,
    is_expected: Callable[[TurnState], bool] = lambda _: True,
) -> LogEntry:
    """Append the terminal event; raises Ended when the turn is already over."""
    ending = _Ending(resources, turn, terminal, final_round)
    try:
        made = log.append(ending.events, ending.along, is_expected=is_expected, build_state_changes=ending.changes)
    except TransactionCanceled as refused:
        if not refused.reasons[0].condition_failed:
            raise
        # The conversation is gone or its claim has moved on: the turn ends without touching it.
        made = log.append(
            ending.events,
            ending.along_without_conversation,
            is_expected=is_expected,
            build_state_changes=ending.changes,
        )
    _tell(turn, terminal, made.state)
    observability.emit_metrics(
        {"TurnsEnded": 1, "Errors": int(isinstance(terminal, ErrorEvent))}, {"how": terminal.type}
    )
    return made


class _Ending:
    """The parts of one END, each asked again when somebody else's append came first."""

    def __init__(self, resources: Resources, turn: Turn, terminal: TerminalEvent, last: FinalRound) -> None:
        self.resources, self.turn, self.terminal, self.last = resources, turn, terminal, last
        self.undone: UndoOutcome | None = None

    def events(self, before: TurnState) -> Sequence[Event]:
        after = before.replace(**self.changes(before))
        return (*self.last.events, *self._closed_calls(before), _usage(after), self._told(before))

    def _told(self, before: TurnState) -> TerminalEvent:
        """The terminal event; an undo's has its report, looked up again whenever an answer came first."""
        if not self.turn.undoes:
            return self.terminal
        self.undone = UndoOutcome(self.resources, self.turn, before)
        return self.terminal.model_copy(update={"report": self.undone.report})

    def changes(self, before: TurnState) -> Mapping[str, Any]:
        return add_usage(before, self._spent(before))

    def _spent(self, before: TurnState) -> tuple[RequestUsage, ...]:
        """What the last round used; a request nobody accounts for any more is estimated."""
        if before.phase != "asking" or self.last.accounts_for_open_request:
            return self.last.request_entries
        return (
            *self.last.request_entries,
            estimate_dead_request(self.resources, self.turn, before, outcome=self.terminal.type),
        )

    def along(self, made: LogEntry, before: TurnState) -> Sequence[Write]:
        messages = self._messages(before)
        position = before.position + sum(message_store.count_positions(message) for message in messages)
        kept = [
            message_store.build_message_put(self.resources, self.turn.tenant, self.turn.conversation, message)
            for message in messages
        ]
        return (self._conversation(made.state, position), *kept, *self.along_without_conversation(made, before))

    def along_without_conversation(self, made: LogEntry, before: TurnState) -> Sequence[Write]:
        if self.turn.undoes:  # it asked no provider
            return (self._turn_row(),)
        end_row = build_turn_end_entry(self.resources, self.turn, self.terminal, made.state)
        return (self._turn_row(), *close_books(self.resources, end_row, self._spent(before)))

    def _closed_calls(self, before: TurnState) -> tuple[Event, ...]:
        if before.phase != "calls":
            return ()
        pause = load_pause(self.resources, self.turn, before.round)
        return build_closing_events(pause, INTERRUPTED_CALL_ERROR) if pause else ()

    def _messages(self, before: TurnState) -> list[Message]:
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
            created_at=self.resources.clock.now_iso(),
            partial=(not said and not isinstance(self.terminal, DoneEvent)) or None,
        )
        return [message]

    def _cut_off_text(self, before: TurnState) -> tuple[Block, ...]:
        if before.phase != "asking":
            return ()
        stored = read_entries_from(self.resources, self.turn.pk, before.begun) if before.chars else []
        events = [event for entry in stored for event in entry.events] + list(self.last.events)
        text = "".join(event.text for event in events if isinstance(event, TextEvent))
        return (TextBlock(text=text),) if text else ()

    def _conversation(self, after: TurnState, position: int) -> Update:
        turn, now = self.turn, self.resources.clock.now_iso()
        return Update(
            self.resources.settings.conversations_table,
            message_store.conversation_partition(turn.tenant, turn.conversation),
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
            self.resources.settings.bridges_table,
            self.turn.pk,
            "turn",
            "SET #state = :state, endedMs = :now REMOVE #open, openSince",
            {":state": self.terminal.type, ":now": int(self.resources.clock.time() * 1000)},
            names={"#state": "state", "#open": "open"},
        )


def _usage(after: TurnState) -> UsageEvent:
    return UsageEvent(
        prompt_tokens=after.prompt,
        completion_tokens=after.completion,
        cost_usd=round_usd(after.cost_usd),
        cache_read_tokens=after.cache_read,
        cache_creation_tokens=after.cache_creation,
    )


def _tell(turn: Turn, terminal: TerminalEvent, after: TurnState) -> None:
    """The turn's last line in the audit; a cancelled one is completed, by its user's own wish."""
    failure = terminal if isinstance(terminal, ErrorEvent) else None
    observability.log_audit_event(
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
        error=failure.message[:MAX_AUDITED_ERROR_CHARS] if failure else None,
    )


def read_end_type(resources: Resources, turn: Turn) -> str | None:
    """done, error or cancelled; None while the turn runs."""
    tail = read_last_entry(resources, turn.pk)
    if tail is None or tail.state.phase != "ended":
        return None
    return tail.events[-1].type


def find_turn_for_caller(resources: Resources, caller: Caller, bridge_id: str) -> Turn:
    """The caller's own turn, or any of the tenant's for who manages turns; others do not exist."""
    turn = find_turn(resources, caller.tenant, bridge_id)
    if turn.user != caller.user and not caller.has_capability(Capability.TURNS):
        raise NotFound("There is no such turn, or it is too old to be remembered.")
    return turn


def cancel_turn(resources: Resources, caller: Caller, bridge_id: str) -> dict[str, Any]:
    """End the turn and wake its execution; again and again if need be, the answer says how it ended."""
    turn = find_turn_for_caller(resources, caller, bridge_id)
    return {"bridgeId": turn.id, "status": stop_turn(resources, turn, CancelledEvent())}


def stop_turn(resources: Resources, turn: Turn, terminal: TerminalEvent) -> str:
    """End a turn from outside its rounds; returns how it ended, which may be otherwise than asked for."""
    tail = read_last_entry(resources, turn.pk)
    if tail is None:
        raise NotFound("There is no such turn, or it is too old to be remembered.")
    log = TurnLog.from_last_entry(resources, turn.partition, tail)
    try:
        end_turn(resources, turn, log, terminal)
        how: str = terminal.type
    except TurnEnded:
        how = read_end_type(resources, turn) or terminal.type
    finish_paused_execution(resources, turn, log.state.round)
    return how


def finish_paused_execution(resources: Resources, turn: Turn, round_: int) -> None:
    """Let a paused execution of an ended turn finish."""
    pause = load_pause(resources, turn, round_) if round_ else None
    if pause and pause.token:
        resources.workflow.resume_execution(pause.token, "finish")
