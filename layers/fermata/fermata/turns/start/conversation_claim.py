"""Claim a conversation for one turn, and decide what happens to a turn that holds the claim already."""

from collections.abc import Callable

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import Update
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.conversations import message_store
from fermata.conversations.message_cuts import MessageCuts, encode_cuts
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.dialect import Dialect
from fermata.domain.errors import Conflict
from fermata.domain.events import CancelledEvent, ErrorEvent
from fermata.turns.end.stop_turn import stop_turn
from fermata.turns.pause import load_pause
from fermata.turns.read.reader_presence import has_reader_departed, is_departure_detectable
from fermata.turns.recover.recover_turn import recover_turn
from fermata.turns.turn import Turn, build_turn_pk, load_turn
from fermata.turns.turn_log import LogEntry, read_end_type, read_last_entry

CONVERSATION_BUSY_MESSAGE = "This conversation is already generating a response. Wait for it to end, or cancel it."


class ConversationBusy(Conflict):
    """Another turn holds the conversation. `turn` is its id, or empty where it is not known."""

    turn: str = ""


MIN_INTERRUPTIBLE_TURN_SECONDS = 2
"""A second prompt within this time is a double click, and does not interrupt the first."""
MAX_DOUBLE_CLICK_SECONDS = 15
"""The same prompt again within this time is a double click whose second request was slow, such as a cold start."""
DEPARTURE_CHECKS = 8
DEPARTURE_CHECK_SECONDS = 0.15
"""How often and how far apart to look whether the reader has left. A client that stops and asks again is quicker than
the row that says that it has stopped."""
SUPERSEDED_REASON = "Another prompt in this conversation, for example from another tab, has ended this answer."
STALLED_TURN_ERROR = ErrorEvent(message="The turn stopped responding and was ended.", code="over_age", retryable=True)


def ensure_claimable(
    resources: Resources,
    caller: Caller,
    conversation: Conversation,
    dialect: Dialect,
    reload_conversation: Callable[[], Conversation],
    prompt_digest: str = "",
    *,
    interrupts: bool = False,
) -> Conversation:
    """Return the conversation in a state in which `build_claim_update` may claim it.

    Args:
        dialect: Of the client that wants to claim it.
        reload_conversation: Reads it again, after the turn that held the claim is over.
        prompt_digest: Of the prompt that wants to claim it; empty if it is none.
        interrupts: Whether the client asks to end the turn that holds it.

    Raises:
        Conflict: Another turn holds the claim and still runs.
    """
    claiming_turn_id = conversation.claim
    if not claiming_turn_id:
        return conversation
    ensure_no_active_turn(resources, caller, claiming_turn_id, dialect, prompt_digest, interrupts=interrupts)
    conversation = reload_conversation()
    if conversation.claim not in (None, claiming_turn_id):
        raise _build_busy_error(conversation.claim or "")
    return conversation


def ensure_no_active_turn(
    resources: Resources,
    caller: Caller,
    claiming_turn_id: str,
    dialect: Dialect,
    prompt_digest: str = "",
    *,
    interrupts: bool = False,
) -> None:
    """Return when the turn that holds the claim writes no more. A stalled or interrupted turn is ended here.

    Raises:
        Conflict: The turn still runs.
    """
    turn = load_turn(resources, caller.tenant, claiming_turn_id)
    last_entry = read_last_entry(resources, turn.pk) if turn else None
    if turn is None or last_entry is None or last_entry.state.phase == "ended":
        return
    if _is_stalled(resources, turn, last_entry):
        stop_turn(resources, turn, STALLED_TURN_ERROR)
    elif interrupts and turn.user == caller.user:
        stop_turn(resources, turn, CancelledEvent(reason=SUPERSEDED_REASON))
    elif _is_interrupted_by(resources, caller, turn, dialect, prompt_digest):
        reason = None if _is_departure_known(resources, turn) else SUPERSEDED_REASON
        stop_turn(resources, turn, CancelledEvent(reason=reason))
    elif not _has_ended_meanwhile(resources, turn, last_entry):
        raise _build_busy_error(turn.id)


def _build_busy_error(turn: str) -> ConversationBusy:
    error = ConversationBusy(CONVERSATION_BUSY_MESSAGE, retry_after=2)
    error.turn = turn
    return error


def cancel_active_turn(resources: Resources, conversation: Conversation) -> None:
    """Cancel the turn that runs in a conversation which is being deleted.

    Raises:
        ServiceUnavailable: The turn has ended, but its workflow could not be resumed. Repeat the call.
    """
    if conversation.claim:
        turn = load_turn(resources, conversation.tenant, conversation.claim)
        if turn is not None:
            stop_turn(resources, turn, CancelledEvent())


