"""What the model says, and how it looks as a message or as stream events."""

import itertools
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]

ARGUMENT_CHUNK = 48


@dataclass(frozen=True)
class Call:
    name: str
    input: dict[str, Any] = field(default_factory=dict)
    raw: str | None = None
    """Argument text to stream instead of `input`: a script's way to send what is cut off or no JSON."""


@dataclass(frozen=True)
class Answer:
    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    signature: str = ""
    stop: str | None = None
    refusal: str = ""
    """Why it declined, where it stops with a refusal."""

    @property
    def stop_reason(self) -> str:
        return self.stop or ("tool_use" if self.calls else "end_turn")

    @property
    def tokens(self) -> int:
        """A rough count of what was written: four characters a token."""
        said = len(self.text) + len(self.thinking) + sum(len(call.raw or json.dumps(call.input)) for call in self.calls)
        return max(1, said // 4)

    def blocks(self) -> list[dict[str, Any]]:
        thinking = [{"type": "thinking", "thinking": self.thinking, "signature": self.signature}]
        text = [{"type": "text", "text": self.text}]
        calls = [
            {"type": "tool_use", "id": new_id("toolu"), "name": call.name, "input": call.input} for call in self.calls
        ]
        return (thinking if self.signature else []) + (text if self.text else []) + calls


def new_id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(12)}"


def message(answer: Answer, model: str, usage: dict[str, Any]) -> Event:
    """The answer in one piece, as a request without `stream` gets it."""
    return {
        "id": new_id("msg"), "type": "message", "role": "assistant", "model": model, "content": answer.blocks(),
        "stop_reason": answer.stop_reason, "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def opening(model: str, usage: dict[str, Any]) -> Event:
    empty: Event = {
        "id": new_id("msg"), "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage | {"output_tokens": 1},
    }  # fmt: skip
    return {"type": "message_start", "message": empty}


def events(answer: Answer, chunks: int) -> Iterator[Event]:
    """Everything between `message_start` and the end."""
    numbers = itertools.count()
    if answer.signature:
        yield from _thinking(next(numbers), answer)
    if answer.text:
        start: Event = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": part} for part in parts(answer.text, chunks)]
        yield from _block(next(numbers), start, deltas)
    for call in answer.calls:
        start = {"type": "tool_use", "id": new_id("toolu"), "name": call.name, "input": {}}
        text = call.raw if call.raw is not None else json.dumps(call.input, ensure_ascii=False)
        cut = [text[at : at + ARGUMENT_CHUNK] for at in range(0, len(text), ARGUMENT_CHUNK)]
        yield from _block(next(numbers), start, [{"type": "input_json_delta", "partial_json": p} for p in ["", *cut]])


def with_pause(stream: Iterator[Event], after: int) -> Iterator[Event | None]:
    """The same events with one None among them: where `after` characters of text are out, or at the end."""
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


def closing(answer: Answer, usage: dict[str, Any]) -> list[Event]:
    delta: Event = {"stop_reason": answer.stop_reason, "stop_sequence": None}
    if answer.refusal:
        delta["stop_details"] = {"type": "refusal", "category": None, "explanation": answer.refusal}
    return [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]


def frame(event: Event) -> bytes:
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return f"event: {event['type']}\ndata: {data}\n\n".encode()


def _with_text(event: Event, text: str) -> Event:
    return event | {"delta": event["delta"] | {"text": text}}


def parts(text: str, chunks: int) -> list[str]:
    """The text in `chunks` even pieces, or word by word when that is 0."""
    if not chunks:
        words = text.split(" ")
        return [word + " " for word in words[:-1]] + words[-1:]
    size = max(1, -(-len(text) // chunks))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _thinking(index: int, answer: Answer) -> Iterator[Event]:
    start = {"type": "thinking", "thinking": "", "signature": ""}
    said = [{"type": "thinking_delta", "thinking": part} for part in parts(answer.thinking, 0) if part]
    return _block(index, start, [*said, {"type": "signature_delta", "signature": answer.signature}])


def _block(index: int, start: dict[str, Any], deltas: list[dict[str, Any]]) -> Iterator[Event]:
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}
