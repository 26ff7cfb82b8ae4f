"""One writer per conversation: what happens when a prompt meets a turn that still holds the claim."""

from fermata.aws.desk import Desk
from fermata.turns import log as logs
from fermata.turns import pause as pauses
from fermata.turns import turn as turns
from fermata.turns.ending import stop
from fermata.turns.recovering import recover
from fermata.turns.turn import Turn, partition
from fermata.words.caller import Caller
from fermata.words.dialect import Dialect
from fermata.words.errors import Conflict
from fermata.words.events import Cancelled, TurnError

BUSY = "This conversation is already generating a response. Wait for it to end, or cancel it."
DOUBLE_CLICK_SECONDS = 2
OVER_AGE = TurnError(message="The turn fell silent and was given up.", code="over_age", retryable=True)


def make_room(desk: Desk, caller: Caller, claimed_by: str, dialect: Dialect) -> None:
    """Ends the other turn in its own log when it may be ended; raises Conflict when it is alive."""
    row = desk.tables.get(desk.settings.bridges_table, partition(caller.tenant, claimed_by), "turn")
    turn = turns.read(row, desk.clock.time())
    if turn is None:
        return
    tail = logs.last(desk, turn.pk)
    if tail is None or tail.standing.phase == "ended":
        return
    age = desk.clock.time() - tail.at_ms / 1000
    if _is_over_age(desk, turn, tail, age):
        stop(desk, turn, OVER_AGE)
    elif _interrupts(desk, caller, turn, dialect):
        stop(desk, turn, Cancelled())
    else:
        if age > desk.settings.start_grace_seconds:
            recover(desk, turn.tenant, turn.id)
        raise Conflict(BUSY, retry_after=2)


def _is_over_age(desk: Desk, turn: Turn, tail: logs.Entry, age: float) -> bool:
    """No open pause, and silent for longer than any function can run (design §4, Claim)."""
    if age <= desk.settings.over_age_seconds:
        return False
    pause = pauses.load(desk, turn, tail.standing.round) if tail.standing.phase == "calls" else None
    asked = pause.open_request if pause else None
    return asked is None or asked.deadline < desk.clock.time()


def _interrupts(desk: Desk, caller: Caller, turn: Turn, dialect: Dialect) -> bool:
    """Instatic's browsers stop by closing the connection; their next prompt ends the turn still running (§7)."""
    is_old_enough = desk.clock.time() - turn.started_ms / 1000 > DOUBLE_CLICK_SECONDS
    return dialect == "instatic" and turn.user == caller.user and is_old_enough
