"""Write END: the one transaction in which a turn becomes done, failed or cancelled.

It holds the terminal event, the turn's usage, the text that was under way, the ledger rows that are still missing, the
conversation's totals, and the release of its claim.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import Put, TransactionCanceled, Update, Write
from fermata.aws.resources import Resources
from fermata.conversations import message_store
from fermata.conversations.history.repair import INTERRUPTED_CALL_ERROR
from fermata.domain.blocks import Block, TextBlock
from fermata.domain.events import DoneEvent, ErrorEvent, Event, TerminalEvent, TextEvent, UsageEvent
from fermata.domain.messages import Message
from fermata.domain.usd_rounding import round_usd
from fermata.domain.value_dataclass import value_dataclass
from fermata.limits.turn_count_removals import build_turn_removals
from fermata.turns.accounting import add_usage, build_turn_outcome, estimate_dead_request
from fermata.turns.call_transitions import Transition, close_calls
from fermata.turns.end.listed_turn import build_ended_turn_update
from fermata.turns.end.log_turn_end import log_turn_end
from fermata.turns.pause import Pause, build_pause_put, load_pause
from fermata.turns.round_commit import RoundCommit, build_commit_messages, shift_positions
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry, TurnLog, read_entries_from
from fermata.turns.turn_state_from_log import TurnState
from fermata.usage.ledger.ledger_store import RequestUsage
from fermata.usage.usage_writes import build_turn_end_writes

if TYPE_CHECKING:
    from fermata.turns.sub_agents.parent_answer import ParentAnswer
    from fermata.turns.undo.undo_report import UndoOutcome


@value_dataclass(frozen=True)
class FinalRound:
    """What the round that ends a turn adds to END."""

    events: tuple[Event, ...] = ()
    content: tuple[Block, ...] = ()
    """The model's last response, without calls."""
    request_usages: tuple[RequestUsage, ...] = ()
    accounts_for_open_request: bool = False
    """Whether `request_usages` cover the request under way. If not, it is estimated (decision 0006)."""


NO_FINAL_ROUND = FinalRound()
MAX_END_ATTEMPTS = 50


def end_turn(
    resources: Resources,
    turn: Turn,
    log: TurnLog,
    terminal: TerminalEvent,
    final_round: FinalRound = NO_FINAL_ROUND,
    is_expected: Callable[[TurnState], bool] = lambda _: True,
    is_outside: bool = False,
) -> LogEntry:
    """Append the terminal event and everything that becomes true with it.

    Args:
        resources: Of the process.
        turn: The turn.
        log: Its log.
        terminal: The event to end it with.
        final_round: What the last round adds.
        is_expected: As for `TurnLog.append`.
        is_outside: Whether this is no step of the turn's execution, which the caller resumes then. Where that is held,
            the turn stays listed (decision 0644).

    Raises:
        TurnEnded: The turn is already over.
        Superseded, StaleState: As `TurnLog.append`.
    """
    end = _EndCommit(resources, turn, terminal, final_round, is_outside=is_outside)
    log_entry = _append_end(log, end, is_expected)
    end.confirm()
    log_turn_end(turn, terminal, log_entry.state)
    values = {"TurnsEnded": 1.0, "Errors": int(isinstance(terminal, ErrorEvent))}
    observability.emit_metrics(values, {"how": terminal.type})
    return log_entry


def _append_end(log: TurnLog, end: "_EndCommit", is_expected: Callable[[TurnState], bool]) -> LogEntry:
    for _ in range(MAX_END_ATTEMPTS):
        try:
            return log.append(
                end.build_events, end.build_writes, is_expected=is_expected, update_state=end.update_state
            )
        except TransactionCanceled as refused:
            if not end.accept_refusal(refused):
                raise
    raise RuntimeError(
        f"The turn that has asked {log.partition.turn} moved on {MAX_END_ATTEMPTS} times before its end."
    )


