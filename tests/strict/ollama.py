"""Run an Ollama server that sends scripted responses and refuses what the real one refuses."""

import json
from typing import Any

from local.demo_model.request_checks.errors import RequestRejected
from local.demo_model.request_checks.ollama_chat import check_request
from tests.strict.server import StrictServer

Line = dict[str, Any]


def make_line(content: str = "", **members: Any) -> Line:
    message = {"role": "assistant", "content": content} | members
    return {"model": "qwen3", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": False}


def tool_call_line(name: str, arguments: Any = None, **members: Any) -> Line:
    function = {"index": 0, "name": name, "arguments": {} if arguments is None else arguments}
    return make_line(tool_calls=[{"function": function} | members])


def done_line(reason: str | None = "stop", prompt: int | None = 10, completion: int | None = 5, **more: Any) -> Line:
    counts = {"prompt_eval_count": prompt, "eval_count": completion, "total_duration": 9}
    return make_line() | {"done": True, "done_reason": reason} | counts | more


def encode_ndjson(*lines: Line) -> bytes:
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines).encode()


def text_response(*parts: str) -> bytes:
    """Return the complete stream of a plain text response."""
    return encode_ndjson(*(make_line(part) for part in (parts or ("Hello",))), done_line())


class StrictOllama(StrictServer):
    content_type = "application/x-ndjson"

    def check_request(self, headers: dict[str, str], body: dict[str, Any]) -> None:
        check_request(headers, body)

    def error_body(self, rejection: RequestRejected) -> dict[str, Any]:
        return {"error": rejection.message}
