"""Run a Messages API server that sends scripted responses and refuses what the real API refuses."""

import json
from collections.abc import Sequence
from typing import Any

from local.demo_model.merged_messages import merge_messages
from local.demo_model.request_checks.anthropic_messages import check_request
from local.demo_model.request_checks.errors import RequestRejected
from tests.strict.server import ScriptedResponse, StrictServer

__all__ = [
    "ScriptedResponse",
    "StrictAnthropic",
    "content_block",
    "encode_sse",
    "make_event",
    "message_start",
    "message_stop",
    "text_block",
    "text_response",
    "tool_use_block",
]

Event = dict[str, Any]


def make_event(kind: str, **members: Any) -> Event:
    return {"type": kind, **members}


def message_start(**usage: Any) -> Event:
    return make_event("message_start", message={"id": "msg_1", "role": "assistant", "content": [], "usage": usage})


def content_block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[Event]:
    """Return the events of a content block: its start, its deltas and its stop."""
    return [
        make_event("content_block_start", index=index, content_block=start),
        *(make_event("content_block_delta", index=index, delta=delta) for delta in deltas),
        make_event("content_block_stop", index=index),
    ]


def text_block(index: int, *parts: str) -> list[Event]:
    return content_block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": part} for part in parts))


def tool_use_block(index: int, call_id: str, name: str, *parts: str) -> list[Event]:
    deltas = ({"type": "input_json_delta", "partial_json": part} for part in parts)
    return content_block(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}}, *deltas)


def message_stop(reason: str | None, **usage: Any) -> list[Event]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [make_event("message_delta", delta=delta, usage=usage), make_event("message_stop")]


def encode_sse(*events: Event | Sequence[Event]) -> bytes:
    """Encode events, and the events of lists among them, as server-sent events."""
    flat = [event for item in events for event in ([item] if isinstance(item, dict) else item)]
    frames = (f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in flat)
    return "".join(frames).encode()


def text_response(*parts: str, stop: str = "end_turn") -> bytes:
    """Return the complete stream of a plain text response."""
    return encode_sse(
        message_start(input_tokens=5, output_tokens=1),
        text_block(0, *(parts or ("Hello",))),
        message_stop(stop, output_tokens=7),
    )


class StrictAnthropic(StrictServer):
    """Refuses thinking blocks that differ from those it sent."""

    def __init__(self) -> None:
        super().__init__()
        self._sent_thinking: list[dict[str, Any]] = []

    def check_request(self, headers: dict[str, str], body: dict[str, Any]) -> None:
        check_request(headers, body)
        for message in merge_messages(body["messages"]):
            for block in message.blocks:
                if block["type"] in ("thinking", "redacted_thinking") and block not in self._sent_thinking:
                    raise RequestRejected("`thinking` blocks cannot be modified. They must remain as they were.")

    def error_body(self, rejection: RequestRejected) -> dict[str, Any]:
        return rejection.to_body()

    def record_stream(self, stream: bytes) -> None:
        open_blocks: dict[int, dict[str, Any]] = {}
        for line in stream.decode("utf-8", "ignore").splitlines():
            event = json.loads(line[6:]) if line.startswith("data: {") else {}
            if event.get("type") == "content_block_start":
                open_blocks[event["index"]] = dict(event["content_block"])
            elif event.get("type") == "content_block_delta":
                delta = event["delta"]
                for name in ("thinking", "signature"):
                    if name in delta:
                        open_blocks[event["index"]][name] = open_blocks[event["index"]].get(name, "") + delta[name]
        self._sent_thinking += [block for block in open_blocks.values() if "thinking" in block["type"]]
