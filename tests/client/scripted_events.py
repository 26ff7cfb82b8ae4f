"""Events of turns, as the scripted service streams them."""

from typing import Any

from fermata_client.service.json_types import Event

BRIDGE = "bridge-1"
UNDONE_BRIDGE = "bridge-0"
"""A turn whose edits can be undone. The script is what the undo streams."""


def number_events(*events: Event) -> list[Event]:
    """Number events with gaps, which the service's internal events leave."""
    return [{**event, "seq": 1 + 2 * index} for index, event in enumerate(events)]


def ready_event() -> Event:
    return {"type": "bridgeReady", "bridgeId": BRIDGE}


def text_event(text: str) -> Event:
    return {"type": "text", "text": text}


def tool_call_event(number: int, name: str = "insertHtml", tool_input: Any = None) -> Event:
    return {"type": "toolCall", "toolCallId": f"c{number}", "toolName": name, "input": tool_input, "status": "pending"}


def tool_request_event(
    number: int, name: str = "insertHtml", tool_input: Any = None, effect_key: str | None = None
) -> Event:
    return {
        "type": "toolRequest",
        "requestId": f"r{number}",
        "toolCallId": f"c{number}",
        "toolName": name,
        "input": tool_input if tool_input is not None else {},
        "effectKey": effect_key or f"turn/{number}",
        "deadline": "2030-01-01T00:00:00Z",
    }


def tool_result_event(number: int, *, ok: bool = True, name: str = "insertHtml") -> Event:
    extra = {} if ok else {"error": "it broke"}
    return {"type": "toolResult", "toolCallId": f"c{number}", "toolName": name, "ok": ok, **extra}


def context_event() -> Event:
    return {"type": "context", "promptTokens": 10, "contextTokens": 10}


def usage_event() -> Event:
    return {"type": "usage", "promptTokens": 20, "completionTokens": 5, "costUsd": 0.5}


def done_event() -> Event:
    return {"type": "done"}


def undo_events(*outcomes: bool) -> list[Event]:
    """Events of an undo of one edit for each outcome, newest first. False is a conflict."""
    events: list[Event] = [{**ready_event(), "undoes": UNDONE_BRIDGE}]
    undone: list[str] = []
    skipped: list[dict[str, str]] = []
    for number, ok in enumerate(outcomes, 1):
        key = f"{UNDONE_BRIDGE}/{len(outcomes) + 1 - number}/0"
        patch = {"patch": {"edit": number}}
        events += [
            tool_call_event(number, "restore", patch),
            {**tool_request_event(number, "restore", patch), "undoes": key},
        ]
        events.append(tool_result_event(number, ok=ok, name="restore") | ({} if ok else {"conflict": True}))
        if ok:
            undone.append(key)
        else:
            skipped.append({"effectKey": key, "reason": "it broke"})
    return number_events(*events, usage_event(), done_event() | {"report": {"undone": undone, "skipped": skipped}})


def three_tool_turn() -> list[Event]:
    """Events of a turn: text, two browser tools in one round, a third one that fails, and a last text."""
    return number_events(
        ready_event(),
        text_event("I will "),
        text_event("change two things – 那个🦀.\u2028"),
        tool_call_event(1),
        tool_call_event(2, "applyCss"),
        context_event(),
        tool_request_event(1),
        tool_result_event(1),
        tool_request_event(2, "applyCss"),
        tool_result_event(2, name="applyCss"),
        text_event("And one more."),
        tool_call_event(3, "deleteNode"),
        context_event(),
        tool_request_event(3, "deleteNode"),
        tool_result_event(3, ok=False, name="deleteNode"),
        text_event("Done."),
        context_event(),
        usage_event(),
        done_event(),
    )
