"""Render the answer of a turn as a chat completion: chunks in a stream, or one object."""

import json
from collections.abc import Sequence
from typing import Any

from fermata.domain.events import Event
from fermata.wire.http.openai_errors import build_failure_error
from fermata.wire.renderers.openai_answer import AnswerPart, OpenAIAnswer, OpenAIApproval, OpenAICall, TokenTotals
from fermata.wire.renderers.turn_steps import ReasoningPiece, TextPiece

END_OF_STREAM = b"data: [DONE]\n\n"


class ChatCompletionRenderer:
    """Renders one response.

    Args:
        answer: The answer, before the turn's first entry.
        completion_id: The id of the completion.
        model: As the client has named it.
        created: Epoch seconds.
        has_usage: Whether a stream ends with the usage.
    """

    def __init__(
        self, answer: OpenAIAnswer, *, completion_id: str, model: str, created: int, has_usage: bool = False
    ) -> None:
        self._answer = answer
        self._head = {"id": completion_id, "created": created, "model": model, "system_fingerprint": None}
        self._has_usage = has_usage
        self._has_begun = False
        self._call_count = 0

    def render_events(self, events: Sequence[Event]) -> bytes:
        """Return the chunks of an entry."""
        deltas = [self._build_delta(part) for part in self._answer.fold(events)]
        if deltas and not self._has_begun:
            self._has_begun = True
            deltas.insert(0, {"role": "assistant", "content": ""})
        return b"".join(self._encode_choice(delta) for delta in deltas)

    def is_response_over(self) -> bool:
        """Return whether the answer is whole."""
        return self._answer.is_over()

    def render_end(self, tokens: TokenTotals | None) -> bytes:
        """Return what comes after the last entry."""
        if self._answer.failure is not None:
            return _encode({"error": build_failure_error(self._answer.failure)})
        begin = b"" if self._has_begun else self._encode_choice({"role": "assistant", "content": ""})
        end = self._encode_choice({}, self._answer.finish_reason)
        usage = self._encode_chunk([], {"usage": build_chat_usage(tokens)}) if self._has_usage else b""
        return begin + end + usage + END_OF_STREAM

    def build_whole(self, tokens: TokenTotals | None) -> dict[str, Any]:
        """Return the completion as one object."""
        answer = self._answer
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.calls:
            message["tool_calls"] = [_build_call(call) for call in answer.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish_reason}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": build_chat_usage(tokens)}

    def _build_delta(self, part: AnswerPart) -> dict[str, Any]:
        match part:
            case TextPiece():
                return {"content": part.text}
            case ReasoningPiece():
                return {"reasoning_content": part.text}
            case OpenAICall():
                self._call_count += 1
                return {"tool_calls": [{"index": self._call_count - 1, **_build_call(part)}]}
            case OpenAIApproval():
                raise AssertionError(f"Chat completions have no items: {part.request_id}.")

    def _encode_choice(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        return self._encode_chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}], {})

    def _encode_chunk(self, choices: list[dict[str, Any]], members: dict[str, Any]) -> bytes:
        usage: dict[str, Any] = {"usage": None} if self._has_usage else {}
        return _encode({**self._head, "object": "chat.completion.chunk", "choices": choices, **usage, **members})


def build_chat_usage(tokens: TokenTotals | None) -> dict[str, Any]:
    """Return the usage of a completion; nothing used if it is not known."""
    tokens = tokens or TokenTotals()
    return {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.completion,
        "total_tokens": tokens.prompt + tokens.completion,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
    }


def _build_call(call: OpenAICall) -> dict[str, Any]:
    return {"id": call.call_id, "type": "function", "function": {"name": call.tool_name, "arguments": call.arguments}}


def _encode(chunk: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