def _is_stalled(resources: Resources, turn: Turn, last_entry: LogEntry) -> bool:
    """Return whether no request is open and the log has been silent for longer than any function can run."""
    silent_since = last_entry.at_ms / 1000
    if last_entry.state.phase == "calls":
        pause = load_pause(resources, turn, last_entry.state.round)
        silent_since = max(silent_since, pause.waits_until if pause else 0)
    return resources.clock.time() - silent_since > resources.settings.stalled_turn_seconds


def _has_ended_meanwhile(resources: Resources, turn: Turn, last_entry: LogEntry) -> bool:
    """Recover a silent turn first. Even if that does not end it now, it helps the next prompt."""
    if resources.clock.time() - last_entry.at_ms / 1000 <= resources.settings.start_grace_seconds:
        return False
    try:
        recover_turn(resources, turn.tenant, turn.id)
    except AWS_ERRORS:
        observability.log_exception("turn.recovery_failed", turn=turn.id)
    return read_end_type(resources, turn) is not None


def _is_interrupted_by(resources: Resources, caller: Caller, turn: Turn, dialect: Dialect, prompt_digest: str) -> bool:
    """Return whether the prompt ends the turn: Instatic's browsers stop one by leaving it (decisions 0068, 0211)."""
    if dialect != "instatic" or turn.user != caller.user:
        return False
    if _is_departure_known(resources, turn):
        return _has_reader_left(resources, turn)
    is_same_prompt = bool(prompt_digest) and prompt_digest == turn.prompt_digest
    minimum_age = MAX_DOUBLE_CLICK_SECONDS if is_same_prompt else MIN_INTERRUPTIBLE_TURN_SECONDS
    return resources.clock.time() - turn.started_ms / 1000 > minimum_age


def _is_departure_known(resources: Resources, turn: Turn) -> bool:
    return turn.is_cancelled_on_disconnect or is_departure_detectable(resources, turn)


def _has_reader_left(resources: Resources, turn: Turn) -> bool:
    """Return whether the turn is left or has ended. A proxy's cancellation ends it (decision 0216).

    Where no row says who reads, a missing one says nothing (decision 0217).
    """
    has_row = is_departure_detectable(resources, turn)
    for _ in range(DEPARTURE_CHECKS):
        if (has_row and has_reader_departed(resources, turn)) or read_end_type(resources, turn) is not None:
            return True
        resources.clock.sleep(DEPARTURE_CHECK_SECONDS)
    return False


def find_free_position(resources: Resources, conversation: Conversation) -> int:
    """Return the position behind all messages.

    A turn that never released its claim may have written more messages than the conversation's row counts.
    """
    if conversation.claim is None:
        return conversation.next_position
    last_entry = read_last_entry(resources, build_turn_pk(conversation.tenant, conversation.claim))
    return max(conversation.next_position, last_entry.state.next_position if last_entry else 0)


def find_position_behind_messages(resources: Resources, conversation: Conversation) -> int:
    """Return the position behind the newest stored message, where the conversation's row counts fewer.

    That can be when the turn that wrote the messages expired without having released its claim.
    """
    newest = message_store.read_newest_messages(resources, conversation.tenant, conversation.id, limit=1)
    ends = [message.position + message_store.count_positions(message) for message in newest]
    return max(conversation.next_position, *ends, 0)


def build_claim_update(
    resources: Resources,
    conversation: Conversation,
    turn: Turn,
    next_position: int,
    title: str = "",
    *,
    cuts: MessageCuts | None = None,
    stores_model: bool = False,
) -> Update:
    """Return the write that claims the conversation for `turn`.

    Its condition: the conversation has not changed since it was read. It is unclaimed, or claimed by the same turn,
    which is over; it has no newer message; and it is not deleted.

    Args:
        title: Stored as the automatic title if the conversation has none.
        cuts: The positions that count no more, where they have changed.
        stores_model: Whether the model and the credential of `conversation` are those of later turns too.
    """
    values = {
        ":turn": turn.id,
        ":read": conversation.next_position,
        ":next": next_position,
        ":now": resources.clock.now_iso(),
    }
    claim_condition = "attribute_not_exists(claim)"
    if conversation.claim:
        claim_condition = "claim = :previous"
        values[":previous"] = conversation.claim
    more_assignments = ""
    if title:
        more_assignments = ", auto_title = if_not_exists(auto_title, :title)"
        values[":title"] = title
    if cuts is not None:
        more_assignments += ", cuts = :cuts"
        values[":cuts"] = encode_cuts(cuts)
    if stores_model:
        more_assignments += ", model_id = :model, credential_id = :credential ADD settings_version :one"
        values |= {":model": conversation.model_id, ":credential": conversation.credential_id, ":one": 1}
    return Update(
        resources.settings.conversations_table,
        message_store.conversation_partition(turn.tenant, conversation.id),
        "meta",
        f"SET claim = :turn, next_position = :next, updated_at = :now, gsk = :now{more_assignments}",
        values,
        condition=f"{claim_condition} AND next_position = :read AND attribute_not_exists(deleted_at)",
    )
