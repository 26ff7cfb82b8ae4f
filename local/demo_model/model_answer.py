"""Define answers of the demo model, and give them the form of a Messages response or stream."""

import itertools
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

StreamEvent = dict[str, Any]

ARGUMENT_CHUNK_CHARACTERS = 48


@dataclass(frozen=True)
class ToolCall:
    name: str
    input: dict[str, Any] = field(default_factory=dict)
    raw_arguments: str | None = None
    """Argument text to stream instead of `input`, for scripts that send truncated or invalid JSON."""


@dataclass(frozen=True)
class ModelAnswer:
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    signature: str = ""
    forced_stop_reason: str | None = None
    refusal: str = ""
    """Explanation of a refusal."""

    @property
    def stop_reason(self) -> str:
        return self.forced_stop_reason or ("tool_use" if self.tool_calls else "end_turn")

    @property
    def output_tokens(self) -> int:
        """Estimate the output tokens, at four characters a token."""
        argument_characters = sum(len(call.raw_arguments or json.dumps(call.input)) for call in self.tool_calls)
        return max(1, (len(self.text) + len(self.thinking) + argument_characters) // 4)

    def content_blocks(self) -> list[dict[str, Any]]:
        thinking = [{"type": "thinking", "thinking": self.thinking, "signature": self.signature}]
        text = [{"type": "text", "text": self.text}]
        calls = [
            {"type": "tool_use", "id": make_id("toolu"), "name": call.name, "input": call.input}
            for call in self.tool_calls
        ]
        return (thinking if self.signature else []) + (text if self.text else []) + calls


def make_id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(12)}"


def message_body(answer: ModelAnswer, model: str, usage: dict[str, Any]) -> StreamEvent:
    """Make the response to a request without `stream`."""
    return {
        "id": make_id("msg"), "type": "message", "role": "assistant", "model": model,
        "content": answer.content_blocks(), "stop_reason": answer.stop_reason, "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def message_start_event(model: str, usage: dict[str, Any]) -> StreamEvent:
    empty: StreamEvent = {
        "id": make_id("msg"), "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage | {"output_tokens": 1},
    }  # fmt: skip
    return {"type": "message_start", "message": empty}


def iter_content_events(answer: ModelAnswer, chunks: int) -> Iterator[StreamEvent]:
    """Iterate over the events between `message_start` and `message_delta`."""
    numbers = itertools.count()
    if answer.signature:
        yield from _thinking(next(numbers), answer)
    if answer.text:
        start: StreamEvent = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": part} for part in split_text(answer.text, chunks)]
        yield from _block(next(numbers), start, deltas)
    for call in answer.tool_calls:
        start = {"type": "tool_use", "id": make_id("toolu"), "name": call.name, "input": {}}
        text = call.raw_arguments if call.raw_arguments is not None else json.dumps(call.input, ensure_ascii=False)
        cut = [text[at : at + ARGUMENT_CHUNK_CHARACTERS] for at in range(0, len(text), ARGUMENT_CHUNK_CHARACTERS)]
        yield from _block(next(numbers), start, [{"type": "input_json_delta", "partial_json": p} for p in ["", *cut]])


def insert_pause(stream: Iterator[StreamEvent], after: int) -> Iterator[StreamEvent | None]:
    """Insert one None into a stream of events: after so many characters of text, or at the end."""
    said, paused = 0, False
    for event in stream:
        text = event.get("delta", {}).get("text", "")
        if not paused and said + len(text) > after:
            yield _with_text(event, text[: after - said])
            yield None
            event, paused = _with_text(event, text[after - said :]), True
        said += len(text)
        yield event
    if not paused:
        yield None


def closing_events(answer: ModelAnswer, usage: dict[str, Any]) -> list[StreamEvent]:
    delta: StreamEvent = {"stop_reason": answer.stop_reason, "stop_sequence": None}
    if answer.refusal:
        delta["stop_details"] = {"type": "refusal", "category": None, "explanation": answer.refusal}
    return [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]


def encode_event(event: StreamEvent) -> bytes:
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode()


def _with_text(event: StreamEvent, text: str) -> StreamEvent:
    return event | {"delta": event["delta"] | {"text": text}}


def split_text(text: str, chunks: int) -> list[str]:
    """Split a text into so many equal parts, or into words for 0."""
    if not chunks:
        words = text.split(" ")
        return [word + " " for word in words[:-1]] + words[-1:]
    size = max(1, -(-len(text) // chunks))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _thinking(index: int, answer: ModelAnswer) -> Iterator[StreamEvent]:
    start = {"type": "thinking", "thinking": "", "signature": ""}
    said = [{"type": "thinking_delta", "thinking": part} for part in split_text(answer.thinking, 0) if part]
    return _block(index, start, [*said, {"type": "signature_delta", "signature": answer.signature}])


def _block(index: int, start: dict[str, Any], deltas: list[dict[str, Any]]) -> Iterator[StreamEvent]:
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}
