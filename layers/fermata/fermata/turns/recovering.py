"""A turn whose execution is gone goes on in another one, or ends with an error (design §4, Recovery)."""

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import ConditionFailed, Update
from fermata.turns import log as logs
from fermata.turns import pause as pauses
from fermata.turns import turn as turns
from fermata.turns.ending import stop
from fermata.turns.turn import OPEN_SHARDS, Turn, partition
from fermata.words.events import TurnError

BROKEN = TurnError(message="The turn broke off on our side. Send your message again.", code="broken", retryable=True)
BROKEN_UNDO = TurnError(
    message="The undo broke off on our side. Undo again to take back what is left.", code="broken", retryable=True
)
ABORTED = TurnError(message="The turn was stopped by an operator.", code="aborted", retryable=True)
RESTARTED = "States.ServiceRestart"
"""The local cloud's word for an execution that did not survive its restart."""


def recover(desk: Desk, tenant: str, turn_id: str, *, n: int | None = None, has_failed: bool = False) -> None:
    """See to one turn. `n` names the execution meant: only the turn's current one is acted on.

    `has_failed`: the workflow itself says that this execution is about to end, so nobody needs to be asked.
    """
    row = desk.tables.get(desk.settings.bridges_table, partition(tenant, turn_id), "turn")
    turn = turns.read(row, desk.clock.time())
    if turn is None or (n is not None and n != turn.n):
        return
    tail = logs.last(desk, turn.pk)
    if tail is None:
        signals.warn("turn.without_log", turn=turn.id)
        return
    if tail.standing.phase == "ended":
        return
    status, error = ("FAILED", "") if has_failed else desk.workflow.state(turn.id, turn.n)
    _act(desk, turn, tail, status, error)


def _act(desk: Desk, turn: Turn, tail: logs.Entry, status: str, error: str) -> None:
    if status == "RUNNING":
        _remind(desk, turn, tail)
    elif status == "MISSING":
        if desk.clock.time() - turn.started_ms / 1000 > desk.settings.start_grace_seconds:
            desk.workflow.start(turn.tenant, turn.id, turn.n)
    elif status == "ABORTED":
        stop(desk, turn, ABORTED)
    elif status in ("FAILED", "TIMED_OUT") and error != RESTARTED:
        stop(desk, turn, _broken(turn))
    else:
        _continue(desk, turn)


def _remind(desk: Desk, turn: Turn, tail: logs.Entry) -> None:
    """Whoever gave the last answer may have died before it woke the turn, and Hold has no clock that would notice."""
    if tail.standing.phase not in ("calls", "ready"):
        return
    pause = pauses.load(desk, turn, tail.standing.round)
    if pause and pause.held and pause.open_request is None:
        desk.workflow.go_on(pause.token, "round", hint=pause.hint)


def _broken(turn: Turn) -> TurnError:
    return BROKEN_UNDO if turn.undoes else BROKEN


def _continue(desk: Desk, turn: Turn) -> None:
    """Hand the turn to its next execution; whoever else recovers at the same time changes nothing."""
    if turn.n >= desk.settings.continuations:
        stop(desk, turn, _broken(turn))
        return
    following = turn.n + 1
    move = Update(
        desk.settings.bridges_table,
        turn.pk,
        "turn",
        "SET n = :next",
        {":next": following, ":now": turn.n},
        condition="n = :now",
    )
    try:
        desk.tables.write(move)
    except ConditionFailed:
        return
    signals.tell("turn.continued", turn=turn.id, n=following)
    desk.workflow.start(turn.tenant, turn.id, following)


def sweep(desk: Desk) -> int:
    """Recover every open turn that may be silent; returns how many were looked at."""
    table, before = desk.settings.bridges_table, desk.clock.instant(-desk.settings.start_grace_seconds)
    seen = 0
    for shard in range(OPEN_SHARDS):
        for row in desk.tables.query_index(table, "open", ("open", f"open#{shard}")):
            if row["openSince"] > before:
                break
            seen += 1
            _recover_row(desk, row["pk"])
    return seen


def _recover_row(desk: Desk, pk: str) -> None:
    """One turn that cannot be recovered must not keep the others from it; it is logged and swept again.

    The index holds keys only, and they say enough.
    """
    try:
        _, tenant, _, turn = pk.split("#", 3)
        recover(desk, tenant, turn)
    except Exception:  # noqa: BLE001 - logged whole; the next sweep tries again
        signals.failed("turn.recovery_failed", row=pk)
