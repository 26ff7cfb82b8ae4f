"""One writer per conversation: what happens when a prompt meets a turn that still holds the claim."""

from fermata.aws import observability
from fermata.aws.dynamodb import Update
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.conversations import message_store
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.dialect import Dialect
from fermata.domain.errors import Conflict
from fermata.domain.events import CancelledEvent, ErrorEvent
from fermata.turns.end.end_turn import read_end_type, stop_turn
from fermata.turns.pause import load_pause
from fermata.turns.recover.recover_turn import recover_turn
from fermata.turns.turn import Turn, build_turn_pk, turn_from_item
from fermata.turns.turn_log import LogEntry, read_last_entry

CONVERSATION_BUSY_MESSAGE = "This conversation is already generating a response. Wait for it to end, or cancel it."
MIN_INTERRUPTIBLE_TURN_SECONDS = 2
STALLED_TURN_ERROR = ErrorEvent(message="The turn fell silent and was given up.", code="over_age", retryable=True)


def ensure_no_active_turn(resources: Resources, caller: Caller, claiming_turn_id: str, dialect: Dialect) -> None:
    """Returns when the other turn will not write any more, ended in its own log if need be; else raises Conflict."""
    row = resources.tables.get_item(
        resources.settings.bridges_table, build_turn_pk(caller.tenant, claiming_turn_id), "turn"
    )
    turn = turn_from_item(row, resources.clock.time())
    tail = read_last_entry(resources, turn.pk) if turn else None
    if turn is None or tail is None or tail.state.phase == "ended":
        return
    if _is_over_age(resources, turn, tail):
        stop_turn(resources, turn, STALLED_TURN_ERROR)
    elif _interrupts(resources, caller, turn, dialect):
        stop_turn(resources, turn, CancelledEvent())
    elif not _has_ended_meanwhile(resources, turn, tail):
        raise Conflict(CONVERSATION_BUSY_MESSAGE, retry_after=2)


def cancel_active_turn(resources: Resources, conversation: Conversation) -> None:
    """End the turn that still runs in a conversation nobody will see again."""
    if conversation.claim:
        row = resources.tables.get_item(
            resources.settings.bridges_table, build_turn_pk(conversation.tenant, conversation.claim), "turn"
        )
        turn = turn_from_item(row, resources.clock.time())
        if turn is not None:
            stop_turn(resources, turn, CancelledEvent())


def _is_over_age(resources: Resources, turn: Turn, tail: LogEntry) -> bool:
    """No open pause, and silent for longer than any function can run (design §4, Claim)."""
    silent_since = tail.at_ms / 1000
    if tail.state.phase == "calls":
        pause = load_pause(resources, turn, tail.state.round)
        asked = pause.requested_call if pause else None
        silent_since = max(silent_since, asked.deadline if asked else 0)
    return resources.clock.time() - silent_since > resources.settings.stalled_turn_seconds


def _has_ended_meanwhile(resources: Resources, turn: Turn, tail: LogEntry) -> bool:
    """A turn that fell silent is seen to first; that helps whoever comes next even when it does not help us."""
    if resources.clock.time() - tail.at_ms / 1000 <= resources.settings.start_grace_seconds:
        return False
    try:
        recover_turn(resources, turn.tenant, turn.id)
    except AWS_ERRORS:
        observability.log_exception("turn.recovery_failed", turn=turn.id)
    return read_end_type(resources, turn) is not None


def _interrupts(resources: Resources, caller: Caller, turn: Turn, dialect: Dialect) -> bool:
    """Instatic's browsers stop by closing the connection; their next prompt ends the turn still running (§7)."""
    is_old_enough = resources.clock.time() - turn.started_ms / 1000 > MIN_INTERRUPTIBLE_TURN_SECONDS
    return dialect == "instatic" and turn.user == caller.user and is_old_enough


def find_free_position(resources: Resources, conversation: Conversation) -> int:
    """Behind everything that is there. A turn that never let go of its claim may have written more than it told."""
    if conversation.claim is None:
        return conversation.next_position
    tail = read_last_entry(resources, build_turn_pk(conversation.tenant, conversation.claim))
    return max(conversation.next_position, tail.state.position if tail else 0)


def build_claim_update(
    resources: Resources, conversation: Conversation, turn: Turn, next_position: int, title: str = ""
) -> Update:
    """Only while it is as it was read: free, or in the hands of a turn that is over; and no message came since."""
    values = {
        ":turn": turn.id,
        ":read": conversation.next_position,
        ":next": next_position,
        ":now": resources.clock.now_iso(),
    }
    free, called = "attribute_not_exists(claim)", ""
    if conversation.claim:
        free, values[":gone"] = "claim = :gone", conversation.claim
    if title:
        called, values[":title"] = ", auto_title = if_not_exists(auto_title, :title)", title
    return Update(
        resources.settings.conversations_table,
        message_store.conversation_partition(turn.tenant, conversation.id),
        "meta",
        f"SET claim = :turn, next_position = :next, updated_at = :now, gsk = :now{called}",
        values,
        condition=f"{free} AND next_position = :read AND attribute_not_exists(deleted_at)",
    )
