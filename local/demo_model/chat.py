"""The chat-completions protocol."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from local.demo_model import strict_chat
from local.demo_model.answer import Answer, Call, Event, new_id
from local.demo_model.strict import Refused
from local.demo_model.voice import Body, Reading, Usage, openai_error, prompt_total, sse

_REASONS = {"tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}


class Chat:
    media_type = "text/event-stream"

    def check(self, headers: Mapping[str, str], body: Any) -> None:
        strict_chat.check(headers, body)

    def streams(self, body: Body) -> bool:
        return bool(body.get("stream"))

    def read(self, body: Body) -> Body:
        return read_messages(body)

    def count(self, body: Body, usage: Usage) -> Usage:
        return usage

    def speech(self, body: Body, answer: Answer, usage: Usage) -> "ChatSpeech":
        wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return ChatSpeech(body["model"], answer, usage, wants_usage=wants_usage)

    def refusal(self, refused: Refused) -> Body:
        return openai_error(refused)


def read_messages(body: Body) -> Body:
    """Messages of roles, as Ollama has them too."""
    system = next((message["content"] for message in body["messages"] if message["role"] == "system"), "")
    reading = Reading(body, system, [tool["function"] for tool in body.get("tools") or []])
    for message in body["messages"]:
        match message["role"]:
            case "user":
                content = message["content"]
                parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
                for part in parts:
                    if part["type"] == "text":
                        reading.prompt(part["text"])
                    else:
                        reading.picture()
                for _ in message.get("images") or ():
                    reading.picture()
            case "assistant":
                if message["content"]:
                    reading.say("assistant", {"type": "text", "text": message["content"]})
                for call in message.get("tool_calls") or ():
                    given = call["function"]["arguments"]
                    arguments = json.loads(given) if isinstance(given, str) else given
                    reading.call(call.get("id", ""), call["function"]["name"], arguments)
            case "tool":
                reading.result(message.get("tool_call_id", ""), message["content"])
    return reading.done()


class ChatSpeech:
    def __init__(self, model: str, answer: Answer, usage: Usage, *, wants_usage: bool) -> None:
        self._model, self._answer, self._wants_usage = model, answer, wants_usage
        total, said = prompt_total(usage), usage["output_tokens"]
        cached = {"cached_tokens": usage.get("cache_read_input_tokens", 0)}
        self._usage: Body = {"prompt_tokens": total, "completion_tokens": said, "total_tokens": total + said}
        self._usage |= {"prompt_tokens_details": cached}
        self._id = new_id("chatcmpl")
        self._calls = 0

    def opening(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def frames(self, event: Event) -> Iterator[bytes]:
        block, delta = event.get("content_block", {}), event.get("delta", {})
        match block.get("type") or delta.get("type"):
            case "tool_use":
                self._calls += 1
                yield self._call({"name": block["name"], "arguments": ""}, id=new_id("call"), type="function")
            case "text_delta":
                yield self._chunk({"content": delta["text"]})
            case "thinking_delta":
                yield self._chunk({"reasoning_content": delta["thinking"]})
            case "input_json_delta":
                yield self._call({"arguments": delta["partial_json"]})

    def closing(self) -> Iterator[bytes]:
        yield self._chunk({}, _REASONS.get(self._answer.stop_reason, "stop"))
        if self._wants_usage:
            yield sse(self._frame([]) | {"usage": self._usage})
        yield sse("[DONE]")

    def error(self, kind: str, words: str) -> bytes:
        return sse({"error": {"message": words, "type": kind, "code": None}})

    def whole(self) -> Body:
        calls = [{"id": new_id("call"), "type": "function", "function": _function(one)} for one in self._answer.calls]
        message: Body = {"role": "assistant", "content": self._answer.text} | ({"tool_calls": calls} if calls else {})
        reason = _REASONS.get(self._answer.stop_reason, "stop")
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return self._frame([choice]) | {"object": "chat.completion", "usage": self._usage}

    def _call(self, function: Body, **members: Any) -> bytes:
        return self._chunk({"tool_calls": [{"index": self._calls - 1, **members, "function": function}]})

    def _chunk(self, delta: Body, reason: str | None = None) -> bytes:
        return sse(self._frame([{"index": 0, "delta": delta, "finish_reason": reason}]) | {"usage": None})

    def _frame(self, choices: list[Body]) -> Body:
        return {"id": self._id, "object": "chat.completion.chunk", "model": self._model, "choices": choices}


def _function(call: Call) -> Body:
    return {"name": call.name, "arguments": json.dumps(call.input)}
