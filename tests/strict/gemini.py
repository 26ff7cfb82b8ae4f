"""Run a generateContent server that sends scripted responses and refuses what the real API refuses."""

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from local.demo_model.request_checks.errors import RequestRejected
from local.demo_model.request_checks.gemini_generate import check_request
from tests.strict.server import StrictServer

Chunk = dict[str, Any]
SIGNATURE = "c2ln"
_MODEL_IN_PATH = re.compile(r"/models/([^:]+):")


def make_chunk(*parts: dict[str, Any], finish: str | None = None, **members: Any) -> Chunk:
    """Return a chunk with parts of the answer; `members` are those of its candidate."""
    candidate = {"content": {"role": "model", "parts": [*parts]}, "index": 0} | members
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})], "modelVersion": "gemini"}


def text_part(text: str, **members: Any) -> dict[str, Any]:
    return {"text": text} | members


def thought_part(text: str) -> dict[str, Any]:
    return {"text": text, "thought": True}


def call_part(name: str, args: Any = None, *, call_id: str = "", signature: str = "") -> dict[str, Any]:
    call = {"name": name, "args": {} if args is None else args} | ({"id": call_id} if call_id else {})
    return {"functionCall": call} | ({"thoughtSignature": signature} if signature else {})


def end_chunk(finish: str = "STOP", **counts: int) -> Chunk:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15} | counts
    return make_chunk(finish=finish) | {"usageMetadata": usage}


def encode_sse(*chunks: Chunk | Sequence[Chunk]) -> bytes:
    flat = [chunk for item in chunks for chunk in ([item] if isinstance(item, dict) else item)]
    return "".join(f"data: {json.dumps(chunk, ensure_ascii=False)}\r\n\r\n" for chunk in flat).encode()


def text_response(*parts: str) -> bytes:
    """Return the complete stream of a plain text response."""
    return encode_sse([make_chunk(text_part(part)) for part in (parts or ("Hello",))], end_chunk())


class StrictGemini(StrictServer):
    def check_request(self, headers: dict[str, str], body: dict[str, Any]) -> None:
        named = _MODEL_IN_PATH.search(self.paths[-1] if self.paths else "")
        body |= {"model": unquote(named[1])} if named else {}  # where tests find it in the other protocols
        check_request(headers, body)

    def error_body(self, rejection: RequestRejected) -> dict[str, Any]:
        return {"error": {"code": rejection.status, "message": rejection.message, "status": "INVALID_ARGUMENT"}}
