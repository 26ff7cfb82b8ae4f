"""Folds the events of one streamed answer into blocks. No I/O and no clock: the same events give the same pieces."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fermata.drivers.arguments import arguments, whole
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
        return str(self.start.get(name) or "") + "".join(self.grown.get(name, ()))


class Draft:
    """An answer in the making. Members that are null or unknown never stop it."""

    def __init__(self, model: str) -> None:
        self.counted = False
        self.complete = False
        self.finished = False
        self.failure: Mapping[str, Any] | None = None
        self._model = model
        self._parts: dict[int, _Part] = {}
        self._usage: dict[str, Any] = {}
        self._stop: str | None = None

    def take(self, event: dict[str, Any]) -> tuple[Piece, ...]:
        piece = self._piece(event)
        return () if piece is None else (piece,)

    def close(self) -> None:
        """This stream ends with an event of its own."""

    def _piece(self, event: dict[str, Any]) -> Piece | None:
        match event.get("type"):
            case "content_block_delta":
                return self._delta(event.get("index") or 0, event.get("delta") or {})
            case "content_block_start":
                part = _Part(event.get("content_block") or {})
                self._parts[event.get("index") or 0] = part
                return TextDelta(text=whole(part.text("text"))) if part.start.get("text") else None
            case "message_start":
                self.counted = True
                self._count((event.get("message") or {}).get("usage"))
            case "message_delta":
                self._stop = (event.get("delta") or {}).get("stop_reason") or self._stop
                self._count(event.get("usage"))
            case "message_stop":
                self.complete = True
            case "error":
                self.failure = event.get("error") or {}
        return None

    @property
    def tokens(self) -> Tokens:
        """`prompt` is what was neither read from nor written to the cache; the breakdown of writes stays in `raw`."""
        count = self._usage.get
        by_age = count("cache_creation") or {}
        return Tokens(
            prompt=count("input_tokens", 0),
            completion=count("output_tokens", 0),
            cache_read=count("cache_read_input_tokens", 0),
            cache_creation=count("cache_creation_input_tokens", sum(v for v in by_age.values() if isinstance(v, int))),
            raw=self._usage or None,
        )

    def reply(self) -> Reply:
        stop = _STOPS.get(self._stop or "", Stop.END)
        parts = [self._parts[index] for index in sorted(self._parts)]
        blocks = [block for part in parts if (block := self._block(part)) is not None]
        if stop is Stop.MAX_TOKENS and blocks and isinstance(blocks[-1], ToolCallBlock):
            # The limit fell inside this call. That its arguments can be read does not make them all of them.
            blocks[-1] = blocks[-1].model_copy(update={"malformed": True})
        if stop in (Stop.END, Stop.TOOL_CALLS):
            stop = Stop.TOOL_CALLS if any(isinstance(b, ToolCallBlock) for b in blocks) else Stop.END
        return Reply(blocks=tuple(blocks), stop=stop, tokens=self.tokens, tokens_known="output_tokens" in self._usage)

    def _delta(self, index: int, delta: dict[str, Any]) -> Piece | None:
        part = self._parts.setdefault(index, _Part({"type": "text"}))
        match delta.get("type"):
            case "text_delta" if text := delta.get("text"):
                part.grow("text", text)
                return TextDelta(text=whole(text))
            case "input_json_delta":
                part.grow("json", delta.get("partial_json") or "")
            case "thinking_delta" if text := delta.get("thinking"):
                part.grow("thinking", text)
                return ReasoningDelta(text=whole(text))
            case "signature_delta" if signature := delta.get("signature"):
                part.grown["signature"] = [signature]
        return None

    def _count(self, usage: dict[str, Any] | None) -> None:
        """Every number is a running total, so the last one wins."""
        self._usage |= {name: value for name, value in (usage or {}).items() if value is not None}

    def _block(self, part: _Part) -> Block | None:
        match part.start.get("type"):
            case "text":
                text = whole(part.text("text"))
                return TextBlock(text=text) if text.strip() else None
            case "tool_use":
                value, malformed = _arguments(part)
                return ToolCallBlock(
                    tool_call_id=str(part.start.get("id") or ""),
                    tool_name=str(part.start.get("name") or ""),
                    input=value,
                    malformed=malformed or None,
                )
            case _:
                # Thinking, and whatever else only the provider reads again: as it came, to go back as it came.
                return ReasoningBlock(provider="anthropic", model=self._model, payload=_payload(part))


def _payload(part: _Part) -> dict[str, Any]:
    payload = part.start | {name: part.text(name) for name in part.grown if name not in ("json", "signature")}
    if "signature" in part.grown:
        payload["signature"] = part.grown["signature"][0]
    if "json" in part.grown:
        payload["input"] = _arguments(part)[0]
    return payload


def _arguments(part: _Part) -> tuple[Any, bool]:
    text = "".join(part.grown.get("json", ()))
    return arguments(text) if text.strip() else (part.start.get("input") or {}, False)
