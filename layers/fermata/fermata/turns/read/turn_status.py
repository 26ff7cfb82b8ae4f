"""How a turn stands, for whoever comes back to it: a reloaded tab, a second reader, an operator."""

import re
from typing import Any

from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.dialect import ToolNameVariant
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.domain.events import ToolRequestEvent
from fermata.tools.registry import get_tool_namer
from fermata.turns import edit_journal
from fermata.turns.end.end_turn import find_turn_for_caller
from fermata.turns.pause import Pause, load_pause
from fermata.turns.turn import Turn, build_turn_pk, turn_from_item
from fermata.turns.turn_log import LogEntry, read_entries_from, read_last_entry

JOURNAL_CURSOR_PATTERN = re.compile(r"[0-9]{6}-[0-9]{4}")
MAX_JOURNAL_PAGE_EDITS = 100
"""Of a page of the journal."""


def get_turn_status(
    resources: Resources, caller: Caller, bridge_id: str, tool_names: ToolNameVariant = "seed"
) -> dict[str, Any]:
    """`status`: running, paused (somebody is asked), done, error or cancelled. `names`: what tools are called in it."""
    turn = find_turn_for_caller(resources, caller, bridge_id)
    tail = _tail(resources, turn)
    called = get_tool_namer(turn.scope, tool_names)
    pending = [asked | {"toolName": called(asked["toolName"])} for asked in _pending(resources, turn, tail)]
    found = {
        "bridgeId": turn.id,
        "conversationId": turn.conversation,
        "status": _status(tail, bool(pending)),
        "seq": tail.next_number - 1,
        "round": tail.state.round,
        "pending": pending,
    }
    return found | ({"undoes": turn.undoes} if turn.undoes else {})


def get_journal_page(
    resources: Resources, caller: Caller, bridge_id: str, cursor: str = "", tool_names: ToolNameVariant = "seed"
) -> dict[str, Any]:
    """A page of the turn's journal, from an edit on; the turn may still run."""
    turn = find_turn_for_caller(resources, caller, bridge_id)
    if cursor and not JOURNAL_CURSOR_PATTERN.fullmatch(cursor):
        raise InvalidRequest("'cursor' must be the nextCursor of the page before.")
    page, last = edit_journal.read_journal_page(
        resources, turn, after=cursor.replace("-", "#"), limit=MAX_JOURNAL_PAGE_EDITS
    )
    listed = {
        "bridgeId": turn.id,
        "entries": [
            edit_journal.journal_entry_to_wire(entry, get_tool_namer(turn.scope, tool_names)) for entry in page
        ],
    }
    return listed | ({"nextCursor": last.replace("#", "-")} if last else {})


def find_active_turn(resources: Resources, conversation: Conversation) -> dict[str, Any] | None:
    """The turn that holds the conversation now, so that a reloaded tab finds it."""
    if not conversation.claim:
        return None
    row = resources.tables.get_item(
        resources.settings.bridges_table, build_turn_pk(conversation.tenant, conversation.claim), "turn"
    )
    turn = turn_from_item(row, resources.clock.time())
    tail = read_last_entry(resources, turn.pk) if turn else None
    if turn is None or tail is None or tail.state.phase == "ended":
        return None
    is_asking = tail.state.phase == "calls" and bool(_pending(resources, turn, tail))
    return {"bridgeId": turn.id, "seq": tail.next_number - 1, "state": _status(tail, is_asking)}


def _tail(resources: Resources, turn: Turn) -> LogEntry:
    tail = read_last_entry(resources, turn.pk)
    if tail is None:
        raise NotFound("There is no such turn, or it is too old to be remembered.")
    return tail


def _status(tail: LogEntry, is_asking: bool) -> str:
    if tail.state.phase == "ended":
        return tail.events[-1].type
    return "paused" if is_asking else "running"


def _pending(resources: Resources, turn: Turn, tail: LogEntry) -> list[dict[str, Any]]:
    if tail.state.phase != "calls":
        return []
    pause = load_pause(resources, turn, tail.state.round)
    return [_asked(request) for request in _open_requests(resources, turn, pause)] if pause else []


def _open_requests(resources: Resources, turn: Turn, pause: Pause) -> list[ToolRequestEvent]:
    """The requests as they were told: their input lives in the log."""
    waiting = {call.request_id for call in pause.calls if call.state == "requested"}
    if not waiting:
        return []
    told = [event for entry in read_entries_from(resources, turn.pk, pause.entry) for event in entry.events]
    return [event for event in told if isinstance(event, ToolRequestEvent) and event.request_id in waiting]


def _asked(request: ToolRequestEvent) -> dict[str, Any]:
    return {name: value for name, value in request.to_wire().items() if name != "type"}
