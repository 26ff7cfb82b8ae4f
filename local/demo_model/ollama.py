"""Ollama's own chat protocol: lines of JSON, calls in one piece, and a window that the request chooses."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from local.demo_model import strict_ollama
from local.demo_model.answer import Answer, Event
from local.demo_model.chat import read_messages
from local.demo_model.strict import Refused
from local.demo_model.voice import Body, Usage, prompt_total

CREATED = "2026-01-01T00:00:00Z"


class Ollama:
    media_type = "application/x-ndjson"

    def check(self, headers: Mapping[str, str], body: Any) -> None:
        strict_ollama.check(headers, body)

    def streams(self, body: Body) -> bool:
        return body.get("stream") is not False

    def read(self, body: Body) -> Body:
        return read_messages(body)

    def count(self, body: Body, usage: Usage) -> Usage:
        total = prompt_total(usage)
        seen = strict_ollama.counted(body, total)
        return usage if seen == total else {"input_tokens": seen, "output_tokens": usage["output_tokens"]}

    def speech(self, body: Body, answer: Answer, usage: Usage) -> "OllamaSpeech":
        return OllamaSpeech(body["model"], answer, usage)

    def refusal(self, refused: Refused) -> Body:
        return {"error": refused.message}


class OllamaSpeech:
    def __init__(self, model: str, answer: Answer, usage: Usage) -> None:
        self._model, self._answer, self._usage = model, answer, usage
        self._call: Body = {}
        self._arguments = ""
        self._calls = 0

    def opening(self) -> Iterator[bytes]:
        return iter(())

    def frames(self, event: Event) -> Iterator[bytes]:
        block, delta = event.get("content_block", {}), event.get("delta", {})
        if event["type"] == "content_block_start":
            self._call, self._arguments = (block if block["type"] == "tool_use" else {}), ""
        elif delta.get("type") == "text_delta":
            yield self._line(delta["text"])
        elif delta.get("type") == "thinking_delta":
            yield self._line(thinking=delta["thinking"])
        elif delta.get("type") == "input_json_delta":
            self._arguments += delta["partial_json"]
        elif event["type"] == "content_block_stop" and self._call:
            yield self._line(tool_calls=[self._called(self._call["name"], _read(self._arguments))])

    def closing(self) -> Iterator[bytes]:
        yield self._line(**self._end())

    def error(self, kind: str, words: str) -> bytes:
        return f"{json.dumps({'error': words})}\n".encode()

    def whole(self) -> Body:
        calls = [self._called(one.name, one.input) for one in self._answer.calls]
        line: Body = json.loads(self._line(self._answer.text, **self._end()))
        line["message"] |= {"tool_calls": calls} if calls else {}
        return line

    def _end(self) -> Body:
        cached = self._usage.get("cache_read_input_tokens", 0)
        return {
            "done": True, "done_reason": "length" if self._answer.stop_reason == "max_tokens" else "stop",
            "prompt_eval_count": prompt_total(self._usage), "prompt_eval_cached_count": cached,
            "eval_count": self._usage["output_tokens"],
        }  # fmt: skip

    def _called(self, name: str, arguments: Any) -> Body:
        self._calls += 1
        return {"function": {"index": self._calls - 1, "name": name, "arguments": arguments}}

    def _line(self, content: str = "", **members: Any) -> bytes:
        message: Body = {"role": "assistant", "content": content}
        message |= {name: members.pop(name) for name in ("thinking", "tool_calls") if name in members}
        line = {"model": self._model, "created_at": CREATED, "message": message, "done": False} | members
        return f"{json.dumps(line, ensure_ascii=False)}\n".encode()


def _read(arguments: str) -> Any:
    """Text that is no JSON goes out as it is, as some proxies send it."""
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments
