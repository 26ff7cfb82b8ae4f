"""A turn's edits are to be taken back: that is a turn of its own, which asks no model (docs/editing.md)."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from fermata.aws import signals
from fermata.aws.clock import new_id
from fermata.aws.desk import Desk
from fermata.conversations import rows, threads
from fermata.turns import journal
from fermata.turns.ending import how_it_ended, owned
from fermata.turns.joining import Started, make_true, remembered, set_going, started_once
from fermata.turns.log import Entry
from fermata.turns.room import BUSY, claim, free_position, make_room
from fermata.turns.standing import Standing
from fermata.turns.turn import Turn
from fermata.words.caller import Caller
from fermata.words.conversation import Conversation
from fermata.words.dialect import Dialect, ToolNames
from fermata.words.errors import Conflict, Invalid, NotFound
from fermata.words.events import BridgeReady

OPEN = ("applied", "partly")
"""States of edits that can be taken back."""
RUNNING = "This turn is still running. Wait for it to end, or cancel it, before you take back what it did."
NO_EDIT = "'through' must be the effectKey of an edit of this turn: see its journal."
NOTHING = "There is nothing to undo: this turn has made no edit that can be taken back."
UNDONE = "There is nothing to undo: everything was taken back already. To redo it, undo the turn {}."
NO_REDO = "There is nothing to undo: everything was taken back already, and the editor gave no way to redo it."
STANDS = "There is nothing to undo: what it took back stands again. To take that back once more, undo the turn {}."


@dataclass(frozen=True)
class Wish:
    """`through`: the effect key of the oldest edit to take back; empty for all of them."""

    bridge_id: str
    dialect: Dialect
    tool_names: ToolNames | None = None
    """What tools are called towards this client; None: what the turn called them."""
    through: str = ""
    idempotency_key: str = ""

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(["undo", self.bridge_id, self.through]).encode()).hexdigest()


def undo(desk: Desk, caller: Caller, wish: Wish) -> Started:
    """Starts the turn that asks the editor for the inverses, the newest edit first.

    NotFound: not the caller's. Conflict: it still runs, another turn does, or nothing is left to take back.
    """
    act = partial(_undo, desk, caller, wish)
    return started_once(desk, caller, wish.idempotency_key, wish.digest, act)


def _undo(desk: Desk, caller: Caller, wish: Wish) -> Started:
    undone = owned(desk, caller, wish.bridge_id)
    through = _through(undone, wish)
    if how_it_ended(desk, undone) is None:
        raise Conflict(RUNNING, retry_after=2)
    conversation = _room(desk, caller, undone)
    _something_to_do(desk, undone, through)  # read after the conversation: whoever undoes in between moves that on
    turn = _turn(desk, caller, wish, undone, through)
    entry = _commit(desk, wish, conversation, turn)
    set_going(desk, turn)
    signals.count({"TurnsStarted": 1})
    signals.audit(
        "ai.undo.started",
        tenant=turn.tenant,
        user=turn.user,
        scope=turn.scope,
        conversation=turn.conversation,
        turn=turn.id,
        undoes=turn.undoes,
    )
    return Started(turn, entry)


def _through(undone: Turn, wish: Wish) -> str:
    key = journal.key_in(wish.through, undone.id) if wish.through else ""
    if key is None:
        raise Invalid(NO_EDIT)
    return key


def _room(desk: Desk, caller: Caller, undone: Turn) -> Conversation:
    """An undo never ends a turn that works: it waits for its turn like a second prompt."""
    conversation = _conversation(desk, undone)
    if gone := conversation.claim:
        make_room(desk, caller, gone, "fermata")
        conversation = _conversation(desk, undone)
        if conversation.claim not in (None, gone):
            raise Conflict(BUSY, retry_after=2)
    return conversation


def _conversation(desk: Desk, undone: Turn) -> Conversation:
    """Whoever may see the turn may see to its conversation, be it somebody else's."""
    row = desk.tables.get(desk.settings.conversations_table, rows.partition(undone.tenant, undone.conversation), "meta")
    if row is None or "deleted_at" in row:
        raise NotFound(threads.GONE)
    return threads.read(row)


def _something_to_do(desk: Desk, undone: Turn, through: str) -> None:
    edits = [entry for entry in journal.everything(desk, undone.tenant, undone.id) if entry.key >= through]
    if through and not (edits and edits[-1].key == through):
        raise Invalid(NO_EDIT)
    if any(entry.state in OPEN for entry in edits):
        return
    raise Conflict(_what_now(desk, undone.tenant, edits))


def _what_now(desk: Desk, tenant: str, edits: Sequence[journal.Entry]) -> str:
    """Nothing of a turn can be taken back: which one is to be undone instead."""
    last = next((entry for entry in edits if entry.mark and entry.done), None)
    if last is None:
        return NOTHING
    link = last.edit.link
    origin = (journal.find(desk, tenant, link.turn, link.edit) if link else None) or last
    if link and origin.state in OPEN:
        return STANDS.format(link.turn)
    by = origin.mark.by if origin.mark else ""
    can_be_redone = any(entry.state in OPEN for entry in journal.everything(desk, tenant, by))
    return UNDONE.format(by) if can_be_redone else NO_REDO


def _turn(desk: Desk, caller: Caller, wish: Wish, undone: Turn, through: str) -> Turn:
    now = desk.clock.time()
    return undone.model_copy(
        update={
            "id": new_id(),
            "user": caller.user,
            "capabilities": tuple(sorted(caller.capabilities)),
            "dialect": wish.dialect,
            "tool_names": wish.tool_names or undone.tool_names,
            "situation": "",
            "started_ms": int(now * 1000),
            "expires": int(now) + desk.settings.turn_lifetime_seconds,
            "budgeted": False,
            "undoes": undone.id,
            "through": through,
            "n": 1,
            "state": "open",
        }
    )


def _commit(desk: Desk, wish: Wish, conversation: Conversation, turn: Turn) -> Entry:
    """START, without a message: what came of it is told at the end. The window stays as full as it was."""
    position = free_position(desk, conversation)
    standing = Standing(position=position, context=conversation.context_tokens)
    ready = BridgeReady(bridge_id=turn.id, undoes=turn.undoes)
    entry = Entry(1, 1, (ready,), standing, new_id(16), turn.started_ms)
    make_true(
        desk,
        turn,
        entry,
        claim(desk, conversation, turn, position),
        *remembered(desk, turn, wish.idempotency_key, wish.digest),
    )
    return entry
