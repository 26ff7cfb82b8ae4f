"""Render events as NDJSON: one JSON object a line, for the dialects `fermata` and `instatic`."""

import json

from fermata.domain.dialect import Dialect, ToolNameMapper
from fermata.domain.events import CancelledEvent, DoneEvent, ErrorEvent, Event, TextEvent, WarningEvent

NDJSON_CONTENT_TYPE = "application/x-ndjson"
HEARTBEAT_LINE = b"\n"


def render_event(seq: int, event: Event, dialect: Dialect, to_client_name: ToolNameMapper = str) -> bytes:
    """Render an event as one line that ends with LF.

    A member that is null is left out, because Instatic's clients drop a line with an unexpected null.

    Args:
        seq: The event's number in the log.
        to_client_name: Maps a tool's name to the name that this client knows.

    Returns:
        The line, or nothing when the dialect's clients do not receive the event.
    """
    if dialect not in event.visible_to:
        return b""
    if dialect == "instatic":
        event = _translate_for_instatic(event)
    members = event.to_wire() | {name: getattr(event, name) for name in event.members_kept_when_null}
    if "toolName" in members:
        members["toolName"] = to_client_name(members["toolName"])
    return json.dumps(members | {"seq": seq}, separators=(",", ":")).encode() + b"\n"


def _translate_for_instatic(event: Event) -> Event:
    """Replace an event that Instatic's clients do not know by the nearest one that they show."""
    match event:
        case CancelledEvent(reason=str(reason)):
            return ErrorEvent(message=reason, code="superseded", retryable=False, report=event.report)
        case CancelledEvent():
            return DoneEvent(report=event.report)
        case WarningEvent():
            return TextEvent(text=f"\n\n{event.message}\n\n")
        case _:
            return event
