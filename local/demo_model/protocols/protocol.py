"""Define the interfaces of a protocol adapter and of the encoder of its responses.

Rules, scripts and the cache use only the Messages form. An adapter translates requests into it and answers out of it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from local.demo_model.model_answer import ModelAnswer, StreamEvent
from local.demo_model.request_checks.errors import RequestRejected

_CONTEXT = re.compile(r"(?:^|\n\n)(<context>\n.*\n</context>(?:\n\n.*)?)$", re.S)
_SCREENSHOTS = re.compile(r"\n\n\[\d+ screenshot\(s\) omitted: [^\]]*\]$")
_MARK = {"cache_control": {"type": "ephemeral"}}

Body = dict[str, Any]
Usage = dict[str, int]


class ResponseEncoder(Protocol):
    """Encodes one answer, given as events of a Messages stream, as frames of the protocol."""

    def encode_opening(self) -> Iterator[bytes]: ...

    def encode_event(self, event: StreamEvent) -> Iterator[bytes]: ...

    def encode_closing(self) -> Iterator[bytes]: ...

    def encode_error(self, error_type: str, message: str) -> bytes:
        """Encode an error in the middle of the stream."""

    def to_body(self) -> Body:
        """Make the response to a request without `stream`."""


class ProtocolAdapter(Protocol):
    """A provider's protocol. `media_type` is that of its streams."""

    media_type: str

    def check_request(self, headers: Mapping[str, str], body: Any) -> None:
        """Raise RequestRejected for what the real server rejects."""

    def wants_stream(self, body: Body) -> bool: ...

    def to_messages_request(self, body: Body) -> Body:
        """Translate the request into the Messages form."""

    def adjust_usage(self, body: Body, usage: Usage) -> Usage:
        """Limit the usage to what of the prompt is read. May raise RequestRejected."""

    def make_encoder(self, body: Body, answer: ModelAnswer, usage: Usage) -> ResponseEncoder: ...

    def error_body(self, rejection: RequestRejected) -> Body:
        """Make the body of an error response."""


def encode_sse(event: Mapping[str, Any] | str) -> bytes:
    """Encode a server-sent event. An event that has a type is named by it."""
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {data}\n\n".encode()


def openai_error_body(rejection: RequestRejected) -> Body:
    return {"error": {"message": rejection.message, "type": rejection.kind, "param": None, "code": None}}


def total_prompt_tokens(usage: Usage) -> int:
    """Add up a prompt's tokens, cached or not."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(usage.get(name, 0) for name in names)


def parse_arguments(arguments: str) -> Any:
    """Parse a call's arguments. Text that is no JSON is sent unchanged, as some proxies do."""
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


class MessagesRequestBuilder:
    """Builds a request in the Messages form. Every block is a cache breakpoint: these providers cache by themselves."""

    def __init__(self, body: Body, system: str, tools: list[Body]) -> None:
        renamed_tools = [
            {"name": tool["name"], "input_schema": tool.get("parameters") or {"type": "object"}} for tool in tools
        ]
        self._body: Body = {"model": body["model"], "max_tokens": 1, "messages": [], "tools": renamed_tools}
        if system:
            self._body["system"] = [{"type": "text", "text": system}]
        if body.get("tool_choice") == "none":
            self._body["tool_choice"] = {"type": "none"}

    def add_message(self, role: str, *blocks: Body) -> None:
        self._body["messages"].append({"role": role, "content": [block | _MARK for block in blocks]})

    def add_prompt(self, text: str) -> None:
        """Add a user's prompt, and the context block after it as a block of its own."""
        for part in _split_context(text):
            self.add_message("user", {"type": "text", "text": part})

    def add_image(self) -> None:
        """Add an image of a prompt, without its content."""
        self.add_message("user", {"type": "image"})

    def add_tool_call(self, call_id: str, name: str, arguments: Any) -> None:
        self.add_message("assistant", {"type": "tool_use", "id": call_id, "name": name, "input": arguments})

    def add_tool_result(self, call_id: str, text: str) -> None:
        """Add a tool's result. It is JSON when the tool succeeded, and a sentence when it failed."""
        content = _SCREENSHOTS.sub("", text)
        error_flag = {} if _is_json(content) else {"is_error": True}
        self.add_message("user", {"type": "tool_result", "tool_use_id": call_id, "content": content} | error_flag)

    def build_request(self) -> Body:
        return self._body


def _split_context(text: str) -> list[str]:
    match = _CONTEXT.search(text)
    parts = (text[: match.start()], match[1]) if match else (text,)
    return [part for part in parts if part]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
