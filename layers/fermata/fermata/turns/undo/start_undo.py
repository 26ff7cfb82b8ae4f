"""Start an undo: a turn of its own that asks the editor to undo another turn's edits (docs/revisions-and-undo.md)."""

import hashlib
import json
from collections.abc import Sequence
from functools import partial

from fermata.aws import observability
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import Update
from fermata.aws.resources import Resources
from fermata.conversations import conversation_store, message_store
from fermata.conversations.conversation_rows import conversation_from_item
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.dialect import Dialect, ToolNameVariant
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.domain.use_limits import DEFAULT_CALLER_LIMITS, CallerLimits
from fermata.domain.value_dataclass import value_dataclass
from fermata.limits.count_use import UseCounter
from fermata.limits.usage_counters import Use
from fermata.turns.edit_journal import (
    JournalEntry,
    edit_key_from_effect_key,
    find_model_entry,
    list_journal_entries,
)
from fermata.turns.start.commit_start import StartedTurn, commit_start, start_workflow
from fermata.turns.start.conversation_claim import build_claim_update, ensure_claimable, find_free_position
from fermata.turns.start.idempotency import build_idempotency_puts, start_once
from fermata.turns.turn import UNDO_MARGIN_SECONDS, Turn, find_turn_for_caller
from fermata.turns.turn_log import read_end_type
from fermata.turns.turn_state_from_log import TurnState
from fermata.webhooks.webhook import read_webhooks

UNDOABLE_STATES = ("applied", "partly")
TURN_RUNNING_MESSAGE = "This turn is still running. Wait for it to end, or cancel it, before you undo its edits."
UNKNOWN_EDIT_MESSAGE = "'through' must be the effectKey of an edit of this turn: see its journal."
NOTHING_TO_UNDO_MESSAGE = "There is nothing to undo: this turn has made no edit that can be undone."
ALREADY_UNDONE_MESSAGE = "There is nothing to undo: everything was undone already. To redo it, undo the turn {}."
TOO_OLD_MESSAGE = "This turn is too old to be undone: its journal is deleted within the hour."
NO_REDO_MESSAGE = (
    "There is nothing to undo: everything was undone already, and the editor reported no inverse to redo it with."
)
ALREADY_REDONE_MESSAGE = (
    "There is nothing to undo: what it took back stands again. To take that back once more, undo the turn {}."
)


@value_dataclass(frozen=True)
class UndoRequest:
    """Which edits to undo, as a client asked for it."""

    bridge_id: str
    dialect: Dialect
    tool_names: ToolNameVariant | None = None
    """Names of tools for this client; None: those of the turn that is undone."""
    through: str = ""
    """Effect key of the oldest edit to undo; empty for all edits of the turn."""
    idempotency_key: str = ""
    limits: CallerLimits = DEFAULT_CALLER_LIMITS

    @property
    def digest(self) -> str:
        """What a repetition with the same Idempotency-Key must have in common with the first request, as hex digits."""
        return hashlib.sha256(json.dumps(["undo", self.bridge_id, self.through]).encode()).hexdigest()


def start_undo(resources: Resources, caller: Caller, request: UndoRequest) -> StartedTurn:
    """Start the turn that undoes another turn's edits, newest first (decision 0117).

    Args:
        caller: The user of the turn that is undone.
        request: The turn, and how far back to go.

    Raises:
        NotFound: The turn does not exist, is not the caller's, or its conversation is deleted.
        InvalidRequest: `request.through` is no edit of the turn.
        TooManyRequests: As many turns are running as may run at once.
        Conflict: The turn still runs or is about to expire, another turn holds the conversation, or nothing is left
            to undo.
    """
    start = partial(_start, resources, caller, request)
    return start_once(resources, caller, request.idempotency_key, request.digest, start)


def _start(resources: Resources, caller: Caller, request: UndoRequest) -> StartedTurn:
    undone_turn = find_turn_for_caller(resources, caller, request.bridge_id)
    through = _parse_through(undone_turn, request)
    if read_end_type(resources, undone_turn) is None:
        raise Conflict(TURN_RUNNING_MESSAGE, retry_after=2)
    if resources.clock.time() >= undone_turn.expires - UNDO_MARGIN_SECONDS:
        raise Conflict(TOO_OLD_MESSAGE)
    conversation = _load_claimable_conversation(resources, caller, undone_turn)
    # Read after the conversation: another undo that starts meanwhile changes it, and the claim below then fails.
    _check_undoable(resources, undone_turn, through)
    turn = _build_turn(resources, caller, request, undone_turn, through)
    started = _commit_turn(resources, caller, request, conversation, turn)
    start_workflow(resources, turn)
    observability.emit_metrics({"TurnsStarted": 1})
    observability.log_audit_event(
        "ai.undo.started",
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.conversation,
        turn=turn.id,
        undoes=turn.undone_turn,
    )
    return started


