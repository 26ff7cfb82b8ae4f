"""What a provider's protocol has to know: how to refuse, how to read a request, and how to say an answer in it.

Rules, scripts and the cache know only the Messages form. A voice translates into it and out of it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from local.demo_model.answer import Answer, Event
from local.demo_model.strict import Refused

_CONTEXT = re.compile(r"(?:^|\n\n)(<context>\n.*\n</context>)$", re.S)
_SCREENSHOTS = re.compile(r"\n\n\[\d+ screenshot\(s\) omitted: [^\]]*\]$")
_MARK = {"cache_control": {"type": "ephemeral"}}

Body = dict[str, Any]
Usage = dict[str, int]


class Speech(Protocol):
    """One answer on its way out. It is handed the events of a Messages stream and turns them into its own frames."""

    def opening(self) -> Iterator[bytes]: ...

    def frames(self, event: Event) -> Iterator[bytes]: ...

    def closing(self) -> Iterator[bytes]: ...

    def error(self, kind: str, words: str) -> bytes:
        """An error in the middle of the stream."""

    def whole(self) -> Body:
        """The answer in one piece, as a request without `stream` gets it."""


class Voice(Protocol):
    media_type: str

    def check(self, headers: Mapping[str, str], body: Any) -> None:
        """Raise `Refused` for what the real server refuses."""

    def streams(self, body: Body) -> bool: ...

    def read(self, body: Body) -> Body:
        """The request in Messages form."""

    def count(self, body: Body, usage: Usage) -> Usage:
        """What of a prompt is read at all. May raise `Refused`."""

    def speech(self, body: Body, answer: Answer, usage: Usage) -> Speech: ...

    def refusal(self, refused: Refused) -> Body:
        """The body of an error status."""


def sse(event: Mapping[str, Any] | str) -> bytes:
    """A server-sent event; one that has a type is named by it."""
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {data}\n\n".encode()


def openai_error(refused: Refused) -> Body:
    return {"error": {"message": refused.message, "type": refused.kind, "param": None, "code": None}}


def prompt_total(usage: Usage) -> int:
    """All of a prompt's tokens, whether the cache had them or not."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return sum(usage.get(name, 0) for name in names)


class Reading:
    """Gathers a conversation in Messages form. These providers cache by themselves, so every block is marked."""

    def __init__(self, body: Body, system: str, tools: list[Body]) -> None:
        named = [{"name": one["name"], "input_schema": one.get("parameters") or {"type": "object"}} for one in tools]
        self._body: Body = {"model": body["model"], "max_tokens": 1, "messages": [], "tools": named}
        if system:
            self._body["system"] = [{"type": "text", "text": system}]
        if body.get("tool_choice") == "none":
            self._body["tool_choice"] = {"type": "none"}

    def say(self, role: str, *blocks: Body) -> None:
        self._body["messages"].append({"role": role, "content": [block | _MARK for block in blocks]})

    def prompt(self, text: str) -> None:
        """A person's words, and the context that stands behind them."""
        for part in _parted(text):
            self.say("user", {"type": "text", "text": part})

    def picture(self) -> None:
        """One that came with the words; nobody looks at it."""
        self.say("user", {"type": "image"})

    def call(self, call_id: str, name: str, arguments: Any) -> None:
        self.say("assistant", {"type": "tool_use", "id": call_id, "name": name, "input": arguments})

    def result(self, call_id: str, text: str) -> None:
        """Results come as text: JSON when the tool succeeded, a sentence when it failed."""
        said = _SCREENSHOTS.sub("", text)
        failed = {} if _is_json(said) else {"is_error": True}
        self.say("user", {"type": "tool_result", "tool_use_id": call_id, "content": said} | failed)

    def done(self) -> Body:
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
