"""The Responses protocol, as OpenAI speaks it and, with ids and a price for each answer, OpenRouter."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from local.demo_model import strict_responses
from local.demo_model.answer import Answer, Event, new_id
from local.demo_model.strict import Refused
from local.demo_model.voice import Body, Reading, Usage, openai_error, prompt_total, sse

PROMPT_USD, CACHED_USD, COMPLETION_USD = 1e-6, 1e-7, 5e-6
"""What the catalogue asks for a token of the demo model."""
_ITEMS = {"text": "message", "tool_use": "function_call", "thinking": "reasoning"}
_DELTAS = {
    "text_delta": ("response.output_text.delta", "text"),
    "input_json_delta": ("response.function_call_arguments.delta", "partial_json"),
    "thinking_delta": ("response.reasoning_summary_text.delta", "thinking"),
}
_REASONS = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}


class Responses:
    media_type = "text/event-stream"

    def __init__(self, *, named: bool) -> None:
        """`named`: OpenRouter's form, with ids in both directions."""
        self._named = named

    def check(self, headers: Mapping[str, str], body: Any) -> None:
        strict_responses.check(headers, body, named=self._named)

    def streams(self, body: Body) -> bool:
        return bool(body.get("stream"))

    def read(self, body: Body) -> Body:
        reading = Reading(body, body.get("instructions") or "", body.get("tools") or [])
        for item in body["input"]:
            match item.get("type", "message"):
                case "message" if item["role"] == "user":
                    for part in item["content"]:
                        if part["type"] == "input_text":
                            reading.prompt(part["text"])
                        else:
                            reading.picture()
                case "message":
                    reading.say("assistant", *({"type": "text", "text": part["text"]} for part in item["content"]))
                case "function_call":
                    reading.call(item["call_id"], item["name"], json.loads(item["arguments"]))
                case "function_call_output":
                    reading.result(item["call_id"], item["output"])
        return reading.done()

    def count(self, body: Body, usage: Usage) -> Usage:
        return usage

    def speech(self, body: Body, answer: Answer, usage: Usage) -> "ResponsesSpeech":
        return ResponsesSpeech(body, answer, self._usage(usage))

    def refusal(self, refused: Refused) -> Body:
        return openai_error(refused)

    def _usage(self, usage: Usage) -> Body:
        total, cached, said = prompt_total(usage), usage.get("cache_read_input_tokens", 0), usage["output_tokens"]
        told: Body = {
            "input_tokens": total, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": said,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": total + said,
        }  # fmt: skip
        usd = (total - cached) * PROMPT_USD + cached * CACHED_USD + said * COMPLETION_USD
        details = {"cost_details": {"upstream_inference_cost": round(usd, 9)}}
        return told | {"cost": round(usd, 9), "is_byok": False} | details if self._named else told


class ResponsesSpeech:
    def __init__(self, body: Body, answer: Answer, usage: Body) -> None:
        self._model, self._answer, self._usage = body["model"], answer, usage
        self._seals = strict_responses.ENCRYPTED in (body.get("include") or ())
        self._id = new_id("resp")
        self._item: Body = {}
        self._text = ""

    def opening(self) -> Iterator[bytes]:
        yield sse({"type": "response.created", "response": self._response("in_progress", usage=None)})

    def frames(self, event: Event) -> Iterator[bytes]:
        place = {"output_index": event["index"]}
        match event["type"]:
            case "content_block_start":
                self._item, self._text = _begun(event["content_block"]), ""
                yield sse({"type": "response.output_item.added", **place, "item": self._item})
            case "content_block_delta" if event["delta"]["type"] in _DELTAS:
                name, member = _DELTAS[event["delta"]["type"]]
                self._text += event["delta"][member]
                yield sse({"type": name, **place, "delta": event["delta"][member]})
            case "content_block_stop" if not self._was_cut(event["index"]):
                item = self._finished(self._item, self._text)
                yield sse({"type": "response.output_item.done", **place, "item": item})

    def closing(self) -> Iterator[bytes]:
        response = self._end()
        yield sse({"type": f"response.{response['status']}", "response": response})

    def error(self, kind: str, words: str) -> bytes:
        return sse({"type": "error", "code": kind, "message": words, "param": None})

    def whole(self) -> Body:
        output = []
        for block in self._answer.blocks():
            text = block.get("text") or block.get("thinking") or json.dumps(block.get("input", {}))
            output.append(self._finished(_begun(block), text))
        return self._end() | {"output": output}

    def _end(self) -> Body:
        reason = _REASONS.get(self._answer.stop_reason)
        if reason is None:
            return self._response("completed")
        return self._response("incomplete", incomplete_details={"reason": reason})

    def _was_cut(self, place: int) -> bool:
        """The limit fell into the last call: it is never finished."""
        is_last = place == len(self._answer.blocks()) - 1
        return is_last and self._answer.stop_reason == "max_tokens" and bool(self._answer.calls)

    def _finished(self, item: Body, text: str) -> Body:
        item = item | {"status": "completed"}
        match item["type"]:
            case "function_call":
                return item | {"arguments": text or "{}"}
            case "message":
                return item | {"content": [{"type": "output_text", "text": text, "annotations": []}]}
            case _:
                summary = [{"type": "summary_text", "text": text}] if text else []
                sealed = f"sealed:{self._model}:{self._answer.signature}" if self._seals else None
                return item | {"summary": summary, "encrypted_content": sealed}

    def _response(self, status: str, **members: Any) -> Body:
        return {
            "id": self._id, "object": "response", "status": status, "model": self._model, "error": None,
            "incomplete_details": None, "output": [], "usage": self._usage,
        } | members  # fmt: skip


def _begun(block: Body) -> Body:
    kind = _ITEMS[block["type"]]
    item: Body = {"id": new_id(kind[:3]), "type": kind, "status": "in_progress"}
    match kind:
        case "function_call":
            return item | {"call_id": new_id("call"), "name": block["name"], "arguments": ""}
        case "message":
            return item | {"role": "assistant", "content": []}
        case _:
            return item | {"summary": []}