class _EndCommit:
    """The content of one END, built again whenever another writer's entry came first."""

    def __init__(
        self,
        resources: Resources,
        turn: Turn,
        terminal: TerminalEvent,
        final_round: FinalRound,
        *,
        is_outside: bool = False,
    ) -> None:
        self._resources = resources
        self._turn = turn
        self._terminal = terminal
        self._final_round = final_round
        self._is_outside = is_outside
        self._is_held = False
        """Whether the turn's execution waits in Hold for somebody else to resume it."""
        self._undo_outcome: UndoOutcome | None = None
        self._pause: Pause | None = None
        """The round's pause, if calls are open. What has changed it since has appended to the log, or is an early
        result of a remote tool, which has changed the pause alone."""
        self._closing: Transition | None = None
        """What becomes of the open calls."""
        self._conversation_write_count = 0
        """How many of the first writes of `build_writes` belong to the conversation."""
        self._writes_conversation = True
        self._parent_answer = self._open_parent_answer()

    def _open_parent_answer(self) -> "ParentAnswer | None":
        if self._turn.parent is None:
            return None
        from fermata.turns.sub_agents.parent_answer import ParentAnswer  # most turns are those of users

        answer = ParentAnswer(self._resources, self._turn, self._turn.parent)
        answer.load()
        return answer

    def accept_refusal(self, refused: TransactionCanceled) -> bool:
        """Return whether END can be written otherwise than it was refused."""
        pause_writes = len(self._build_pause_writes())
        count = self._conversation_write_count
        if any(reason.condition_failed for reason in refused.reasons[count : count + pause_writes]):
            return True  # a remote tool has sent its result
        if self._parent_answer and self._parent_answer.reload():
            return True
        if any(reason.condition_failed for reason in refused.reasons[:count]):
            # The conversation is gone, its claim has moved on, or another turn has written there: this one ends
            # without touching it.
            self._writes_conversation = False
            self._conversation_write_count = 0
            return True
        return self._parent_answer is not None and self._parent_answer.leave_conversation()

    def confirm(self) -> None:
        """Do what follows when END is stored: tell the webhooks of the turn that has asked, and stop sub-agents."""
        if self._parent_answer:
            self._parent_answer.confirm()
        if self._pause and any(call.has_running_child for call in self._pause.calls):
            from fermata.turns.sub_agents.stop_children import stop_children  # most turns ask no other agent

            stop_children(self._resources, self._pause)

    def build_events(self, before: TurnState) -> Sequence[Event]:
        usage = _build_usage_event(add_usage(before, self._request_usages(before)))
        return (
            *self._final_round.events,
            *self._build_closing_events(before),
            usage,
            self._build_terminal_event(before),
        )

    def update_state(self, before: TurnState, after: TurnState) -> TurnState:
        return add_usage(after, self._request_usages(before))

    def build_writes(self, log_entry: LogEntry, before: TurnState) -> Sequence[Write]:
        if not self._writes_conversation:
            return self._build_turn_writes(log_entry, before)
        messages = self._build_messages(before, log_entry.state)
        next_position = before.next_position + sum(map(message_store.count_positions, messages))
        message_puts = [self._build_message_put(message) for message in messages]
        conversation_update = self._build_conversation_update(log_entry.state, next_position)
        self._conversation_write_count = 1 + len(message_puts)
        return (conversation_update, *message_puts, *self._build_turn_writes(log_entry, before))

    def _build_turn_writes(self, log_entry: LogEntry, before: TurnState) -> Sequence[Write]:
        outcome = build_turn_outcome(self._resources, self._turn, self._terminal, log_entry.state)
        ledger_writes = build_turn_end_writes(self._resources, outcome, self._request_usages(before))
        cancelled = self._build_cancelled_approvals()
        answer = self._build_parent_answer(log_entry.state, before)
        removals = self._build_count_removals()
        update = build_ended_turn_update(self._resources, self._turn, self._terminal.type, is_held=self._is_held)
        return (*self._build_pause_writes(), update, *removals, *cancelled, *ledger_writes, *answer)

    def _build_cancelled_approvals(self) -> Sequence[Write]:
        if self._pause is None or all(call.approval is None for call in self._pause.calls):
            return ()
        from fermata.turns.approvals.approval_record import build_cancelled_approvals  # few turns end with open ones

        return build_cancelled_approvals(self._resources, self._pause)

    def _build_pause_writes(self) -> tuple[Put, ...]:
        """Build the put of the pause where a remote tool may send its result, or has sent it early (decision 0321)."""
        if not (self._pause and self._closing and self._closing.pause.calls != self._pause.calls):
            return ()
        return (build_pause_put(self._resources, self._closing.pause, expected_version=self._pause.version),)

    def _build_parent_answer(self, after: TurnState, before: TurnState) -> Sequence[Write]:
        """Build what a sub-agent's END writes in the turn that has asked it."""
        if self._parent_answer is None:
            return ()
        from fermata.turns.sub_agents.task_and_answer import build_sub_agent_output

        agent_id = self._turn.agent.partition("@")[0]
        content = self._final_round.content or self._read_unfinished_text(before)
        output = build_sub_agent_output(agent_id, self._terminal, content, after.forced_answer_reason)
        return self._parent_answer.build_writes(output, after)

    def _build_count_removals(self) -> Sequence[Update]:
        turn = self._turn
        if turn.limits_shard is None:
            return ()
        return build_turn_removals(self._resources, turn.tenant, turn.user, turn.id, turn.limits_shard)

    def _request_usages(self, before: TurnState) -> tuple[RequestUsage, ...]:
        """Return the usage of the final round; a request without usage is estimated (decision 0006)."""
        usages = self._final_round.request_usages
        is_open = before.has_open_request and self._turn.direct_call is None
        if not is_open or self._final_round.accounts_for_open_request:
            return usages
        return (
            *usages,
            estimate_dead_request(self._resources, self._turn, before, outcome=self._terminal.type),
        )

    def _build_terminal_event(self, before: TurnState) -> TerminalEvent:
        """Build the terminal event, in an undo with its report. It is built again whenever an answer came first."""
        if not self._turn.undone_turn:
            return self._terminal
        from fermata.turns.undo.undo_report import UndoOutcome  # imported here because few turns are undos

        self._undo_outcome = UndoOutcome(self._resources, self._turn, before)
        return self._terminal.model_copy(update={"report": self._undo_outcome.report})

    def _build_closing_events(self, before: TurnState) -> tuple[Event, ...]:
        is_paused = before.phase == "calls"
        may_be_held = self._is_outside and before.phase == "ready" and before.round > 0
        pause = load_pause(self._resources, self._turn, before.round) if is_paused or may_be_held else None
        self._is_held = self._is_outside and pause is not None and pause.is_held
        self._pause = pause if is_paused else None
        self._closing = close_calls(self._pause, INTERRUPTED_CALL_ERROR) if self._pause else None
        return self._closing.events if self._closing else ()

    def _build_messages(self, before: TurnState, after: TurnState) -> list[Message]:
        """Return the response that ended the turn, or the text that was under way, or results that came early.

        Other calls that are left open get no result here: the history compiler adds one when it reads them (decision
        0007). An undo has one message, in the user's name, because the model did nothing (decision 0117).
        """
        note = self._undo_outcome.note if self._undo_outcome else ""
        complete_content = (TextBlock(text=note),) if note else self._final_round.content
        content = complete_content or self._read_unfinished_text(before)
        if not content and self._closing:
            results = RoundCommit.for_pause(self._closing.pause, self._closing)
            return [*shift_positions(build_commit_messages(self._resources, results), before.next_position)]
        if not content:
            return []
        message = Message(
            position=before.next_position,
            role="user" if note else "assistant",
            content=content,
            turn=self._turn.id,
            round=before.round,
            created_at=self._resources.clock.now_iso(),
            partial=(not complete_content and not isinstance(self._terminal, DoneEvent)) or None,
            turn_usage=None if note else after.usage_so_far,
        )
        return [message]

    def _read_unfinished_text(self, before: TurnState) -> tuple[Block, ...]:
        if before.phase != "asking":
            return ()
        log_entries = (
            read_entries_from(self._resources, self._turn.pk, before.round_started_number) if before.text_chars else []
        )
        events = [event for log_entry in log_entries for event in log_entry.events] + list(self._final_round.events)
        text = "".join(event.text for event in events if isinstance(event, TextEvent))
        return (TextBlock(text=text),) if text else ()

    def _build_message_put(self, message: Message) -> Put:
        turn = self._turn
        return message_store.build_message_put(self._resources, turn.tenant, turn.conversation, message)

    def _build_conversation_update(self, after: TurnState, next_position: int) -> Update:
        turn = self._turn
        return Update(
            self._resources.settings.conversations_table,
            message_store.conversation_partition(turn.tenant, turn.conversation),
            message_store.build_meta_sort_key(turn.conversation),
            "SET next_position = :position, context_tokens = :context, updated_at = :now, gsk = :now "
            "REMOVE claim ADD prompt_tokens_total :prompt, completion_tokens_total :completion, "
            "cache_read_tokens_total :read, cache_creation_tokens_total :creation, cost_usd_total :cost",
            {
                ":position": next_position,
                ":context": after.context_tokens,
                ":now": self._resources.clock.now_iso(),
                ":prompt": after.prompt_tokens,
                ":completion": after.completion_tokens,
                ":read": after.cache_read_tokens,
                ":creation": after.cache_creation_tokens,
                ":cost": after.cost_usd,
                ":turn": turn.id,
            },
            condition="claim = :turn",
        )


def _build_usage_event(after: TurnState) -> UsageEvent:
    return UsageEvent(
        prompt_tokens=after.prompt_tokens,
        completion_tokens=after.completion_tokens,
        cost_usd=round_usd(after.cost_usd),
        cache_read_tokens=after.cache_read_tokens,
        cache_creation_tokens=after.cache_creation_tokens,
    )
