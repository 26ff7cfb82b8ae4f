"""Write START: the one transaction in which a turn begins. Then start its workflow execution."""

from collections.abc import Sequence

from fermata.aws import observability
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import CancellationReason, Put, TransactionCanceled, Update, Write
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.domain.errors import Conflict
from fermata.domain.events import BridgeReadyEvent
from fermata.domain.value_dataclass import value_dataclass
from fermata.limits.count_use import UsageCountersChanged
from fermata.limits.prompt_bucket import PromptRate
from fermata.turns.start.conversation_claim import CONVERSATION_BUSY_MESSAGE, ConversationBusy
from fermata.turns.turn import Turn, turn_to_item
from fermata.turns.turn_log import LogEntry, log_entry_to_item, read_last_entry
from fermata.turns.turn_state_from_log import TurnState
from fermata.usage.budgets.holds import AccountsChanged


class PositionTaken(Conflict):
    """The position of the turn's message is taken, though the conversation's row calls it free."""


@value_dataclass(frozen=True)
class StartedTurn:
    """A turn and its first log entry, which holds `bridgeReady`."""

    turn: Turn
    entry: LogEntry
    is_joined: bool = False
    """Whether an earlier request with the same Idempotency-Key has started it."""
    prompt_rate: PromptRate | None = None
    """How many prompts the user has left; unknown of a turn that is joined, which counts nothing."""


def commit_start(
    resources: Resources,
    turn: Turn,
    state: TurnState,
    *writes: Write,
    hold_writes: Sequence[Write] = (),
    count_writes: Sequence[Update] = (),
) -> StartedTurn:
    """Write the turn row and the first log entry together with `writes`.

    Args:
        state: The turn's first state.
        hold_writes: The hold of the first request, so that nothing is held for a turn that does not start.
        count_writes: What the turn counts as, so that nothing is counted for a turn that does not start.

    Raises:
        PositionTaken: Another message is stored where `writes` put one; nothing else is in the way.
        Conflict: A condition in `writes` does not hold.
        UsageCountersChanged: Of the conditions that do not hold, none is in `writes`, and some are in `count_writes`.
        AccountsChanged: Only conditions in `hold_writes` do not hold.
    """
    bridge_ready = BridgeReadyEvent(bridge_id=turn.id, undoes=turn.undone_turn or None)
    log_entry = LogEntry(1, 1, (bridge_ready,), state, new_id(16), turn.started_ms)
    table = resources.settings.bridges_table
    turn_put = Put(table, turn_to_item(turn), if_absent=True)
    log_put = Put(table, log_entry_to_item(resources, turn.partition, log_entry), if_absent=True)
    try:
        resources.tables.write_items(*hold_writes, *count_writes, *writes, turn_put, log_put)
    except (TransactionCanceled, *AWS_ERRORS) as error:
        # No other writer uses this turn's id: if the entry is there, it was written and only the answer was lost.
        if read_last_entry(resources, turn.pk) is None:
            if isinstance(error, TransactionCanceled):
                raise _explain_refusal(error.reasons[len(hold_writes) :], count_writes, writes) from error
            raise
    return StartedTurn(turn, log_entry)


def _explain_refusal(
    reasons: Sequence[CancellationReason], count_writes: Sequence[Update], writes: Sequence[Write]
) -> Exception:
    """Return the error for a refused START, whose writes after the hold's are `count_writes`, `writes`, its own two."""
    count_reasons, other_reasons = reasons[: len(count_writes)], reasons[len(count_writes) :]
    if not any(reason.condition_failed for reason in other_reasons):
        if any(reason.condition_failed for reason in count_reasons):
            return UsageCountersChanged.from_reasons(count_writes, count_reasons)
        return AccountsChanged()
    own_reasons = other_reasons[: len(writes)]
    refused = [write for write, reason in zip(writes, own_reasons, strict=True) if reason.condition_failed]
    # Only the message is put with `if_absent`.
    if refused and all(isinstance(write, Put) and write.if_absent for write in refused):
        return PositionTaken(CONVERSATION_BUSY_MESSAGE, retry_after=2)
    return ConversationBusy(CONVERSATION_BUSY_MESSAGE, retry_after=2)


def start_workflow(resources: Resources, turn: Turn) -> None:
    """Start the turn's execution. A failure is logged only: the turn exists, and its recovery starts it later."""
    try:
        resources.workflow.start_execution(turn.tenant, turn.id, turn.execution_number, hint=turn.start_hint)
    except AWS_ERRORS:
        observability.log_exception("turn.start_failed", turn=turn.id)
