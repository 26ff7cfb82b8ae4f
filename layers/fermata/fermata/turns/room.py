"""One writer per conversation: what happens when a prompt meets a turn that still holds the claim."""

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Update
from fermata.aws.trouble import TROUBLE
from fermata.conversations import rows
from fermata.turns import log as logs
from fermata.turns import pause as pauses
from fermata.turns import turn as turns
from fermata.turns.ending import how_it_ended, stop
from fermata.turns.recovering import recover
from fermata.turns.turn import Turn, partition
from fermata.words.caller import Caller
from fermata.words.conversation import Conversation
from fermata.words.dialect import Dialect
from fermata.words.errors import Conflict
from fermata.words.events import Cancelled, TurnError

BUSY = "This conversation is already generating a response. Wait for it to end, or cancel it."
DOUBLE_CLICK_SECONDS = 2
OVER_AGE = TurnError(message="The turn fell silent and was given up.", code="over_age", retryable=True)


def make_room(desk: Desk, caller: Caller, claimed_by: str, dialect: Dialect) -> None:
    """Returns when the other turn will not write any more, ended in its own log if need be; else raises Conflict."""
    row = desk.tables.get(desk.settings.bridges_table, partition(caller.tenant, claimed_by), "turn")
    turn = turns.read(row, desk.clock.time())
    tail = logs.last(desk, turn.pk) if turn else None
    if turn is None or tail is None or tail.standing.phase == "ended":
        return
    if _is_over_age(desk, turn, tail):
        stop(desk, turn, OVER_AGE)
    elif _interrupts(desk, caller, turn, dialect):
        stop(desk, turn, Cancelled())
    elif not _has_ended_meanwhile(desk, turn, tail):
        raise Conflict(BUSY, retry_after=2)


def vacate(desk: Desk, conversation: Conversation) -> None:
    """End the turn that still runs in a conversation nobody will see again."""
    if conversation.claim:
        row = desk.tables.get(desk.settings.bridges_table, partition(conversation.tenant, conversation.claim), "turn")
        turn = turns.read(row, desk.clock.time())
        if turn is not None:
            stop(desk, turn, Cancelled())


def _is_over_age(desk: Desk, turn: Turn, tail: logs.Entry) -> bool:
    """No open pause, and silent for longer than any function can run (design §4, Claim)."""
    silent_since = tail.at_ms / 1000
    if tail.standing.phase == "calls":
        pause = pauses.load(desk, turn, tail.standing.round)
        asked = pause.open_request if pause else None
        silent_since = max(silent_since, asked.deadline if asked else 0)
    return desk.clock.time() - silent_since > desk.settings.over_age_seconds


def _has_ended_meanwhile(desk: Desk, turn: Turn, tail: logs.Entry) -> bool:
    """A turn that fell silent is seen to first; that helps whoever comes next even when it does not help us."""
    if desk.clock.time() - tail.at_ms / 1000 <= desk.settings.start_grace_seconds:
        return False
    try:
        recover(desk, turn.tenant, turn.id)
    except TROUBLE:
        signals.failed("turn.recovery_failed", turn=turn.id)
    return how_it_ended(desk, turn) is not None


def _interrupts(desk: Desk, caller: Caller, turn: Turn, dialect: Dialect) -> bool:
    """Instatic's browsers stop by closing the connection; their next prompt ends the turn still running (§7)."""
    is_old_enough = desk.clock.time() - turn.started_ms / 1000 > DOUBLE_CLICK_SECONDS
    return dialect == "instatic" and turn.user == caller.user and is_old_enough


def free_position(desk: Desk, conversation: Conversation) -> int:
    """Behind everything that is there. A turn that never let go of its claim may have written more than it told."""
    if conversation.claim is None:
        return conversation.next_position
    tail = logs.last(desk, partition(conversation.tenant, conversation.claim))
    return max(conversation.next_position, tail.standing.position if tail else 0)


def claim(desk: Desk, conversation: Conversation, turn: Turn, next_position: int, title: str = "") -> Update:
    """Only while it is as it was read: free, or in the hands of a turn that is over; and no message came since."""
    values = {
        ":turn": turn.id,
        ":read": conversation.next_position,
        ":next": next_position,
        ":now": desk.clock.instant(),
    }
    free, called = "attribute_not_exists(claim)", ""
    if conversation.claim:
        free, values[":gone"] = "claim = :gone", conversation.claim
    if title:
        called, values[":title"] = ", auto_title = if_not_exists(auto_title, :title)", title
    return Update(
        desk.settings.conversations_table,
        rows.partition(turn.tenant, conversation.id),
        "meta",
        f"SET claim = :turn, next_position = :next, updated_at = :now, gsk = :now{called}",
        values,
        condition=f"{free} AND next_position = :read AND attribute_not_exists(deleted_at)",
    )
