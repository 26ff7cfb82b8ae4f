"""An Ollama that says what a test tells it and refuses what the real one refuses."""

import json
from typing import Any

from local.demo_model.strict import Refused
from local.demo_model.strict_ollama import check
from tests.strict.serving import StrictServer

Line = dict[str, Any]


def line(content: str = "", **members: Any) -> Line:
    message = {"role": "assistant", "content": content} | members
    return {"model": "qwen3", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": False}


def call(name: str, arguments: Any = None, **members: Any) -> Line:
    function = {"index": 0, "name": name, "arguments": {} if arguments is None else arguments}
    return line(tool_calls=[{"function": function} | members])


def done(reason: str | None = "stop", prompt: int | None = 10, completion: int | None = 5, **more: Any) -> Line:
    counts = {"prompt_eval_count": prompt, "eval_count": completion, "total_duration": 9}
    return line() | {"done": True, "done_reason": reason} | counts | more


def ndjson(*lines: Line) -> bytes:
    return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in lines).encode()


def answer(*parts: str) -> bytes:
    """A whole plain answer."""
    return ndjson(*(line(part) for part in (parts or ("Hello",))), done())


class StrictOllama(StrictServer):
    content_type = "application/x-ndjson"

    def check(self, headers: dict[str, str], body: dict[str, Any]) -> None:
        check(headers, body)

    def error(self, refused: Refused) -> dict[str, Any]:
        return {"error": refused.message}
