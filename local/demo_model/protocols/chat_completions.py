"""The chat-completions protocol."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from local.demo_model.model_answer import ModelAnswer, StreamEvent, ToolCall, make_id
from local.demo_model.protocols.protocol import (
    Body,
    MessagesRequestBuilder,
    Usage,
    encode_sse,
    openai_error_body,
    total_prompt_tokens,
)
from local.demo_model.request_checks import chat_completions
from local.demo_model.request_checks.anthropic_messages import RequestRejected

_REASONS = {"tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}


class ChatCompletions:
    media_type = "text/event-stream"

    def check_request(self, headers: Mapping[str, str], body: Any) -> None:
        chat_completions.check_request(headers, body)

    def wants_stream(self, body: Body) -> bool:
        return bool(body.get("stream"))

    def to_messages_request(self, body: Body) -> Body:
        return messages_request_from_chat(body)

    def adjust_usage(self, body: Body, usage: Usage) -> Usage:
        return usage

    def make_encoder(self, body: Body, answer: ModelAnswer, usage: Usage) -> "ChatCompletionsEncoder":
        wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        return ChatCompletionsEncoder(body["model"], answer, usage, wants_usage=wants_usage)

    def error_body(self, refused: RequestRejected) -> Body:
        return openai_error_body(refused)


def messages_request_from_chat(body: Body) -> Body:
    """Messages of roles, as Ollama has them too."""
    system = next((message["content"] for message in body["messages"] if message["role"] == "system"), "")
    reading = MessagesRequestBuilder(body, system, [tool["function"] for tool in body.get("tools") or []])
    for message in body["messages"]:
        match message["role"]:
            case "user":
                content = message["content"]
                parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
                for part in parts:
                    if part["type"] == "text":
                        reading.add_prompt(part["text"])
                    else:
                        reading.add_image()
                for _ in message.get("images") or ():
                    reading.add_image()
            case "assistant":
                if message["content"]:
                    reading.add_message("assistant", {"type": "text", "text": message["content"]})
                for call in message.get("tool_calls") or ():
                    given = call["function"]["arguments"]
                    arguments = json.loads(given) if isinstance(given, str) else given
                    reading.add_tool_call(call.get("id", ""), call["function"]["name"], arguments)
            case "tool":
                reading.add_tool_result(message.get("tool_call_id", ""), message["content"])
    return reading.build_request()


class ChatCompletionsEncoder:
    def __init__(self, model: str, answer: ModelAnswer, usage: Usage, *, wants_usage: bool) -> None:
        self._model, self._answer, self._wants_usage = model, answer, wants_usage
        total, said = total_prompt_tokens(usage), usage["output_tokens"]
        cached = {"cached_tokens": usage.get("cache_read_input_tokens", 0)}
        self._usage: Body = {"prompt_tokens": total, "completion_tokens": said, "total_tokens": total + said}
        self._usage |= {"prompt_tokens_details": cached}
        self._id = make_id("chatcmpl")
        self._calls = 0

    def encode_opening(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def encode_event(self, event: StreamEvent) -> Iterator[bytes]:
        block, delta = event.get("content_block", {}), event.get("delta", {})
        match block.get("type") or delta.get("type"):
            case "tool_use":
                self._calls += 1
                yield self._call({"name": block["name"], "arguments": ""}, id=make_id("call"), type="function")
            case "text_delta":
                yield self._chunk({"content": delta["text"]})
            case "thinking_delta":
                yield self._chunk({"reasoning_content": delta["thinking"]})
            case "input_json_delta":
                yield self._call({"arguments": delta["partial_json"]})

    def encode_closing(self) -> Iterator[bytes]:
        yield self._chunk({}, _REASONS.get(self._answer.stop_reason, "stop"))
        if self._wants_usage:
            yield encode_sse(self._frame([]) | {"usage": self._usage})
        yield encode_sse("[DONE]")

    def encode_error(self, kind: str, message: str) -> bytes:
        return encode_sse({"error": {"message": message, "type": kind, "code": None}})

    def to_body(self) -> Body:
        calls = [
            {"id": make_id("call"), "type": "function", "function": _function(one)} for one in self._answer.tool_calls
        ]
        message: Body = {"role": "assistant", "content": self._answer.text} | ({"tool_calls": calls} if calls else {})
        reason = _REASONS.get(self._answer.stop_reason, "stop")
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return self._frame([choice]) | {"object": "chat.completion", "usage": self._usage}

    def _call(self, function: Body, **members: Any) -> bytes:
        return self._chunk({"tool_calls": [{"index": self._calls - 1, **members, "function": function}]})

    def _chunk(self, delta: Body, reason: str | None = None) -> bytes:
        return encode_sse(self._frame([{"index": 0, "delta": delta, "finish_reason": reason}]) | {"usage": None})

    def _frame(self, choices: list[Body]) -> Body:
        return {"id": self._id, "object": "chat.completion.chunk", "model": self._model, "choices": choices}


def _function(call: ToolCall) -> Body:
    return {"name": call.name, "arguments": json.dumps(call.input)}
