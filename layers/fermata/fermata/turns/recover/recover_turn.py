"""Recover one turn: give it a new workflow execution, or end it with an error."""

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Update
from fermata.aws.resources import Resources
from fermata.domain.events import CancelledEvent, ErrorEvent
from fermata.turns.end.stop_turn import finish_paused_execution, stop_turn
from fermata.turns.pause import load_pause
from fermata.turns.turn import Turn, load_turn
from fermata.turns.turn_log import LogEntry, read_last_entry

BROKEN_TURN_ERROR = ErrorEvent(
    message="The turn was interrupted by an error of the service. Send your message again.",
    code="broken",
    retryable=True,
)
BROKEN_UNDO_ERROR = ErrorEvent(
    message="The undo was interrupted by an error of the service. Undo again to undo the remaining edits.",
    code="broken",
    retryable=True,
)
ABORTED_TURN_ERROR = ErrorEvent(message="The turn was stopped by an operator.", code="aborted", retryable=True)
REPORTED_FAILURE_NAME = "TurnFailed"
"""Error of the workflow's state Failed: the state before it has ended the turn, or could not."""
TABLES_RESTORED_NAME = "TablesRestored"
"""Error that an operator gives an execution whose turn goes on from restored tables (decision 0254)."""


def recover_turn(
    resources: Resources,
    tenant: str,
    turn_id: str,
    *,
    execution_number: int | None = None,
    has_execution_failed: bool = False,
    start_grace_seconds: float | None = None,
    is_unstarted: bool = False,
) -> None:
    """Do what the state of the turn's execution requires. Safe to repeat, and to do several times at once.

    Args:
        tenant: The tenant's name.
        turn_id: The turn; nothing is done if it has expired, or has ended and is listed no more.
        execution_number: Act only if this execution is still the turn's current one.
        has_execution_failed: Whether the workflow itself reports the failure, so that its state need not be read.
        start_grace_seconds: How old the turn must be for its missing execution to be started here; None for the
            setting of that name.
        is_unstarted: Start the execution without asking about it, if the log has its first entry only. Starting it
            again changes nothing, and of starts there may be twenty times as many as of questions (decision 0248).

    Raises:
        ServiceUnavailable: The workflow could not be resumed. The next recovery tries again.
    """
    turn = load_turn(resources, tenant, turn_id)
    if turn is None or (execution_number is not None and execution_number != turn.execution_number):
        return
    last_entry = read_last_entry(resources, turn.pk)
    if last_entry is None:
        observability.log_warning("turn.without_log", turn=turn.id)
        return
    if last_entry.state.phase == "ended":
        _finish_ended_turn(resources, turn, last_entry.state.round)
        return
    if turn.parent and _has_lost_parent(resources, turn):
        stop_turn(resources, turn, CancelledEvent())
        return
    if has_execution_failed:
        _stop_or_continue(resources, turn, last_entry, "FAILED", REPORTED_FAILURE_NAME)
        return
    if is_unstarted:
        if last_entry.first_number == 1:
            _start_missing_execution(resources, turn, start_grace_seconds)
        return
    status, error = resources.workflow.describe_execution(turn.id, turn.execution_number)
    if status == "MISSING":
        _start_missing_execution(resources, turn, start_grace_seconds)
    else:
        _stop_or_continue(resources, turn, last_entry, status, error)


def _finish_ended_turn(resources: Resources, turn: Turn, round_: int) -> None:
    """Resume the execution of a held turn whose end was stored by a function that died before it did that."""
    if turn.is_listed:
        finish_paused_execution(resources, turn, round_)


def _has_lost_parent(resources: Resources, turn: Turn) -> bool:
    from fermata.turns.sub_agents.stop_children import has_lost_parent  # most turns are those of users

    return has_lost_parent(resources, turn)


def _start_missing_execution(resources: Resources, turn: Turn, start_grace_seconds: float | None) -> None:
    """Start the execution, unless the request that has started the turn may still be doing that."""
    grace = resources.settings.start_grace_seconds if start_grace_seconds is None else start_grace_seconds
    if resources.clock.time() - turn.started_ms / 1000 >= grace:
        resources.workflow.start_execution(turn.tenant, turn.id, turn.execution_number)


def _stop_or_continue(resources: Resources, turn: Turn, last_entry: LogEntry, status: str, error: str) -> None:
    if status == "RUNNING":
        _resume_answered_hold(resources, turn, last_entry)
    elif status == "ABORTED" and error != TABLES_RESTORED_NAME:
        stop_turn(resources, turn, ABORTED_TURN_ERROR)
    elif status == "TIMED_OUT" or (status == "FAILED" and error == REPORTED_FAILURE_NAME):
        stop_turn(resources, turn, _get_broken_error(turn))
    else:  # it ended before it could report anything (decision 0244)
        _start_next_execution(resources, turn)


def _resume_answered_hold(resources: Resources, turn: Turn, last_entry: LogEntry) -> None:
    """Resume a held turn whose last answer was committed by a function that died before it resumed the turn.

    Hold has no heartbeat timeout that would notice. Its own may come long after the time of the call behind the
    answered one is over (decision 0322).
    """
    if last_entry.state.phase not in ("calls", "ready"):
        return
    pause = load_pause(resources, turn, last_entry.state.round)
    if pause and pause.is_held and pause.waits_until <= resources.clock.time():
        hint = pause.build_invocation_hint(resources.settings.bridges_table)
        resources.workflow.resume_execution(pause.callback_token, "round", hint=hint)


def _get_broken_error(turn: Turn) -> ErrorEvent:
    return BROKEN_UNDO_ERROR if turn.undone_turn else BROKEN_TURN_ERROR


def _start_next_execution(resources: Resources, turn: Turn) -> None:
    """Start the next execution, under a number of its own.

    Of several recoveries at once, one changes the number. Each may start the execution, because its name is its
    number; so none needs to know whether the number was changed by a copy of its own write.
    """
    if turn.execution_number >= resources.settings.max_executions:
        stop_turn(resources, turn, _get_broken_error(turn))
        return
    next_execution = turn.execution_number + 1
    update = Update(
        resources.settings.bridges_table,
        turn.pk,
        "turn",
        "SET n = :next",
        {":next": next_execution, ":now": turn.execution_number},
        condition="n = :now",
    )
    try:
        resources.tables.write_items(update)
    except ConditionFailed as refused:
        if refused.item is None or refused.item["n"] != next_execution:
            return
    observability.log_event("turn.continued", turn=turn.id, n=next_execution)
    resources.workflow.start_execution(turn.tenant, turn.id, next_execution)
