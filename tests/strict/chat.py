"""A chat-completions server that says what a test tells it and refuses what the many real ones refuse."""

import json
from typing import Any

from local.demo_model.strict_chat import check
from tests.strict.serving import StrictServer

Chunk = dict[str, Any]


def chunk(delta: Any = None, stop: str | None = None, **members: Any) -> Chunk:
    choice = {"index": 0, "delta": delta, "finish_reason": stop}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice], "usage": None} | members


def says(*parts: str) -> list[Chunk]:
    return [chunk({"role": "assistant", "content": ""}), *(chunk({"content": part}) for part in parts)]


def calls(index: int | None, call_id: str | None, name: str | None, *parts: str) -> list[Chunk]:
    """A call in pieces: its name first, then its arguments."""
    place = {} if index is None else {"index": index}
    first = place | {"id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    more = [place | {"function": {"arguments": part}} for part in parts]
    return [chunk({"tool_calls": [one]}) for one in [first, *more]]


def used(prompt: int = 10, completion: int = 5, **more: Any) -> Chunk:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion} | more
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage}


def sse(*chunks: Chunk | list[Chunk], done: bool = True) -> bytes:
    flat = [one for item in chunks for one in ([item] if isinstance(item, dict) else item)]
    lines = "".join(f"data: {json.dumps(one, ensure_ascii=False)}\n\n" for one in flat)
    return (lines + ("data: [DONE]\n\n" if done else "")).encode()


def answer(*parts: str) -> bytes:
    """A whole plain answer."""
    return sse(says(*(parts or ("Hello",))), chunk({}, "stop"), used())


class StrictChat(StrictServer):
    def check(self, headers: dict[str, str], body: dict[str, Any]) -> None:
        check(headers, body)
