"""Adapt Ollama's chat protocol: JSON lines, whole tool calls, and a context window that the request sets."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from local.demo_model.model_answer import ModelAnswer, StreamEvent
from local.demo_model.protocols.chat_completions import messages_request_from_chat
from local.demo_model.protocols.protocol import Body, Usage, parse_arguments, total_prompt_tokens
from local.demo_model.request_checks import ollama_chat
from local.demo_model.request_checks.errors import RequestRejected

CREATED_AT = "2026-01-01T00:00:00Z"


class OllamaChat:
    media_type = "application/x-ndjson"

    def check_request(self, headers: Mapping[str, str], body: Any) -> None:
        ollama_chat.check_request(headers, body)

    def wants_stream(self, body: Body) -> bool:
        return body.get("stream") is not False

    def to_messages_request(self, body: Body) -> Body:
        return messages_request_from_chat(body)

    def adjust_usage(self, body: Body, usage: Usage) -> Usage:
        prompt_tokens = total_prompt_tokens(usage)
        read_tokens = ollama_chat.count_read_tokens(body, prompt_tokens)
        return (
            usage
            if read_tokens == prompt_tokens
            else {"input_tokens": read_tokens, "output_tokens": usage["output_tokens"]}
        )

    def make_encoder(self, body: Body, answer: ModelAnswer, usage: Usage) -> "OllamaChatEncoder":
        return OllamaChatEncoder(body["model"], answer, usage)

    def error_body(self, rejection: RequestRejected) -> Body:
        return {"error": rejection.message}


class OllamaChatEncoder:
    def __init__(self, model: str, answer: ModelAnswer, usage: Usage) -> None:
        self._model = model
        self._answer = answer
        self._usage = usage
        self._call: Body = {}
        self._arguments = ""
        self._call_count = 0

    def encode_opening(self) -> Iterator[bytes]:
        return iter(())

    def encode_event(self, event: StreamEvent) -> Iterator[bytes]:
        block = event.get("content_block", {})
        delta = event.get("delta", {})
        if event["type"] == "content_block_start":
            self._call = block if block["type"] == "tool_use" else {}
            self._arguments = ""
        elif delta.get("type") == "text_delta":
            yield self._encode_line({"content": delta["text"]})
        elif delta.get("type") == "thinking_delta":
            yield self._encode_line({"thinking": delta["thinking"]})
        elif delta.get("type") == "input_json_delta":
            self._arguments += delta["partial_json"]
        elif event["type"] == "content_block_stop" and self._call:
            call = self._encode_call(self._call["name"], parse_arguments(self._arguments))
            yield self._encode_line({"tool_calls": [call]})

    def encode_closing(self) -> Iterator[bytes]:
        yield self._encode_line({}, self._end())

    def encode_error(self, error_type: str, message: str) -> bytes:
        return f"{json.dumps({'error': message})}\n".encode()

    def to_body(self) -> Body:
        calls = [self._encode_call(call.name, call.input) for call in self._answer.tool_calls]
        message: Body = {"content": self._answer.text} | ({"tool_calls": calls} if calls else {})
        return self._build_line(message, self._end())

    def _end(self) -> Body:
        cached = self._usage.get("cache_read_input_tokens", 0)
        return {
            "done": True, "done_reason": "length" if self._answer.stop_reason == "max_tokens" else "stop",
            "prompt_eval_count": total_prompt_tokens(self._usage), "prompt_eval_cached_count": cached,
            "eval_count": self._usage["output_tokens"],
        }  # fmt: skip

    def _encode_call(self, name: str, arguments: Any) -> Body:
        self._call_count += 1
        return {"function": {"index": self._call_count - 1, "name": name, "arguments": arguments}}

    def _encode_line(self, message: Body, end: Body | None = None) -> bytes:
        return f"{json.dumps(self._build_line(message, end or {}), ensure_ascii=False)}\n".encode()

    def _build_line(self, message: Body, end: Body) -> Body:
        whole_message: Body = {"role": "assistant", "content": ""} | message
        return {"model": self._model, "created_at": CREATED_AT, "message": whole_message, "done": False} | end
