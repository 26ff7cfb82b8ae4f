"""Adapt Google's generateContent: whole calls, signatures of parts, and the model's name in the path."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from local.demo_model.model_answer import ModelAnswer, StreamEvent, make_id
from local.demo_model.protocols.protocol import (
    Body,
    MessagesRequestBuilder,
    Usage,
    encode_sse,
    parse_arguments,
    total_prompt_tokens,
)
from local.demo_model.request_checks import gemini_generate
from local.demo_model.request_checks.errors import RequestRejected

_FINISH_REASONS = {"max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}
_STATUSES = {
    "invalid_request_error": "INVALID_ARGUMENT", "authentication_error": "UNAUTHENTICATED",
    "permission_error": "PERMISSION_DENIED", "not_found_error": "NOT_FOUND", "rate_limit_error": "RESOURCE_EXHAUSTED",
    "overloaded_error": "UNAVAILABLE",
}  # fmt: skip


class GeminiGenerate:
    media_type = "text/event-stream"

    def check_request(self, headers: Mapping[str, str], body: Any) -> None:
        gemini_generate.check_request(headers, body)

    def wants_stream(self, body: Body) -> bool:
        return True

    def to_messages_request(self, body: Body) -> Body:
        builder = MessagesRequestBuilder(_flatten(body), _join_texts(body.get("systemInstruction")), _list_tools(body))
        for content in body["contents"]:
            for part in content["parts"]:
                _add_part(builder, content["role"], part)
        return builder.build_request()

    def adjust_usage(self, body: Body, usage: Usage) -> Usage:
        return usage

    def make_encoder(self, body: Body, answer: ModelAnswer, usage: Usage) -> "GeminiGenerateEncoder":
        return GeminiGenerateEncoder(body["model"], answer, usage)

    def error_body(self, rejection: RequestRejected) -> Body:
        return encode_error(rejection.kind, rejection.message, rejection.status)


def encode_error(kind: str, message: str, status: int = 500) -> Body:
    """Make an error as Google's servers do."""
    return {"error": {"code": status, "message": message, "status": _STATUSES.get(kind, kind)}}


def _flatten(body: Body) -> Body:
    """Put what the builder reads where the other protocols have it."""
    choice = body.get("toolConfig", {}).get("functionCallingConfig", {}).get("mode")
    return {"model": body["model"], "tool_choice": "none" if choice == "NONE" else "auto"}


def _join_texts(content: Body | None) -> str:
    return "\n\n".join(part["text"] for part in (content or {}).get("parts", ()))


def _list_tools(body: Body) -> list[Body]:
    declared = [tool for group in body.get("tools", ()) for tool in group["functionDeclarations"]]
    return [{"name": tool["name"], "parameters": tool.get("parametersJsonSchema")} for tool in declared]


def _add_part(builder: MessagesRequestBuilder, role: str, part: Body) -> None:
    if call := part.get("functionCall"):
        builder.add_tool_call(call["id"], call["name"], call.get("args", {}))
    elif result := part.get("functionResponse"):
        response = result["response"]
        builder.add_tool_result(result["id"], str(response.get("output", response.get("error"))))
    elif "inlineData" in part:
        builder.add_image()
    elif role == "user":
        builder.add_prompt(part["text"])
    elif not part.get("thought"):
        builder.add_message("assistant", {"type": "text", "text": part["text"]})


class GeminiGenerateEncoder:
    def __init__(self, model: str, answer: ModelAnswer, usage: Usage) -> None:
        self._model = model
        self._answer = answer
        self._usage = usage
        self._call: Body = {}
        self._arguments = ""
        self._signature = ""
        """That of the thinking before, which the next call comes with."""

    def encode_opening(self) -> Iterator[bytes]:
        return iter(())

    def encode_event(self, event: StreamEvent) -> Iterator[bytes]:
        block = event.get("content_block", {})
        delta = event.get("delta", {})
        match delta.get("type"):
            case "text_delta":
                yield self._encode_part({"text": delta["text"]})
            case "thinking_delta":
                yield self._encode_part({"text": delta["thinking"], "thought": True})
            case "signature_delta":
                sealed = f"sealed:{self._model}:{delta['signature']}"
                self._signature = base64.b64encode(sealed.encode()).decode()
            case "input_json_delta":
                self._arguments += delta["partial_json"]
        if event["type"] == "content_block_start":
            self._call, self._arguments = (block if block["type"] == "tool_use" else {}), ""
        elif event["type"] == "content_block_stop" and self._call:
            yield self._encode_part(self._take_call())

    def _take_call(self) -> Body:
        call = {"id": make_id("call"), "name": self._call["name"], "args": parse_arguments(self._arguments)}
        signature = {"thoughtSignature": self._signature} if self._signature else {}
        self._call, self._signature = {}, ""
        return {"functionCall": call} | signature

    def encode_closing(self) -> Iterator[bytes]:
        yield encode_sse(self._end())

    def encode_error(self, error_type: str, message: str) -> bytes:
        return encode_sse(encode_error(error_type, message, 503 if error_type == "overloaded_error" else 500))

    def to_body(self) -> Body:
        return self._end()

    def _end(self) -> Body:
        reason = _FINISH_REASONS.get(self._answer.stop_reason, "STOP")
        message = {"finishMessage": self._answer.refusal} if self._answer.refusal else {}
        candidate = {"content": {"parts": [], "role": "model"}, "finishReason": reason, "index": 0} | message
        return self._build_chunk(candidate) | {"usageMetadata": self._build_usage()}

    def _build_usage(self) -> Body:
        prompt, answer = total_prompt_tokens(self._usage), self._usage["output_tokens"]
        cached = self._usage.get("cache_read_input_tokens", 0)
        counts = {"promptTokenCount": prompt, "candidatesTokenCount": answer, "totalTokenCount": prompt + answer}
        return counts | ({"cachedContentTokenCount": cached} if cached else {})

    def _encode_part(self, part: Body) -> bytes:
        return encode_sse(self._build_chunk({"content": {"parts": [part], "role": "model"}, "index": 0}))

    def _build_chunk(self, candidate: Body) -> Body:
        return {"candidates": [candidate], "modelVersion": self._model, "responseId": "demo"}
