"""A turn whose execution is gone goes on in another one, or ends with an error (design §4, Recovery)."""

from fermata.aws import observability
from fermata.aws.dynamodb import ConditionFailed, Update
from fermata.aws.resources import Resources
from fermata.domain.events import ErrorEvent
from fermata.turns.end.end_turn import stop_turn
from fermata.turns.pause import load_pause
from fermata.turns.turn import OPEN_SHARDS, Turn, build_turn_pk, turn_from_item
from fermata.turns.turn_log import LogEntry, read_last_entry

BROKEN_TURN_ERROR = ErrorEvent(
    message="The turn broke off on our side. Send your message again.", code="broken", retryable=True
)
BROKEN_UNDO_ERROR = ErrorEvent(
    message="The undo broke off on our side. Undo again to take back what is left.", code="broken", retryable=True
)
ABORTED_TURN_ERROR = ErrorEvent(message="The turn was stopped by an operator.", code="aborted", retryable=True)
SERVICE_RESTART_ERROR_NAME = "States.ServiceRestart"
"""The local cloud's word for an execution that did not survive its restart."""


def recover_turn(
    resources: Resources, tenant: str, turn_id: str, *, n: int | None = None, has_failed: bool = False
) -> None:
    """See to one turn. `n` names the execution meant: only the turn's current one is acted on.

    `has_failed`: the workflow itself says that this execution is about to end, so nobody needs to be asked.
    """
    row = resources.tables.get_item(resources.settings.bridges_table, build_turn_pk(tenant, turn_id), "turn")
    turn = turn_from_item(row, resources.clock.time())
    if turn is None or (n is not None and n != turn.n):
        return
    tail = read_last_entry(resources, turn.pk)
    if tail is None:
        observability.log_warning("turn.without_log", turn=turn.id)
        return
    if tail.state.phase == "ended":
        return
    status, error = ("FAILED", "") if has_failed else resources.workflow.describe_execution(turn.id, turn.n)
    _act(resources, turn, tail, status, error)


def _act(resources: Resources, turn: Turn, tail: LogEntry, status: str, error: str) -> None:
    if status == "RUNNING":
        _remind(resources, turn, tail)
    elif status == "MISSING":
        if resources.clock.time() - turn.started_ms / 1000 > resources.settings.start_grace_seconds:
            resources.workflow.start_execution(turn.tenant, turn.id, turn.n)
    elif status == "ABORTED":
        stop_turn(resources, turn, ABORTED_TURN_ERROR)
    elif status in ("FAILED", "TIMED_OUT") and error != SERVICE_RESTART_ERROR_NAME:
        stop_turn(resources, turn, _broken(turn))
    else:
        _continue(resources, turn)


def _remind(resources: Resources, turn: Turn, tail: LogEntry) -> None:
    """Whoever gave the last answer may have died before it woke the turn, and Hold has no clock that would notice."""
    if tail.state.phase not in ("calls", "ready"):
        return
    pause = load_pause(resources, turn, tail.state.round)
    if pause and pause.held and pause.requested_call is None:
        resources.workflow.resume_execution(pause.token, "round", hint=pause.hint)


def _broken(turn: Turn) -> ErrorEvent:
    return BROKEN_UNDO_ERROR if turn.undoes else BROKEN_TURN_ERROR


def _continue(resources: Resources, turn: Turn) -> None:
    """Hand the turn to its next execution; whoever else recovers at the same time changes nothing."""
    if turn.n >= resources.settings.max_executions:
        stop_turn(resources, turn, _broken(turn))
        return
    following = turn.n + 1
    move = Update(
        resources.settings.bridges_table,
        turn.pk,
        "turn",
        "SET n = :next",
        {":next": following, ":now": turn.n},
        condition="n = :now",
    )
    try:
        resources.tables.write_items(move)
    except ConditionFailed:
        return
    observability.log_event("turn.continued", turn=turn.id, n=following)
    resources.workflow.start_execution(turn.tenant, turn.id, following)


def recover_silent_turns(resources: Resources) -> int:
    """Recover every open turn that may be silent; returns how many were looked at."""
    table, before = resources.settings.bridges_table, resources.clock.now_iso(-resources.settings.start_grace_seconds)
    seen = 0
    for shard in range(OPEN_SHARDS):
        for row in resources.tables.query_index(table, "open", ("open", f"open#{shard}")):
            if row["openSince"] > before:
                break
            seen += 1
            _recover_row(resources, row["pk"])
    return seen


def _recover_row(resources: Resources, pk: str) -> None:
    """One turn that cannot be recovered must not keep the others from it; it is logged and swept again.

    The index holds keys only, and they say enough.
    """
    try:
        _, tenant, _, turn = pk.split("#", 3)
        recover_turn(resources, tenant, turn)
    except Exception:  # noqa: BLE001 - logged whole; the next sweep tries again
        observability.log_exception("turn.recovery_failed", row=pk)
