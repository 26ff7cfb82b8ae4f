"""Run a chat-completions server that sends scripted responses and refuses what real servers refuse."""

import json
from typing import Any

from local.demo_model.request_checks.chat_completions import check_request
from tests.strict.server import StrictServer

Chunk = dict[str, Any]


def make_chunk(delta: Any = None, stop: str | None = None, **members: Any) -> Chunk:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], "usage": None} | members


def text_chunks(*parts: str) -> list[Chunk]:
    return [make_chunk({"role": "assistant", "content": ""}), *(make_chunk({"content": part}) for part in parts)]


def tool_call_chunks(index: int | None, call_id: str | None, name: str | None, *parts: str) -> list[Chunk]:
    """Return a tool call in chunks: its name first, then its arguments."""
    place = {} if index is None else {"index": index}
    first = place | {"id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    more = [place | {"function": {"arguments": part}} for part in parts]
    return [make_chunk({"tool_calls": [call]}) for call in [first, *more]]


def usage_chunk(prompt: int = 10, completion: int = 5, **more: Any) -> Chunk:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion} | more
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage}


def encode_sse(*chunks: Chunk | list[Chunk], done: bool = True) -> bytes:
    flat = [chunk for item in chunks for chunk in ([item] if isinstance(item, dict) else item)]
    frames = "".join(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in flat)
    return (frames + ("data: [DONE]\n\n" if done else "")).encode()


def text_response(*parts: str) -> bytes:
    """Return the complete stream of a plain text response."""
    return encode_sse(text_chunks(*(parts or ("Hello",))), make_chunk({}, "stop"), usage_chunk())


class StrictChat(StrictServer):
    def check_request(self, headers: dict[str, str], body: dict[str, Any]) -> None:
        check_request(headers, body)
