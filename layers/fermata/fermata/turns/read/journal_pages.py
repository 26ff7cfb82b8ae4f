"""Show the journal of a turn, page by page (docs/revisions-and-undo.md)."""

import re
from typing import Any

from fermata.agents.registry import get_tool_namer
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.dialect import ToolNameMapper, ToolNameVariant
from fermata.domain.page_cursor import match_page_cursor
from fermata.turns.edit_journal import JournalEntry, read_journal_page
from fermata.turns.turn import find_turn_for_caller

JOURNAL_CURSOR_PATTERN = re.compile(r"[0-9]{6}-[0-9]{4}")
MAX_JOURNAL_PAGE_EDITS = 100


def get_journal_page(
    resources: Resources, caller: Caller, bridge_id: str, cursor: str = "", tool_names: ToolNameVariant = "seed"
) -> dict[str, Any]:
    """Return a page of the turn's edits, oldest first. The turn may still run.

    Args:
        cursor: `nextCursor` of the page before; empty for the first page.
        tool_names: Which names tools have in the answer.

    Raises:
        NotFound: There is no such turn, or it is not the caller's.
        InvalidRequest: The cursor is malformed.
    """
    turn = find_turn_for_caller(resources, caller, bridge_id)
    if cursor:
        match_page_cursor(cursor, JOURNAL_CURSOR_PATTERN)
    after = cursor.replace("-", "#")
    entries, last_key = read_journal_page(resources, turn, after=after, limit=MAX_JOURNAL_PAGE_EDITS)
    to_wire_name = get_tool_namer(turn.scope, tool_names)
    page = {"bridgeId": turn.id, "entries": [journal_entry_to_wire(entry, to_wire_name) for entry in entries]}
    return page | ({"nextCursor": last_key.replace("#", "-")} if last_key else {})


def journal_entry_to_wire(entry: JournalEntry, to_wire_name: ToolNameMapper = str) -> dict[str, Any]:
    """Return the edit as clients see it: with the tools of its inverse, but without their input."""
    edit = entry.edit
    wire = {
        "effectKey": edit.effect_key,
        "seq": edit.entry_number,
        "round": edit.round,
        "call": edit.call_index,
        "toolCallId": edit.tool_call_id,
        "toolName": to_wire_name(edit.tool_name),
        "input": edit.input_summary,
        "at": edit.answered_at,
        "inverse": [to_wire_name(tool) for tool in entry.inverse_tools],
        "state": entry.state,
    }
    optional = {
        "revisionBefore": edit.revision_before,
        "revisionAfter": edit.revision_after,
        "problem": edit.inverse_problem,
    }
    wire |= {name: member for name, member in optional.items() if member}
    if mark := entry.mark:
        wire |= {"redoneBy": mark.last_redo_turn} if mark.last_redo_turn else {}
        wire |= {"undoneBy": mark.marking_turn} if mark.marking_turn != mark.last_redo_turn else {}
        wire |= {"reason": mark.skip_reason} if mark.skip_reason else {}
    return wire
