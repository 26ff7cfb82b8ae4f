"""Folds the events of one streamed answer into blocks. No I/O and no clock: the same events give the same pieces."""

from dataclasses import dataclass, field
from typing import Any

from fermata.domain.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.drivers.protocols.json_fields import as_dict, as_index, as_name, as_text
from fermata.drivers.protocols.token_usage import to_token_count
from fermata.drivers.protocols.tool_arguments import parse_tool_arguments, replace_lone_surrogates, to_storable_json
from fermata.drivers.protocols.tool_call_ids import assign_unique_call_ids

_STOPS = {
    "end_turn": FinishReason.END,
    "stop_sequence": FinishReason.END,
    "tool_use": FinishReason.TOOL_CALLS,
    "max_tokens": FinishReason.MAX_TOKENS,
    "model_context_window_exceeded": FinishReason.MAX_TOKENS,
    "refusal": FinishReason.REFUSAL,
    "pause_turn": FinishReason.PAUSE,
}


@dataclass
class _Part:
    """One content block while it grows: its start as it came, and the text of its deltas by the field they extend."""

    start: dict[str, Any]
    grown: dict[str, list[str]] = field(default_factory=dict)

    def grow(self, name: str, text: str) -> None:
        self.grown.setdefault(name, []).append(text)

    def text(self, name: str) -> str:
        return as_text(self.start.get(name)) + "".join(self.grown.get(name, ()))


class MessagesAccumulator:
    def __init__(self, model: str, request: bytes) -> None:
        self.has_usage = False
        self.is_complete = False
        self.stream_error: Any = None
        self._model = model
        self._request = request
        self._parts: dict[int, _Part] = {}
        self._usage: dict[str, Any] = {}
        self._stop = ""
        self._details: dict[str, Any] = {}

    @property
    def may_end(self) -> bool:
        """The reason to stop comes with the last usage, when all blocks are there; only a farewell follows it."""
        return bool(self._stop)

    def add_event(self, event: dict[str, Any]) -> tuple[StreamPart, ...]:
        piece = self._piece(event)
        return () if piece is None else (piece,)

    def handle_done(self) -> None:
        """This stream ends with an event of its own."""

    def _piece(self, event: dict[str, Any]) -> StreamPart | None:
        match event.get("type"):
            case "content_block_delta":
                return self._delta(as_index(event.get("index")), as_dict(event.get("delta")))
            case "content_block_start":
                part = _Part(as_dict(event.get("content_block")))
                self._parts[as_index(event.get("index"))] = part
                return TextDelta(text=text) if (text := part.text("text")) else None
            case "message_start":
                self.has_usage = True
                self._count(as_dict(event.get("message")).get("usage"))
            case "message_delta":
                delta = as_dict(event.get("delta"))
                self._stop = as_text(delta.get("stop_reason")) or self._stop
                self._details = as_dict(delta.get("stop_details")) or self._details
                self._count(event.get("usage"))
            case "message_stop":
                self.is_complete = True
            case "error":
                self.stream_error = event.get("error") or {}
        return None

    @property
    def tokens(self) -> TokenUsage:
        """`prompt` is what was neither read from nor written to the cache; the breakdown of writes stays in `raw`."""
        told = self._usage.get
        by_age = sum(map(to_token_count, as_dict(told("cache_creation")).values()))
        return TokenUsage(
            prompt=to_token_count(told("input_tokens")),
            completion=to_token_count(told("output_tokens")),
            cache_read=to_token_count(told("cache_read_input_tokens")),
            cache_creation=to_token_count(told("cache_creation_input_tokens", by_age)),
            raw=to_storable_json(self._usage) or None,
        )

    def build_response(self) -> ModelResponse:
        stop = _STOPS.get(self._stop, FinishReason.END)
        parts = [self._parts[index] for index in sorted(self._parts)]
        blocks = [block for part in parts if (block := self._block(part)) is not None]
        if stop is FinishReason.MAX_TOKENS and blocks and isinstance(blocks[-1], ToolCallBlock):
            # The limit fell inside this call. That its arguments can be read does not make them all of them.
            blocks[-1] = blocks[-1].model_copy(update={"malformed": True})
        if stop in (FinishReason.END, FinishReason.TOOL_CALLS):
            stop = FinishReason.TOOL_CALLS if any(isinstance(b, ToolCallBlock) for b in blocks) else FinishReason.END
        return ModelResponse(
            blocks=assign_unique_call_ids(blocks, self._request),
            stop=stop,
            tokens=self.tokens,
            tokens_known="output_tokens" in self._usage,
            refusal=self._reason() if stop is FinishReason.REFUSAL else None,
        )

    def _reason(self) -> str | None:
        """Why the model declined: in a sentence where there is one, else by the policy's name."""
        category = as_text(self._details.get("category")).replace("_", " ")
        return as_text(self._details.get("explanation")) or (
            f"it touches the policy on {category}" if category else None
        )

    def _delta(self, index: int, delta: dict[str, Any]) -> StreamPart | None:
        part = self._parts.setdefault(index, _Part({"type": "text"}))
        match delta.get("type"):
            case "text_delta" if text := as_text(delta.get("text")):
                part.grow("text", text)
                return TextDelta(text=text)
            case "input_json_delta":
                part.grow("json", as_text(delta.get("partial_json")))
            case "thinking_delta" if text := as_text(delta.get("thinking")):
                part.grow("thinking", text)
                return ReasoningDelta(text=text)
            case "signature_delta" if signature := as_text(delta.get("signature")):
                part.grown["signature"] = [signature]
        return None

    def _count(self, usage: Any) -> None:
        """Every number is a running total, so the last one wins."""
        self._usage |= {name: value for name, value in as_dict(usage).items() if value is not None}

    def _block(self, part: _Part) -> Block | None:
        match as_text(part.start.get("type")):
            case "text" | "":
                text = replace_lone_surrogates(part.text("text"))
                return TextBlock(text=text) if text.strip() else None
            case "tool_use":
                value, malformed = _arguments(part)
                return ToolCallBlock(
                    tool_call_id=as_name(part.start.get("id")),
                    tool_name=as_name(part.start.get("name")),
                    input=value,
                    malformed=malformed or None,
                )
            case _:
                # Thinking, and whatever else only the provider reads again: as it came, to go back as it came.
                return ReasoningBlock(provider="anthropic", model=self._model, payload=to_storable_json(_payload(part)))


def _payload(part: _Part) -> dict[str, Any]:
    """Only members that the block began with grow; a delta that went astray is not let into it."""
    payload = part.start | {name: part.text(name) for name in part.grown.keys() & part.start.keys()}
    if "signature" in part.grown:
        payload["signature"] = part.grown["signature"][0]
    if "json" in part.grown and "input" in part.start:
        payload["input"] = _arguments(part)[0]
    return payload


def _arguments(part: _Part) -> tuple[Any, bool]:
    text = "".join(part.grown.get("json", ()))
    return parse_tool_arguments(text) if text.strip() else (to_storable_json(part.start.get("input")) or {}, False)
