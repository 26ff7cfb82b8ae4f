"""Report the status of a turn: to a reloaded tab, a second reader, or an operator."""

from typing import Any

from fermata.agents.registry import get_tool_namer
from fermata.aws.clock import iso_from_epoch
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.conversation import Conversation
from fermata.domain.dialect import ToolNameVariant
from fermata.domain.errors import NotFound
from fermata.domain.events import ToolRequestEvent
from fermata.turns.pause import Pause, load_pause
from fermata.turns.turn import TURN_NOT_FOUND_MESSAGE, Turn, find_turn_for_caller, load_turn
from fermata.turns.turn_log import LogEntry, read_entries_from, read_last_entry


def get_turn_status(
    resources: Resources, caller: Caller, bridge_id: str, tool_names: ToolNameVariant = "seed"
) -> dict[str, Any]:
    """Return the turn's status (running, paused, done, error or cancelled) and its open tool requests.

    Args:
        tool_names: Which names tools have in the answer.

    Raises:
        NotFound: There is no such turn, or it is not the caller's.
    """
    turn = find_turn_for_caller(resources, caller, bridge_id)
    last_entry = read_last_entry(resources, turn.pk)
    if last_entry is None:
        raise NotFound(TURN_NOT_FOUND_MESSAGE)
    to_wire_name = get_tool_namer(turn.scope, tool_names)
    pause = _load_open_pause(resources, turn, last_entry)
    requests = _read_requests_of_pause(resources, turn, pause) if pause else []
    pending = [_request_to_wire(request) | {"toolName": to_wire_name(request.tool_name)} for request in requests]
    status = {
        "bridgeId": turn.id,
        "conversationId": turn.root_conversation,
        "status": _get_status(last_entry, pause),
        "seq": last_entry.next_number - 1,
        "round": last_entry.state.round,
        "pending": pending,
    }
    if approvals := _list_waiting_approvals(pause):
        status["approvals"] = approvals
    return status | describe_origin(turn)


def describe_origin(turn: Turn) -> dict[str, str]:
    """Return the members of a view that say which other turn a turn undoes or answers."""
    undoes = {"undoes": turn.undone_turn} if turn.undone_turn else {}
    return undoes | ({"parentBridgeId": turn.parent.turn} if turn.parent else {})


def _list_waiting_approvals(pause: Pause | None) -> list[dict[str, Any]]:
    """List the approvals that a round waits for, with what a client needs to ask about them."""
    return [
        {
            "approvalId": call.approval.id,
            "toolCallId": call.tool_call_id,
            "toolName": call.tool_name,
            "reasons": list(call.approval.reasons),
            "inputHash": call.approval.input_hash,
            "deadline": iso_from_epoch(call.approval.deadline),
        }
        for call in (pause.calls if pause else ())
        if call.state == "approval" and call.approval
    ]


def find_active_turn(resources: Resources, conversation: Conversation) -> dict[str, Any] | None:
    """Return bridge id, newest event number and state of the turn that holds the conversation, or None."""
    if not conversation.claim:
        return None
    turn = load_turn(resources, conversation.tenant, conversation.claim)
    last_entry = read_last_entry(resources, turn.pk) if turn else None
    if turn is None or last_entry is None or last_entry.state.phase == "ended":
        return None
    status = _get_status(last_entry, _load_open_pause(resources, turn, last_entry))
    return {"bridgeId": turn.id, "seq": last_entry.next_number - 1, "state": status}


def read_open_turn_status(resources: Resources, turn: Turn) -> str | None:
    """Return whether a turn is `running` or `paused`; None if it has ended."""
    last_entry = read_last_entry(resources, turn.pk)
    if last_entry is None or last_entry.state.phase == "ended":
        return None
    return _get_status(last_entry, _load_open_pause(resources, turn, last_entry))


def _get_status(last_entry: LogEntry, pause: Pause | None) -> str:
    if last_entry.state.phase == "ended":
        return last_entry.events[-1].type
    call = pause.next_call if pause else None
    return "paused" if call and call.waits_until and not call.has_running_child else "running"


def _load_open_pause(resources: Resources, turn: Turn, last_entry: LogEntry) -> Pause | None:
    return load_pause(resources, turn, last_entry.state.round) if last_entry.state.phase == "calls" else None


def _read_requests_of_pause(resources: Resources, turn: Turn, pause: Pause) -> list[ToolRequestEvent]:
    """Read the requests from the log, because the pause does not keep their input."""
    open_ids = {call.request_id for call in pause.calls if call.state == "requested"}
    if not open_ids:
        return []
    log_entries = read_entries_from(resources, turn.pk, pause.last_entry_number)
    events = [event for log_entry in log_entries for event in log_entry.events]
    return [event for event in events if isinstance(event, ToolRequestEvent) and event.request_id in open_ids]


def _request_to_wire(request: ToolRequestEvent) -> dict[str, Any]:
    return {name: value for name, value in request.to_wire().items() if name != "type"}