def _parse_through(undone_turn: Turn, request: UndoRequest) -> str:
    edit_key = edit_key_from_effect_key(request.through, undone_turn.id) if request.through else ""
    if edit_key is None:
        raise InvalidRequest(UNKNOWN_EDIT_MESSAGE)
    return edit_key


def _load_claimable_conversation(resources: Resources, caller: Caller, undone_turn: Turn) -> Conversation:
    load_conversation = partial(_load_conversation, resources, undone_turn)
    # With the dialect `fermata`: an undo never interrupts a running turn.
    return ensure_claimable(resources, caller, load_conversation(), "fermata", load_conversation)


def _load_conversation(resources: Resources, undone_turn: Turn) -> Conversation:
    """Load the conversation without checking its owner: a caller who may see the turn may undo it."""
    pk = message_store.conversation_partition(undone_turn.tenant, undone_turn.conversation)
    item = resources.tables.get_item(resources.settings.conversations_table, pk, "meta")
    if item is None or "deleted_at" in item:
        raise NotFound(conversation_store.CONVERSATION_NOT_FOUND)
    return conversation_from_item(item)


def _check_undoable(resources: Resources, undone_turn: Turn, through: str) -> None:
    all_entries = list_journal_entries(resources, undone_turn.tenant, undone_turn.id)
    entries = [entry for entry in all_entries if entry.key >= through]
    if through and not (entries and entries[-1].key == through):
        raise InvalidRequest(UNKNOWN_EDIT_MESSAGE)
    if not any(entry.state in UNDOABLE_STATES for entry in entries):
        raise Conflict(_explain_nothing_to_undo(resources, undone_turn.tenant, entries))


def _explain_nothing_to_undo(resources: Resources, tenant: str, entries: Sequence[JournalEntry]) -> str:
    """Name the turn to undo instead, if there is one (decision 0119)."""
    newest_undone = next((entry for entry in entries if entry.state == "undone"), None)
    if newest_undone is None:
        return NOTHING_TO_UNDO_MESSAGE
    model_entry = find_model_entry(resources, tenant, newest_undone) or newest_undone
    if model_entry.state in UNDOABLE_STATES:
        return ALREADY_REDONE_MESSAGE.format(model_entry.turn)
    undo_turn = model_entry.mark.marking_turn if model_entry.mark else ""
    undo_entries = list_journal_entries(resources, tenant, undo_turn)
    can_be_redone = any(entry.state in UNDOABLE_STATES for entry in undo_entries)
    return ALREADY_UNDONE_MESSAGE.format(undo_turn) if can_be_redone else NO_REDO_MESSAGE


def _build_turn(resources: Resources, caller: Caller, request: UndoRequest, undone_turn: Turn, through: str) -> Turn:
    now = resources.clock.time()
    return undone_turn.model_copy(
        update={
            "id": new_id(),
            "user": caller.user,
            "capabilities": tuple(sorted(caller.capabilities)),
            "dialect": request.dialect,
            "tool_names": request.tool_names or undone_turn.tool_names,
            "situation": "",
            "sealed_authorization": b"",
            "prompt_digest": "",
            "is_cancelled_on_disconnect": False,
            "started_ms": int(now * 1000),
            "expires": int(now) + resources.settings.turn_lifetime_seconds,
            "has_budget": False,
            "has_tool_budget": False,
            "undone_turn": undone_turn.id,
            "undone_turn_expires": undone_turn.expires,
            "oldest_edit_to_undo": through,
            "execution_number": 1,
            "state": "open",
        }
    )


def _commit_turn(
    resources: Resources, caller: Caller, request: UndoRequest, conversation: Conversation, turn: Turn
) -> StartedTurn:
    """Write START without a message: the undo writes one when it ends. The context keeps its size until then.

    An undo counts as a turn, but not as a prompt (decision 0239).
    """
    position = find_free_position(resources, conversation)
    has_webhooks = read_webhooks(resources, turn.tenant).has_enabled
    counter = UseCounter(resources, caller, request.limits, turn.id)

    def commit(count_writes: Sequence[Update]) -> StartedTurn:
        return commit_start(
            resources,
            turn.model_copy(update={"limits_shard": counter.shard}),
            TurnState(next_position=position, context_tokens=conversation.context_tokens, has_webhooks=has_webhooks),
            build_claim_update(resources, conversation, turn, position),
            message_store.build_undo_put(resources, turn.tenant, conversation.id, turn.id),
            *build_idempotency_puts(resources, turn, request.idempotency_key, request.digest),
            count_writes=count_writes,
        )

    return counter.commit(Use(turn=turn.id), commit)
