"""Report what a turn did and when: its requests with their usage, and its log, page by page (decision 0278)."""

import json
from typing import Any

from fermata.agents.registry import get_tool_namer
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.dialect import ToolNameMapper, ToolNameVariant
from fermata.domain.events import Event, ReasoningEvent, TextEvent
from fermata.turns.read.turn_list import describe_turn, sum_requests
from fermata.turns.turn import find_turn_for_caller
from fermata.turns.turn_log import LogEntry, read_entries_from
from fermata.usage.ledger.ledger_store import read_turn_requests

MAX_REPORT_ENTRIES = 200
_MAX_TEXT_CHARACTERS = 2_000
"""Of one member of an event."""


def get_turn_report(
    resources: Resources, caller: Caller, bridge_id: str, after: int = 0, tool_names: ToolNameVariant = "seed"
) -> dict[str, Any]:
    """Return a page of the turn's log with the instant of each event. The first page also has the turn's requests.

    Args:
        after: The number of the last event that the caller has; 0 for the first page.
        tool_names: Which names tools have in the answer.

    Raises:
        NotFound: There is no such turn, or it is not the caller's.
    """
    turn = find_turn_for_caller(resources, caller, bridge_id)
    entries = read_entries_from(resources, turn.pk, after + 1, limit=MAX_REPORT_ENTRIES)
    to_wire_name = get_tool_namer(turn.scope, tool_names)
    log = [line for entry in entries for line in _describe_entry(entry, to_wire_name)]
    report: dict[str, Any] = {"bridgeId": turn.id, "log": log}
    if not after:
        rows = read_turn_requests(resources, turn.tenant, turn.id)
        report |= describe_turn(turn) | sum_requests(rows)
        report["modelRequests"] = [_describe_request(row) for row in rows]
    if len(entries) == MAX_REPORT_ENTRIES:
        report["nextAfter"] = entries[-1].next_number - 1
    return report


def _describe_entry(entry: LogEntry, to_wire_name: ToolNameMapper) -> list[dict[str, Any]]:
    at = iso_from_epoch(entry.at_ms / 1000)
    numbered = enumerate(entry.events, entry.first_number)
    return [{"seq": number, "at": at} | _describe_event(event, to_wire_name) for number, event in numbered]


def _describe_event(event: Event, to_wire_name: ToolNameMapper) -> dict[str, Any]:
    if isinstance(event, TextEvent | ReasoningEvent):
        return {"type": event.type, "characters": len(event.text)}
    members = {name: _shorten(member) for name, member in event.to_wire().items() if name != "type"}
    if "toolName" in members:
        members["toolName"] = to_wire_name(members["toolName"])
    return {"type": event.type, "event": members}


def _shorten(member: Any) -> Any:
    """Return a member; a large one as the beginning of its text."""
    if isinstance(member, bool | int | float) or (isinstance(member, str) and len(member) <= _MAX_TEXT_CHARACTERS):
        return member
    text = member if isinstance(member, str) else json.dumps(member, ensure_ascii=False)
    return member if len(text) <= _MAX_TEXT_CHARACTERS else f"{text[:_MAX_TEXT_CHARACTERS]}…"


def _describe_request(row: Item) -> dict[str, Any]:
    round_text = str(row["sk"]).partition("#")[0].removeprefix("r")
    return {
        "round": int(round_text),
        "at": row["at"],
        "modelId": row["model"],
        "outcome": row.get("outcome", "ok"),
        "isEstimated": bool(row.get("estimated", False)),
    } | {name: member for name, member in sum_requests([row]).items() if name not in ("rounds", "requests")}
