"""A turn's edits are to be taken back: that is a turn of its own, which asks no model (docs/editing.md)."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from fermata.aws import observability
from fermata.aws.clock import new_id
from fermata.aws.resources import Resources
from fermata.conversations import conversation_store, message_store
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.dialect import Dialect, ToolNameVariant
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.domain.events import BridgeReadyEvent
from fermata.turns import edit_journal
from fermata.turns.end.end_turn import find_turn_for_caller, read_end_type
from fermata.turns.start.conversation_claim import (
    CONVERSATION_BUSY_MESSAGE,
    build_claim_update,
    ensure_no_active_turn,
    find_free_position,
)
from fermata.turns.start.idempotency import (
    StartedTurn,
    build_idempotency_puts,
    commit_start,
    start_once,
    start_workflow,
)
from fermata.turns.state import TurnState
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry

UNDOABLE_STATES = ("applied", "partly")
"""States of edits that can be taken back."""
TURN_RUNNING_MESSAGE = "This turn is still running. Wait for it to end, or cancel it, before you take back what it did."
UNKNOWN_EDIT_MESSAGE = "'through' must be the effectKey of an edit of this turn: see its journal."
NOTHING_TO_UNDO_MESSAGE = "There is nothing to undo: this turn has made no edit that can be taken back."
ALREADY_UNDONE_MESSAGE = "There is nothing to undo: everything was taken back already. To redo it, undo the turn {}."
NO_REDO_MESSAGE = "There is nothing to undo: everything was taken back already, and the editor gave no way to redo it."
ALREADY_REDONE_MESSAGE = (
    "There is nothing to undo: what it took back stands again. To take that back once more, undo the turn {}."
)


@dataclass(frozen=True)
class UndoRequest:
    """`through`: the effect key of the oldest edit to take back; empty for all of them."""

    bridge_id: str
    dialect: Dialect
    tool_names: ToolNameVariant | None = None
    """What tools are called towards this client; None: what the turn called them."""
    through: str = ""
    idempotency_key: str = ""

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(["undo", self.bridge_id, self.through]).encode()).hexdigest()


def start_undo(resources: Resources, caller: Caller, request: UndoRequest) -> StartedTurn:
    """Starts the turn that asks the editor for the inverses, the newest edit first.

    NotFound: not the caller's. Conflict: it still runs, another turn does, or nothing is left to take back.
    """
    act = partial(_undo, resources, caller, request)
    return start_once(resources, caller, request.idempotency_key, request.digest, act)


def _undo(resources: Resources, caller: Caller, wish: UndoRequest) -> StartedTurn:
    undone = find_turn_for_caller(resources, caller, wish.bridge_id)
    through = _through(undone, wish)
    if read_end_type(resources, undone) is None:
        raise Conflict(TURN_RUNNING_MESSAGE, retry_after=2)
    conversation = _room(resources, caller, undone)
    _something_to_do(resources, undone, through)  # read after the conversation: whoever undoes in between moves that on
    turn = _turn(resources, caller, wish, undone, through)
    entry = _commit(resources, wish, conversation, turn)
    start_workflow(resources, turn)
    observability.emit_metrics({"TurnsStarted": 1})
    observability.log_audit_event(
        "ai.undo.started",
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.conversation,
        turn=turn.id,
        undoes=turn.undoes,
    )
    return StartedTurn(turn, entry)


def _through(undone: Turn, wish: UndoRequest) -> str:
    key = edit_journal.edit_key_from_effect_key(wish.through, undone.id) if wish.through else ""
    if key is None:
        raise InvalidRequest(UNKNOWN_EDIT_MESSAGE)
    return key


def _room(resources: Resources, caller: Caller, undone: Turn) -> Conversation:
    """An undo never ends a turn that works: it waits for its turn like a second prompt."""
    conversation = _conversation(resources, undone)
    if gone := conversation.claim:
        ensure_no_active_turn(resources, caller, gone, "fermata")
        conversation = _conversation(resources, undone)
        if conversation.claim not in (None, gone):
            raise Conflict(CONVERSATION_BUSY_MESSAGE, retry_after=2)
    return conversation


def _conversation(resources: Resources, undone: Turn) -> Conversation:
    """Whoever may see the turn may see to its conversation, be it somebody else's."""
    row = resources.tables.get_item(
        resources.settings.conversations_table,
        message_store.conversation_partition(undone.tenant, undone.conversation),
        "meta",
    )
    if row is None or "deleted_at" in row:
        raise NotFound(conversation_store.CONVERSATION_NOT_FOUND)
    return conversation_store.conversation_from_item(row)


def _something_to_do(resources: Resources, undone: Turn, through: str) -> None:
    edits = [
        entry
        for entry in edit_journal.list_journal_entries(resources, undone.tenant, undone.id)
        if entry.key >= through
    ]
    if through and not (edits and edits[-1].key == through):
        raise InvalidRequest(UNKNOWN_EDIT_MESSAGE)
    if any(entry.state in UNDOABLE_STATES for entry in edits):
        return
    raise Conflict(_what_now(resources, undone.tenant, edits))


def _what_now(resources: Resources, tenant: str, edits: Sequence[edit_journal.JournalEntry]) -> str:
    """Nothing of a turn can be taken back: which one is to be undone instead."""
    last = next((entry for entry in edits if entry.mark and entry.undone_steps), None)
    if last is None:
        return NOTHING_TO_UNDO_MESSAGE
    link = last.edit.link
    origin = (edit_journal.find_journal_entry(resources, tenant, link.turn, link.edit) if link else None) or last
    if link and origin.state in UNDOABLE_STATES:
        return ALREADY_REDONE_MESSAGE.format(link.turn)
    by = origin.mark.by if origin.mark else ""
    can_be_redone = any(
        entry.state in UNDOABLE_STATES for entry in edit_journal.list_journal_entries(resources, tenant, by)
    )
    return ALREADY_UNDONE_MESSAGE.format(by) if can_be_redone else NO_REDO_MESSAGE


def _turn(resources: Resources, caller: Caller, wish: UndoRequest, undone: Turn, through: str) -> Turn:
    now = resources.clock.time()
    return undone.model_copy(
        update={
            "id": new_id(),
            "user": caller.user,
            "capabilities": tuple(sorted(caller.capabilities)),
            "dialect": wish.dialect,
            "tool_names": wish.tool_names or undone.tool_names,
            "situation": "",
            "started_ms": int(now * 1000),
            "expires": int(now) + resources.settings.turn_lifetime_seconds,
            "budgeted": False,
            "undoes": undone.id,
            "through": through,
            "n": 1,
            "state": "open",
        }
    )


def _commit(resources: Resources, wish: UndoRequest, conversation: Conversation, turn: Turn) -> LogEntry:
    """START, without a message: what came of it is told at the end. The window stays as full as it was."""
    position = find_free_position(resources, conversation)
    standing = TurnState(position=position, context=conversation.context_tokens)
    ready = BridgeReadyEvent(bridge_id=turn.id, undoes=turn.undoes)
    entry = LogEntry(1, 1, (ready,), standing, new_id(16), turn.started_ms)
    commit_start(
        resources,
        turn,
        entry,
        build_claim_update(resources, conversation, turn, position),
        *build_idempotency_puts(resources, turn, wish.idempotency_key, wish.digest),
    )
    return entry
