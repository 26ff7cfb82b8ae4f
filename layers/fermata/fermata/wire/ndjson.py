"""The turn log as NDJSON, one event a line (contract instatic.md §2)."""

import json

from fermata.words.dialect import Called, Dialect
from fermata.words.events import (
    INTERNAL,
    Cancelled,
    Done,
    Event,
    Held,
    Reasoning,
    RoundRetracted,
    Text,
    ToolCall,
    ToolRequest,
    Warned,
)

CONTENT_TYPE = "application/x-ndjson"
HEARTBEAT = b"\n"
UNKNOWN_TO_INSTATIC = (Reasoning, RoundRetracted, Held)


def lines(seq: int, event: Event, dialect: Dialect, called: Called = str) -> bytes:
    """The event's line, ending with LF; nothing when it is not for this client's eyes. `called`: towards this client.

    A member without a value is left out, because a null there makes an Instatic client drop the line. Only a
    tool's `input` is always there, null or not.
    """
    if isinstance(event, INTERNAL):
        return b""
    if dialect == "instatic":
        if isinstance(event, UNKNOWN_TO_INSTATIC):
            return b""
        if isinstance(event, Cancelled):
            event = Done(report=event.report)
        if isinstance(event, Warned):  # they know no warnings, but show all text
            event = Text(text=f"\n\n{event.message}\n\n")
    members = event.wire()
    if isinstance(event, ToolCall | ToolRequest):
        members["input"] = event.input
    if "toolName" in members:
        members["toolName"] = called(members["toolName"])
    return json.dumps(members | {"seq": seq}, separators=(",", ":")).encode() + b"\n"
