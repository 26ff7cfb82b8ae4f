"""Adapt the Responses protocol of OpenAI and, with item ids and the cost of each answer, of OpenRouter."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from local.demo_model.model_answer import ModelAnswer, StreamEvent, make_id
from local.demo_model.protocols.protocol import (
    Body,
    MessagesRequestBuilder,
    Usage,
    encode_sse,
    openai_error_body,
    total_prompt_tokens,
)
from local.demo_model.request_checks import openai_responses
from local.demo_model.request_checks.errors import RequestRejected

PROMPT_TOKEN_USD = 1e-6
"""Prices of the demo model in catalogue.json."""
CACHED_TOKEN_USD = 1e-7
COMPLETION_TOKEN_USD = 5e-6
_ITEM_TYPES = {"text": "message", "tool_use": "function_call", "thinking": "reasoning"}
_DELTA_TYPES = {
    "text_delta": ("response.output_text.delta", "text"),
    "input_json_delta": ("response.function_call_arguments.delta", "partial_json"),
    "thinking_delta": ("response.reasoning_summary_text.delta", "thinking"),
}
_INCOMPLETE_REASONS = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}


class OpenAIResponses:
    media_type = "text/event-stream"

    def __init__(self, *, is_openrouter: bool) -> None:
        self._is_openrouter = is_openrouter

    def check_request(self, headers: Mapping[str, str], body: Any) -> None:
        openai_responses.check_request(headers, body, is_openrouter=self._is_openrouter)

    def wants_stream(self, body: Body) -> bool:
        return bool(body.get("stream"))

    def to_messages_request(self, body: Body) -> Body:
        builder = MessagesRequestBuilder(body, body.get("instructions") or "", body.get("tools") or [])
        for item in body["input"]:
            match item.get("type", "message"):
                case "message" if item["role"] == "user":
                    for part in item["content"]:
                        if part["type"] == "input_text":
                            builder.add_prompt(part["text"])
                        else:
                            builder.add_image()
                case "message":
                    builder.add_message(
                        "assistant", *({"type": "text", "text": part["text"]} for part in item["content"])
                    )
                case "function_call":
                    builder.add_tool_call(item["call_id"], item["name"], json.loads(item["arguments"]))
                case "function_call_output":
                    builder.add_tool_result(item["call_id"], item["output"])
        return builder.build_request()

    def adjust_usage(self, body: Body, usage: Usage) -> Usage:
        return usage

    def make_encoder(self, body: Body, answer: ModelAnswer, usage: Usage) -> "OpenAIResponsesEncoder":
        return OpenAIResponsesEncoder(body, answer, self._usage(usage))

    def error_body(self, rejection: RequestRejected) -> Body:
        return openai_error_body(rejection)

    def _usage(self, usage: Usage) -> Body:
        input_tokens = total_prompt_tokens(usage)
        cached_tokens = usage.get("cache_read_input_tokens", 0)
        output_tokens = usage["output_tokens"]
        openai_usage: Body = {
            "input_tokens": input_tokens,
            "input_tokens_details": {"cached_tokens": cached_tokens},
            "output_tokens": output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input_tokens + output_tokens,
        }
        if not self._is_openrouter:
            return openai_usage
        prompt_cost = (input_tokens - cached_tokens) * PROMPT_TOKEN_USD + cached_tokens * CACHED_TOKEN_USD
        cost = round(prompt_cost + output_tokens * COMPLETION_TOKEN_USD, 9)
        return openai_usage | {
            "cost": cost, "is_byok": False, "cost_details": {"upstream_inference_cost": cost},
        }  # fmt: skip


class OpenAIResponsesEncoder:
    def __init__(self, body: Body, answer: ModelAnswer, usage: Body) -> None:
        self._model = body["model"]
        self._answer = answer
        self._usage = usage
        self._encrypts_reasoning = openai_responses.ENCRYPTED_REASONING in (body.get("include") or ())
        self._id = make_id("resp")
        self._item: Body = {}
        self._text = ""

    def encode_opening(self) -> Iterator[bytes]:
        yield encode_sse({"type": "response.created", "response": self._response("in_progress") | {"usage": None}})

    def encode_event(self, event: StreamEvent) -> Iterator[bytes]:
        place = {"output_index": event["index"]}
        match event["type"]:
            case "content_block_start":
                self._item, self._text = _start_item(event["content_block"]), ""
                yield encode_sse({"type": "response.output_item.added", **place, "item": self._item})
            case "content_block_delta" if event["delta"]["type"] in _DELTA_TYPES:
                name, member = _DELTA_TYPES[event["delta"]["type"]]
                self._text += event["delta"][member]
                yield encode_sse({"type": name, **place, "delta": event["delta"][member]})
            case "content_block_stop" if not self._is_truncated(event["index"]):
                item = self._finish_item(self._item, self._text)
                yield encode_sse({"type": "response.output_item.done", **place, "item": item})

    def encode_closing(self) -> Iterator[bytes]:
        response = self._end()
        yield encode_sse({"type": f"response.{response['status']}", "response": response})

    def encode_error(self, error_type: str, message: str) -> bytes:
        return encode_sse({"type": "error", "code": error_type, "message": message, "param": None})

    def to_body(self) -> Body:
        output = []
        for block in self._answer.content_blocks():
            text = block.get("text") or block.get("thinking") or json.dumps(block.get("input", {}))
            output.append(self._finish_item(_start_item(block), text))
        return self._end() | {"output": output}

    def _end(self) -> Body:
        reason = _INCOMPLETE_REASONS.get(self._answer.stop_reason)
        if reason is None:
            return self._response("completed")
        return self._response("incomplete") | {"incomplete_details": {"reason": reason}}

    def _is_truncated(self, place: int) -> bool:
        """Return whether the token limit was reached in this item, the last tool call, which is then never finished."""
        is_last = place == len(self._answer.content_blocks()) - 1
        return is_last and self._answer.stop_reason == "max_tokens" and bool(self._answer.tool_calls)

    def _finish_item(self, item: Body, text: str) -> Body:
        item = item | {"status": "completed"}
        match item["type"]:
            case "function_call":
                return item | {"arguments": text or "{}"}
            case "message":
                return item | {"content": [{"type": "output_text", "text": text, "annotations": []}]}
            case _:
                summary = [{"type": "summary_text", "text": text}] if text else []
                sealed = f"sealed:{self._model}:{self._answer.signature}" if self._encrypts_reasoning else None
                return item | {"summary": summary, "encrypted_content": sealed}

    def _response(self, status: str) -> Body:
        return {
            "id": self._id, "object": "response", "status": status, "model": self._model, "error": None,
            "incomplete_details": None, "output": [], "usage": self._usage,
        }  # fmt: skip


def _start_item(block: Body) -> Body:
    kind = _ITEM_TYPES[block["type"]]
    item: Body = {"id": make_id(kind[:3]), "type": kind, "status": "in_progress"}
    match kind:
        case "function_call":
            return item | {"call_id": make_id("call"), "name": block["name"], "arguments": ""}
        case "message":
            return item | {"role": "assistant", "content": []}
        case _:
            return item | {"summary": []}
