"""Render the answer of a turn as a response of OpenAI's Responses API: events in a stream, or one object."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from fermata.domain.events import Event
from fermata.wire.http.openai_errors import build_failure_error
from fermata.wire.renderers.openai_answer import AnswerPart, OpenAIAnswer, OpenAIApproval, OpenAICall, TokenTotals
from fermata.wire.renderers.turn_steps import ReasoningPiece, TextPiece

_Json = dict[str, Any]
SERVER_LABEL = "fermata"
"""Of the agent's own tools, where a person has to approve their calls."""
FINAL_STATUSES = ("completed", "failed", "cancelled")


class ResponseRenderer:
    """Renders one response. Its items are the reasoning, the message, and the calls, in the order in which they came.

    Args:
        answer: The answer, before the turn's first entry.
        response_id: The id of the response, which the next request may name.
        model: As the client has named it.
        created: Epoch seconds.
        instructions: Those of the request.
        after: The number of the last event that the client has had; -1 for none.
    """

    def __init__(
        self,
        answer: OpenAIAnswer,
        *,
        response_id: str,
        model: str,
        created: int,
        instructions: str | None = None,
        after: int = -1,
    ) -> None:
        self._answer = answer
        self._id = response_id
        self._head = {"id": response_id, "object": "response", "created_at": created, "model": model}
        self._instructions = instructions
        self._after = after
        self._items: list[_Json] = []
        """The items that are complete."""
        self._open: _Json | None = None
        """The message or reasoning that grows, whose text is in `_pieces` until it is closed."""
        self._pieces: list[str] = []
        self._count = 0
        self._is_begun = False

    def render_events(self, events: Sequence[Event]) -> bytes:
        """Return the events of an entry."""
        sent = [] if self._is_begun else [*self._begin()]
        for part in self._answer.fold(events):
            sent += self._render(part)
        return b"".join(map(self._encode, sent))

    def is_response_over(self) -> bool:
        """Return whether the answer is whole."""
        return self._answer.is_over()

    def render_end(self, tokens: TokenTotals | None) -> bytes:
        """Return what comes after the last entry."""
        sent = [*self._close_item()]
        status = "completed" if self._answer.failure is None else "failed"
        sent.append({"type": f"response.{status}", "response": self._build_response(status, tokens)})
        return b"".join(map(self._encode, sent))

    @property
    def last_number(self) -> int:
        """The number of the last event that was rendered; -1 before the first."""
        return self._count - 1

    def build_whole(self, tokens: TokenTotals | None) -> _Json:
        """Return the response as one object, as far as it has come."""
        for _ in self._close_item():
            pass
        return self._build_response(self.status, tokens)

    @property
    def status(self) -> str:
        """How far the response is."""
        failure = self._answer.failure
        if failure is not None:
            return "cancelled" if failure.code == "cancelled" else "failed"
        return "completed" if self._answer.is_over() else "in_progress"

    def _begin(self) -> Iterator[_Json]:
        self._is_begun = True
        response = self._build_response("in_progress", None)
        yield {"type": "response.created", "response": response}
        yield {"type": "response.in_progress", "response": response}

    def _render(self, part: AnswerPart) -> Iterator[_Json]:
        match part:
            case TextPiece():
                yield from self._grow("message", part.text)
            case ReasoningPiece():
                yield from self._grow("reasoning", part.text)
            case OpenAICall():
                yield from self._close_item()
                yield from self._render_call(part)
            case OpenAIApproval():
                yield from self._close_item()
                yield from self._render_approval(part)

    def _grow(self, kind: str, text: str) -> Iterator[_Json]:
        if self._open is None or self._open["type"] != kind:
            yield from self._close_item()
            yield from self._open_item(kind)
        assert self._open is not None
        self._pieces.append(text)
        if kind == "message":
            yield self._place("response.output_text.delta", {"content_index": 0, "delta": text, "logprobs": []})
        else:
            yield self._place("response.reasoning_summary_text.delta", {"summary_index": 0, "delta": text})

    def _open_item(self, kind: str) -> Iterator[_Json]:
        item_id = f"{'msg' if kind == 'message' else 'rs'}_{self._id}_{len(self._items)}"
        item: _Json = {"id": item_id, "type": kind, "status": "in_progress"}
        if kind == "message":
            part: _Json = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            item |= {"role": "assistant", "content": []}
            added = {"type": "response.content_part.added", "content_index": 0}
        else:
            part = {"type": "summary_text", "text": ""}
            item |= {"summary": []}
            added = {"type": "response.reasoning_summary_part.added", "summary_index": 0}
        self._open = item
        yield {"type": "response.output_item.added", "output_index": len(self._items), "item": dict(item)}
        yield added | self._place("", {}) | {"type": added["type"], "part": dict(part)}
        self._open = item | {"content" if kind == "message" else "summary": [part]}

    def _close_item(self) -> Iterator[_Json]:
        item, self_open = self._open, self._open
        if item is None or self_open is None:
            return
        is_message = item["type"] == "message"
        part = item["content" if is_message else "summary"][0]
        part["text"] = "".join(self._pieces)
        self._pieces.clear()
        if is_message:
            place = {"content_index": 0}
            yield self._place("response.output_text.done", place | {"text": part["text"], "logprobs": []})
            yield self._place("response.content_part.done", place | {"part": part})
        else:
            place = {"summary_index": 0}
            yield self._place("response.reasoning_summary_text.done", place | {"text": part["text"]})
            yield self._place("response.reasoning_summary_part.done", place | {"part": part})
        yield from self._complete(item | {"status": "completed"})
        self._open = None

    def _render_call(self, call: OpenAICall) -> Iterator[_Json]:
        item = {
            "id": f"fc_{call.call_id}",
            "type": "function_call",
            "status": "in_progress",
            "call_id": call.call_id,
            "name": call.tool_name,
            "arguments": "",
        }
        place = {"output_index": len(self._items), "item_id": item["id"]}
        yield {"type": "response.output_item.added", "output_index": len(self._items), "item": item}
        yield {"type": "response.function_call_arguments.delta", **place, "delta": call.arguments}
        named = {"name": call.tool_name, "arguments": call.arguments}
        yield {"type": "response.function_call_arguments.done", **place, **named}
        yield from self._complete(item | {"status": "completed", "arguments": call.arguments})

    def _render_approval(self, approval: OpenAIApproval) -> Iterator[_Json]:
        item = {
            "id": approval.request_id,
            "type": "mcp_approval_request",
            "server_label": SERVER_LABEL,
            "name": approval.tool_name,
            "arguments": approval.arguments,
        }
        yield {"type": "response.output_item.added", "output_index": len(self._items), "item": item}
        yield from self._complete(item)

    def _complete(self, item: _Json) -> Iterator[_Json]:
        yield {"type": "response.output_item.done", "output_index": len(self._items), "item": item}
        self._items.append(item)

    def _place(self, kind: str, members: _Json) -> _Json:
        assert self._open is not None
        return {"type": kind, "item_id": self._open["id"], "output_index": len(self._items)} | members

    def _build_response(self, status: str, tokens: TokenTotals | None) -> _Json:
        failure = self._answer.failure
        error = build_failure_error(failure) if failure else None
        return {
            **self._head,
            "status": status,
            "error": {"code": "server_error", "message": error["message"]} if error else None,
            "incomplete_details": None,
            "instructions": self._instructions,
            "metadata": {},
            "output": [*self._items],
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": _build_usage(tokens) if tokens is not None else None,
        }

    def _encode(self, event: _Json) -> bytes:
        numbered = {**event, "sequence_number": self._count}
        self._count += 1
        if numbered["sequence_number"] <= self._after:
            return b""
        data = json.dumps(numbered, ensure_ascii=False, separators=(",", ":"))
        return f"event: {event['type']}\ndata: {data}\n\n".encode()


def _build_usage(tokens: TokenTotals) -> _Json:
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {"cached_tokens": tokens.cached},
        "output_tokens": tokens.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens.prompt + tokens.completion,
    }
