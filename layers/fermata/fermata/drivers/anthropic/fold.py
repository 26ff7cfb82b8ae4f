"""Folds the events of one streamed answer into blocks. No I/O and no clock: the same events give the same pieces."""

from dataclasses import dataclass, field
from typing import Any

from fermata.drivers.arguments import arguments, whole, whole_value
from fermata.drivers.calling import named_apart
from fermata.drivers.counting import count
from fermata.drivers.members import name_of, object_of, place_of, text_of
from fermata.words.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock
from fermata.words.model import Piece, ReasoningDelta, Reply, Stop, TextDelta, Tokens

_STOPS = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "tool_use": Stop.TOOL_CALLS,
    "max_tokens": Stop.MAX_TOKENS,
    "model_context_window_exceeded": Stop.MAX_TOKENS,
    "refusal": Stop.REFUSAL,
    "pause_turn": Stop.PAUSE,
}


@dataclass
class _Part:
    """One content block while it grows: its start as it came, and the text of its deltas by the field they extend."""

    start: dict[str, Any]
    grown: dict[str, list[str]] = field(default_factory=dict)

    def grow(self, name: str, text: str) -> None:
        self.grown.setdefault(name, []).append(text)

    def text(self, name: str) -> str:
        return text_of(self.start.get(name)) + "".join(self.grown.get(name, ()))


class Draft:
    def __init__(self, model: str, request: bytes) -> None:
        self.counted = False
        self.complete = False
        self.failure: Any = None
        self._model = model
        self._request = request
        self._parts: dict[int, _Part] = {}
        self._usage: dict[str, Any] = {}
        self._stop = ""
        self._details: dict[str, Any] = {}

    @property
    def finished(self) -> bool:
        """The reason to stop comes with the last usage, when all blocks are there; only a farewell follows it."""
        return bool(self._stop)

    def take(self, event: dict[str, Any]) -> tuple[Piece, ...]:
        piece = self._piece(event)
        return () if piece is None else (piece,)

    def close(self) -> None:
        """This stream ends with an event of its own."""

    def _piece(self, event: dict[str, Any]) -> Piece | None:
        match event.get("type"):
            case "content_block_delta":
                return self._delta(place_of(event.get("index")), object_of(event.get("delta")))
            case "content_block_start":
                part = _Part(object_of(event.get("content_block")))
                self._parts[place_of(event.get("index"))] = part
                return TextDelta(text=text) if (text := part.text("text")) else None
            case "message_start":
                self.counted = True
                self._count(object_of(event.get("message")).get("usage"))
            case "message_delta":
                delta = object_of(event.get("delta"))
                self._stop = text_of(delta.get("stop_reason")) or self._stop
                self._details = object_of(delta.get("stop_details")) or self._details
                self._count(event.get("usage"))
            case "message_stop":
                self.complete = True
            case "error":
                self.failure = event.get("error") or {}
        return None

    @property
    def tokens(self) -> Tokens:
        """`prompt` is what was neither read from nor written to the cache; the breakdown of writes stays in `raw`."""
        told = self._usage.get
        by_age = sum(map(count, object_of(told("cache_creation")).values()))
        return Tokens(
            prompt=count(told("input_tokens")),
            completion=count(told("output_tokens")),
            cache_read=count(told("cache_read_input_tokens")),
            cache_creation=count(told("cache_creation_input_tokens", by_age)),
            raw=whole_value(self._usage) or None,
        )

    def reply(self) -> Reply:
        stop = _STOPS.get(self._stop, Stop.END)
        parts = [self._parts[index] for index in sorted(self._parts)]
        blocks = [block for part in parts if (block := self._block(part)) is not None]
        if stop is Stop.MAX_TOKENS and blocks and isinstance(blocks[-1], ToolCallBlock):
            # The limit fell inside this call. That its arguments can be read does not make them all of them.
            blocks[-1] = blocks[-1].model_copy(update={"malformed": True})
        if stop in (Stop.END, Stop.TOOL_CALLS):
            stop = Stop.TOOL_CALLS if any(isinstance(b, ToolCallBlock) for b in blocks) else Stop.END
        return Reply(
            blocks=named_apart(blocks, self._request),
            stop=stop,
            tokens=self.tokens,
            tokens_known="output_tokens" in self._usage,
            refusal=self._reason() if stop is Stop.REFUSAL else None,
        )

    def _reason(self) -> str | None:
        """Why the model declined: in a sentence where there is one, else by the policy's name."""
        category = text_of(self._details.get("category")).replace("_", " ")
        return text_of(self._details.get("explanation")) or (
            f"it touches the policy on {category}" if category else None
        )

    def _delta(self, index: int, delta: dict[str, Any]) -> Piece | None:
        part = self._parts.setdefault(index, _Part({"type": "text"}))
        match delta.get("type"):
            case "text_delta" if text := text_of(delta.get("text")):
                part.grow("text", text)
                return TextDelta(text=text)
            case "input_json_delta":
                part.grow("json", text_of(delta.get("partial_json")))
            case "thinking_delta" if text := text_of(delta.get("thinking")):
                part.grow("thinking", text)
                return ReasoningDelta(text=text)
            case "signature_delta" if signature := text_of(delta.get("signature")):
                part.grown["signature"] = [signature]
        return None

    def _count(self, usage: Any) -> None:
        """Every number is a running total, so the last one wins."""
        self._usage |= {name: value for name, value in object_of(usage).items() if value is not None}

    def _block(self, part: _Part) -> Block | None:
        match text_of(part.start.get("type")):
            case "text" | "":
                text = whole(part.text("text"))
                return TextBlock(text=text) if text.strip() else None
            case "tool_use":
                value, malformed = _arguments(part)
                return ToolCallBlock(
                    tool_call_id=name_of(part.start.get("id")),
                    tool_name=name_of(part.start.get("name")),
                    input=value,
                    malformed=malformed or None,
                )
            case _:
                # Thinking, and whatever else only the provider reads again: as it came, to go back as it came.
                return ReasoningBlock(provider="anthropic", model=self._model, payload=whole_value(_payload(part)))


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
    return arguments(text) if text.strip() else (whole_value(part.start.get("input")) or {}, False)
