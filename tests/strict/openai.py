"""Run a Responses API server, as OpenAI or OpenRouter, that sends scripted responses and refuses what they refuse."""

import json
from collections.abc import Sequence
from typing import Any

from local.demo_model.request_checks.errors import RequestRejected
from local.demo_model.request_checks.openai_responses import check_request
from tests.strict.server import StrictServer

Event = dict[str, Any]
Item = dict[str, Any]


def make_event(kind: str, **members: Any) -> Event:
    return {"type": kind, **members}


def response_created() -> Event:
    return make_event("response.created", response={"id": "resp_1", "status": "in_progress", "usage": None})


def message_events(index: int, *parts: str, phase: str | None = None) -> list[Event]:
    """Return the events of a message: added, its text deltas, done."""
    own: Item = {"id": f"msg_{index}", "type": "message", "role": "assistant"} | ({"phase": phase} if phase else {})
    content = [{"type": "output_text", "text": "".join(parts), "annotations": []}]
    return [
        make_event(
            "response.output_item.added", output_index=index, item=own | {"status": "in_progress", "content": []}
        ),
        *(make_event("response.output_text.delta", output_index=index, content_index=0, delta=part) for part in parts),
        make_event(
            "response.output_item.done", output_index=index, item=own | {"status": "completed", "content": content}
        ),
    ]


def function_call_events(index: int, call_id: str | None, name: str, *parts: str, done: bool = True) -> list[Event]:
    own: Item = {"id": f"fc_{index}", "type": "function_call", "call_id": call_id, "name": name}
    deltas = (make_event("response.function_call_arguments.delta", output_index=index, delta=part) for part in parts)
    finished = own | {"arguments": "".join(parts), "status": "completed"}
    return [
        make_event(
            "response.output_item.added", output_index=index, item=own | {"arguments": "", "status": "in_progress"}
        ),
        *deltas,
        *([make_event("response.output_item.done", output_index=index, item=finished)] if done else []),
    ]


def reasoning_events(index: int, *thoughts: str, sealed: str = "gAAAA", **members: Any) -> list[Event]:
    own: Item = {"id": f"rs_{index}", "type": "reasoning"}
    summary = [{"type": "summary_text", "text": thought} for thought in thoughts]
    deltas = (
        make_event("response.reasoning_summary_text.delta", output_index=index, summary_index=at, delta=thought)
        for at, thought in enumerate(thoughts)
    )
    finished = own | {"summary": summary, "encrypted_content": sealed} | members
    return [
        make_event("response.output_item.added", output_index=index, item=own | {"summary": []}),
        *deltas,
        make_event("response.output_item.done", output_index=index, item=finished),
    ]


def make_usage(prompt: int = 10, completion: int = 5, cached: int = 0, **more: Any) -> dict[str, Any]:
    details = {"input_tokens_details": {"cached_tokens": cached}, "output_tokens_details": {"reasoning_tokens": 0}}
    total = {"input_tokens": prompt, "output_tokens": completion, "total_tokens": prompt + completion}
    return total | details | more


def response_ended(kind: str = "completed", **members: Any) -> Event:
    response = {"id": "resp_1", "status": kind, "error": None, "incomplete_details": None, "usage": make_usage()}
    return make_event(f"response.{kind}", response=response | members)


def encode_sse(*events: Event | Sequence[Event]) -> bytes:
    """Encode events, and the events of lists among them, as server-sent events."""
    flat = [event for item in events for event in ([item] if isinstance(item, dict) else item)]
    frames = (f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n" for event in flat)
    return "".join(frames).encode()


def text_response(*parts: str) -> bytes:
    """Return the complete stream of a plain text response."""
    return encode_sse(response_created(), message_events(0, *(parts or ("Hello",))), response_ended())


class StrictOpenAI(StrictServer):
    """Refuses encrypted reasoning that differs from what it sent."""

    is_openrouter = False

    def __init__(self) -> None:
        super().__init__()
        self._sent_encrypted: set[str] = set()

    def check_request(self, headers: dict[str, str], body: dict[str, Any]) -> None:
        check_request(headers, body, is_openrouter=self.is_openrouter)
        for item in body["input"]:
            sealed = item.get("encrypted_content")
            if sealed and sealed not in self._sent_encrypted:
                raise RequestRejected("The encrypted content for item could not be verified. invalid_encrypted_content")

    def record_stream(self, stream: bytes) -> None:
        for line in stream.decode("utf-8", "ignore").splitlines():
            event = json.loads(line[6:]) if line.startswith("data: {") else {}
            sealed = (event.get("item") or {}).get("encrypted_content")
            self._sent_encrypted |= {sealed} if sealed else set()


class StrictOpenRouter(StrictOpenAI):
    is_openrouter = True
