"""Adapt the chat-completions protocol."""

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
from local.demo_model.request_checks.errors import RequestRejected

_FINISH_REASONS = {"tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}


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

    def error_body(self, rejection: RequestRejected) -> Body:
        return openai_error_body(rejection)


def _add_prompt(builder: MessagesRequestBuilder, message: Body) -> None:
    content = message["content"]
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if part["type"] == "text":
            builder.add_prompt(part["text"])
        else:
            builder.add_image()
    for _ in message.get("images") or ():
        builder.add_image()


def messages_request_from_chat(body: Body) -> Body:
    """Translate messages with roles, which Ollama's protocol has too."""
    system = next((message["content"] for message in body["messages"] if message["role"] == "system"), "")
    builder = MessagesRequestBuilder(body, system, [tool["function"] for tool in body.get("tools") or []])
    for message in body["messages"]:
        match message["role"]:
            case "user":
                _add_prompt(builder, message)
            case "assistant":
                if message["content"]:
                    builder.add_message("assistant", {"type": "text", "text": message["content"]})
                for call in message.get("tool_calls") or ():
                    arguments = call["function"]["arguments"]
                    arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
                    builder.add_tool_call(call.get("id", ""), call["function"]["name"], arguments)
            case "tool":
                builder.add_tool_result(message.get("tool_call_id", ""), message["content"])
    return builder.build_request()


class ChatCompletionsEncoder:
    def __init__(self, model: str, answer: ModelAnswer, usage: Usage, *, wants_usage: bool) -> None:
        self._model = model
        self._answer = answer
        self._wants_usage = wants_usage
        prompt_tokens = total_prompt_tokens(usage)
        completion_tokens = usage["output_tokens"]
        self._usage: Body = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.get("cache_read_input_tokens", 0)},
        }
        self._id = make_id("chatcmpl")
        self._call_count = 0

    def encode_opening(self) -> Iterator[bytes]:
        yield self._chunk({"role": "assistant", "content": ""})

    def encode_event(self, event: StreamEvent) -> Iterator[bytes]:
        block = event.get("content_block", {})
        delta = event.get("delta", {})
        match block.get("type") or delta.get("type"):
            case "tool_use":
                self._call_count += 1
                yield self._call({"name": block["name"], "arguments": ""}, {"id": make_id("call"), "type": "function"})
            case "text_delta":
                yield self._chunk({"content": delta["text"]})
            case "thinking_delta":
                yield self._chunk({"reasoning_content": delta["thinking"]})
            case "input_json_delta":
                yield self._call({"arguments": delta["partial_json"]}, {})

    def encode_closing(self) -> Iterator[bytes]:
        yield self._chunk({}, _FINISH_REASONS.get(self._answer.stop_reason, "stop"))
        if self._wants_usage:
            yield encode_sse(self._frame([]) | {"usage": self._usage})
        yield encode_sse("[DONE]")

    def encode_error(self, error_type: str, message: str) -> bytes:
        return encode_sse({"error": {"message": message, "type": error_type, "code": None}})

    def to_body(self) -> Body:
        calls = [
            {"id": make_id("call"), "type": "function", "function": _function(one)} for one in self._answer.tool_calls
        ]
        message: Body = {"role": "assistant", "content": self._answer.text} | ({"tool_calls": calls} if calls else {})
        reason = _FINISH_REASONS.get(self._answer.stop_reason, "stop")
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return self._frame([choice]) | {"object": "chat.completion", "usage": self._usage}

    def _call(self, function: Body, identity: Body) -> bytes:
        return self._chunk({"tool_calls": [{"index": self._call_count - 1, **identity, "function": function}]})

    def _chunk(self, delta: Body, reason: str | None = None) -> bytes:
        return encode_sse(self._frame([{"index": 0, "delta": delta, "finish_reason": reason}]) | {"usage": None})

    def _frame(self, choices: list[Body]) -> Body:
        return {"id": self._id, "object": "chat.completion.chunk", "model": self._model, "choices": choices}


def _function(call: ToolCall) -> Body:
    return {"name": call.name, "arguments": json.dumps(call.input)}
