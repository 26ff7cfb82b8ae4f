"""Anthropic's Messages protocol: the form that rules and scripts are written in."""

from collections.abc import Iterator, Mapping
from typing import Any

from local.demo_model.answer import Answer, Event, closing, frame, message, opening
from local.demo_model.strict import Refused, check
from local.demo_model.voice import Body, Usage


class Messages:
    media_type = "text/event-stream"

    def check(self, headers: Mapping[str, str], body: Any) -> None:
        check(headers, body)

    def streams(self, body: Body) -> bool:
        return bool(body.get("stream"))

    def read(self, body: Body) -> Body:
        return body

    def count(self, body: Body, usage: Usage) -> Usage:
        return usage

    def speech(self, body: Body, answer: Answer, usage: Usage) -> "MessagesSpeech":
        return MessagesSpeech(body["model"], answer, usage)

    def refusal(self, refused: Refused) -> Body:
        return refused.body()


class MessagesSpeech:
    def __init__(self, model: str, answer: Answer, usage: Usage) -> None:
        self._model, self._answer, self._usage = model, answer, usage

    def opening(self) -> Iterator[bytes]:
        yield frame(opening(self._model, self._usage))
        yield frame({"type": "ping"})

    def frames(self, event: Event) -> Iterator[bytes]:
        yield frame(event)

    def closing(self) -> Iterator[bytes]:
        yield from map(frame, closing(self._answer, self._usage))

    def error(self, kind: str, words: str) -> bytes:
        return frame({"type": "error", "error": {"type": kind, "message": words}})

    def whole(self) -> Body:
        return message(self._answer, self._model, self._usage)
