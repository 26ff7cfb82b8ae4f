"""How a turn stands, for whoever comes back to it: a reloaded tab, a second reader, an operator."""

import re
from typing import Any

from fermata.aws.desk import Desk
from fermata.tools.catalogue import naming
from fermata.turns import journal
from fermata.turns import log as logs
from fermata.turns import pause as pauses
from fermata.turns import turn as turns
from fermata.turns.ending import owned
from fermata.turns.log import Entry
from fermata.turns.pause import Pause
from fermata.turns.turn import Turn, partition
from fermata.words.caller import Caller
from fermata.words.conversation import Conversation
from fermata.words.dialect import ToolNames
from fermata.words.errors import Invalid, NotFound
from fermata.words.events import ToolRequest

CURSOR = re.compile(r"[0-9]{6}-[0-9]{4}")
MOST_EDITS = 100
"""Of a page of the journal."""


def look(desk: Desk, caller: Caller, bridge_id: str, names: ToolNames = "seed") -> dict[str, Any]:
    """`status`: running, paused (somebody is asked), done, error or cancelled. `names`: what tools are called in it."""
    turn = owned(desk, caller, bridge_id)
    tail = _tail(desk, turn)
    called = naming(turn.scope, names)
    pending = [asked | {"toolName": called(asked["toolName"])} for asked in _pending(desk, turn, tail)]
    found = {
        "bridgeId": turn.id,
        "conversationId": turn.conversation,
        "status": _status(tail, bool(pending)),
        "seq": tail.next - 1,
        "round": tail.standing.round,
        "pending": pending,
    }
    return found | ({"undoes": turn.undoes} if turn.undoes else {})


def edits(desk: Desk, caller: Caller, bridge_id: str, cursor: str = "", names: ToolNames = "seed") -> dict[str, Any]:
    """A page of the turn's journal, from an edit on; the turn may still run."""
    turn = owned(desk, caller, bridge_id)
    if cursor and not CURSOR.fullmatch(cursor):
        raise Invalid("'cursor' must be the nextCursor of the page before.")
    page, last = journal.page(desk, turn, after=cursor.replace("-", "#"), limit=MOST_EDITS)
    listed = {"bridgeId": turn.id, "entries": [journal.view(entry, naming(turn.scope, names)) for entry in page]}
    return listed | ({"nextCursor": last.replace("#", "-")} if last else {})


def active_turn(desk: Desk, conversation: Conversation) -> dict[str, Any] | None:
    """The turn that holds the conversation now, so that a reloaded tab finds it."""
    if not conversation.claim:
        return None
    row = desk.tables.get(desk.settings.bridges_table, partition(conversation.tenant, conversation.claim), "turn")
    turn = turns.read(row, desk.clock.time())
    tail = logs.last(desk, turn.pk) if turn else None
    if turn is None or tail is None or tail.standing.phase == "ended":
        return None
    is_asking = tail.standing.phase == "calls" and bool(_pending(desk, turn, tail))
    return {"bridgeId": turn.id, "seq": tail.next - 1, "state": _status(tail, is_asking)}


def _tail(desk: Desk, turn: Turn) -> Entry:
    tail = logs.last(desk, turn.pk)
    if tail is None:
        raise NotFound("There is no such turn, or it is too old to be remembered.")
    return tail


def _status(tail: Entry, is_asking: bool) -> str:
    if tail.standing.phase == "ended":
        return tail.events[-1].type
    return "paused" if is_asking else "running"


def _pending(desk: Desk, turn: Turn, tail: Entry) -> list[dict[str, Any]]:
    if tail.standing.phase != "calls":
        return []
    pause = pauses.load(desk, turn, tail.standing.round)
    return [_asked(request) for request in _open_requests(desk, turn, pause)] if pause else []


def _open_requests(desk: Desk, turn: Turn, pause: Pause) -> list[ToolRequest]:
    """The requests as they were told: their input lives in the log."""
    waiting = {call.request_id for call in pause.calls if call.state == "requested"}
    if not waiting:
        return []
    told = [event for entry in logs.since(desk, turn.pk, pause.entry) for event in entry.events]
    return [event for event in told if isinstance(event, ToolRequest) and event.request_id in waiting]


def _asked(request: ToolRequest) -> dict[str, Any]:
    return {name: value for name, value in request.wire().items() if name != "type"}
