"""What a provider's protocol has to know: how to refuse, how to read a request, and how to say an answer in it.

Rules, scripts and the cache know only the Messages form. A voice translates into it and out of it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from local.demo_model.model_answer import ModelAnswer, StreamEvent
from local.demo_model.request_checks.anthropic_messages import RequestRejected

_CONTEXT = re.compile(r"(?:^|\n\n)(<context>\n.*\n</context>)$", re.S)
_SCREENSHOTS = re.compile(r"\n\n\[\d+ screenshot\(s\) omitted: [^\]]*\]$")
_MARK = {"cache_control": {"type": "ephemeral"}}

Body = dict[str, Any]
Usage = dict[str, int]


class ResponseEncoder(Protocol):
    """One answer on its way out. It is handed the events of a Messages stream and turns them into its own frames."""

    def encode_opening(self) -> Iterator[bytes]: ...

    def encode_event(self, event: StreamEvent) -> Iterator[bytes]: ...

    def encode_closing(self) -> Iterator[bytes]: ...

    def encode_error(self, kind: str, message: str) -> bytes:
        """An error in the middle of the stream."""

    def to_body(self) -> Body:
        """The answer in one piece, as a request without `stream` gets it."""


class ProtocolAdapter(Protocol):
    media_type: str

    def check_request(self, headers: Mapping[str, str], body: Any) -> None:
        """Raise `Refused` for what the real server refuses."""

    def wants_stream(self, body: Body) -> bool: ...

    def to_messages_request(self, body: Body) -> Body:
        """The request in Messages form."""

    def adjust_usage(self, body: Body, usage: Usage) -> Usage:
        """What of a prompt is read at all. May raise `Refused`."""

    def make_encoder(self, body: Body, answer: ModelAnswer, usage: Usage) -> ResponseEncoder: ...

    def error_body(self, refused: RequestRejected) -> Body:
        """The body of an error status."""


def encode_sse(event: Mapping[str, Any] | str) -> bytes:
    """A server-sent event; one that has a type is named by it."""
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {data}\n\n".encode()


def openai_error_body(refused: RequestRejected) -> Body:
    return {"error": {"message": refused.message, "type": refused.kind, "param": None, "code": None}}


def total_prompt_tokens(usage: Usage) -> int:
    """All of a prompt's tokens, whether the cache had them or not."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(usage.get(name, 0) for name in names)


class MessagesRequestBuilder:
    """Gathers a conversation in Messages form. These providers cache by themselves, so every block is marked."""

    def __init__(self, body: Body, system: str, tools: list[Body]) -> None:
        named = [{"name": one["name"], "input_schema": one.get("parameters") or {"type": "object"}} for one in tools]
        self._body: Body = {"model": body["model"], "max_tokens": 1, "messages": [], "tools": named}
        if system:
            self._body["system"] = [{"type": "text", "text": system}]
        if body.get("tool_choice") == "none":
            self._body["tool_choice"] = {"type": "none"}

    def add_message(self, role: str, *blocks: Body) -> None:
        self._body["messages"].append({"role": role, "content": [block | _MARK for block in blocks]})

    def add_prompt(self, text: str) -> None:
        """A person's words, and the context that stands behind them."""
        for part in _parted(text):
            self.add_message("user", {"type": "text", "text": part})

    def add_image(self) -> None:
        """One that came with the words; nobody looks at it."""
        self.add_message("user", {"type": "image"})

    def add_tool_call(self, call_id: str, name: str, arguments: Any) -> None:
        self.add_message("assistant", {"type": "tool_use", "id": call_id, "name": name, "input": arguments})

    def add_tool_result(self, call_id: str, text: str) -> None:
        """Results come as text: JSON when the tool succeeded, a sentence when it failed."""
        said = _SCREENSHOTS.sub("", text)
        failed = {} if _is_json(said) else {"is_error": True}
        self.add_message("user", {"type": "tool_result", "tool_use_id": call_id, "content": said} | failed)

    def build_request(self) -> Body:
        return self._body


def _parted(text: str) -> list[str]:
    found = _CONTEXT.search(text)
    return [part for part in ((text[: found.start()], found[1]) if found else (text,)) if part]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
