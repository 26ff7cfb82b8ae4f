"""The turn log as NDJSON, one event a line (contract instatic.md §2)."""

import json

from fermata.domain.dialect import Dialect, ToolNameMapper
from fermata.domain.events import (
    INTERNAL_EVENTS,
    CancelledEvent,
    DoneEvent,
    Event,
    HeldEvent,
    ReasoningEvent,
    RoundRetractedEvent,
    TextEvent,
    ToolCallEvent,
    ToolRequestEvent,
    WarningEvent,
)

NDJSON_CONTENT_TYPE = "application/x-ndjson"
HEARTBEAT_LINE = b"\n"
_UNKNOWN_TO_INSTATIC = (ReasoningEvent, RoundRetractedEvent, HeldEvent)


def render_event(seq: int, event: Event, dialect: Dialect, to_client_name: ToolNameMapper = str) -> bytes:
    """The event's line, ending with LF; nothing when it is not for this client's eyes. `called`: towards this client.

    A member without a value is left out, because a null there makes an Instatic client drop the line. Only a
    tool's `input` is always there, null or not.
    """
    if isinstance(event, INTERNAL_EVENTS):
        return b""
    if dialect == "instatic":
        if isinstance(event, _UNKNOWN_TO_INSTATIC):
            return b""
        if isinstance(event, CancelledEvent):
            event = DoneEvent(report=event.report)
        if isinstance(event, WarningEvent):  # they know no warnings, but show all text
            event = TextEvent(text=f"\n\n{event.message}\n\n")
    members = event.to_wire()
    if isinstance(event, ToolCallEvent | ToolRequestEvent):
        members["input"] = event.input
    if "toolName" in members:
        members["toolName"] = to_client_name(members["toolName"])
    return json.dumps(members | {"seq": seq}, separators=(",", ":")).encode() + b"\n"
