"""Adapt Anthropic's Messages protocol, whose form rules and scripts use."""

from collections.abc import Iterator, Mapping
from typing import Any

from local.demo_model.model_answer import (
    ModelAnswer,
    StreamEvent,
    closing_events,
    encode_event,
    message_body,
    message_start_event,
)
from local.demo_model.protocols.protocol import Body, Usage
from local.demo_model.request_checks.anthropic_messages import check_request
from local.demo_model.request_checks.errors import RequestRejected


class AnthropicMessages:
    media_type = "text/event-stream"

    def check_request(self, headers: Mapping[str, str], body: Any) -> None:
        check_request(headers, body)

    def wants_stream(self, body: Body) -> bool:
        return bool(body.get("stream"))

    def to_messages_request(self, body: Body) -> Body:
        return body

    def adjust_usage(self, body: Body, usage: Usage) -> Usage:
        return usage

    def make_encoder(self, body: Body, answer: ModelAnswer, usage: Usage) -> "AnthropicMessagesEncoder":
        return AnthropicMessagesEncoder(body["model"], answer, usage)

    def error_body(self, rejection: RequestRejected) -> Body:
        return rejection.to_body()


class AnthropicMessagesEncoder:
    def __init__(self, model: str, answer: ModelAnswer, usage: Usage) -> None:
        self._model = model
        self._answer = answer
        self._usage = usage

    def encode_opening(self) -> Iterator[bytes]:
        yield encode_event(message_start_event(self._model, self._usage))
        yield encode_event({"type": "ping"})

    def encode_event(self, event: StreamEvent) -> Iterator[bytes]:
        yield encode_event(event)

    def encode_closing(self) -> Iterator[bytes]:
        yield from map(encode_event, closing_events(self._answer, self._usage))

    def encode_error(self, error_type: str, message: str) -> bytes:
        return encode_event({"type": "error", "error": {"type": error_type, "message": message}})

    def to_body(self) -> Body:
        return message_body(self._answer, self._model, self._usage)
