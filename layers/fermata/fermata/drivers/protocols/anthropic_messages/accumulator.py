"""Fold the events of a Messages stream into a response."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fermata.domain.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.domain.surrogates_and_infinities import replace_lone_surrogates, to_storable_json
from fermata.drivers.protocols.finish_reasons import describe_unusual_end, find_finish_reason
from fermata.drivers.protocols.json_fields import as_dict, as_dict_list, as_index, as_name, as_text, as_written_text
from fermata.drivers.protocols.token_usage import to_token_count
from fermata.drivers.protocols.tool_arguments import build_call_from_fragments, build_tool_call, to_argument_text
from fermata.drivers.protocols.unique_call_ids import assign_unique_call_ids

_FINISH_REASONS = {
    "end_turn": FinishReason.END,
    "stop_sequence": FinishReason.END,
    "tool_use": FinishReason.TOOL_CALLS,
    "max_tokens": FinishReason.MAX_TOKENS,
    "model_context_window_exceeded": FinishReason.MAX_TOKENS,
    "refusal": FinishReason.REFUSAL,
    "pause_turn": FinishReason.PAUSE,
}
_DELTA_TYPES = {
    "text": "text_delta",
    "partial_json": "input_json_delta",
    "thinking": "thinking_delta",
    "signature": "signature_delta",
}
"""The types of deltas by their members: some gateways leave the type out."""
_DOCUMENTED_ENDS = _FINISH_REASONS.keys() - {"tool_use"}


@dataclass
class _ContentBlock:
    """One content block while it grows: how it started, and the deltas of each of its fields."""

    start: dict[str, Any]
    deltas: dict[str, list[str]] = field(default_factory=dict)

    def append(self, name: str, text: str) -> None:
        self.deltas.setdefault(name, []).append(text)

    def get_text(self, name: str) -> str:
        return as_written_text(self.start.get(name)) + "".join(self.deltas.get(name, ()))

    def build_call(self) -> ToolCallBlock:
        fragments = [fragment for fragment in self.deltas.get("json", ()) if fragment]
        call_id, name = as_name(self.start.get("id")), as_name(self.start.get("name"))
        announced = self.start.get("input") or None
        if "".join(fragments).strip() in ("", "{}"):  # an empty object does not replace what the start has
            return build_tool_call(call_id, name, announced)
        return build_call_from_fragments(call_id, name, fragments)

    def build_payload(self) -> dict[str, Any]:
        """Return the block with its deltas; a delta of a field that the block did not start with is ignored."""
        payload = self.start | {name: self.get_text(name) for name in self.deltas.keys() & self.start.keys()}
        if "signature" in self.deltas:
            payload["signature"] = self.deltas["signature"][0]
        if "json" in self.deltas and "input" in self.start:
            payload["input"] = self.build_call().input
        return payload


def _iter_message_events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of which a stream of this message would consist."""
    yield {"type": "message_start", "message": message}
    for index, block in enumerate(as_dict_list(message.get("content"))):
        yield {"type": "content_block_start", "index": index, "content_block": block}
    yield {"type": "message_delta", "delta": message}
    yield {"type": "message_stop"}


class MessagesAccumulator:
    """The `ResponseAccumulator` of Anthropic's Messages API."""

    def __init__(self, model: str, request_body: bytes) -> None:
        self.has_usage = False
        self.is_complete = False
        self.stream_error: Any = None
        self._model = model
        self._request_body = request_body
        self._blocks: list[tuple[int, _ContentBlock]] = []
        self._newest_by_index: dict[int, _ContentBlock] = {}
        self._usage: dict[str, Any] = {}
        self._message_id = ""
        self._stop_reason = ""
        self._stop_details: dict[str, Any] = {}

    @property
    def may_end(self) -> bool:
        """The stop reason comes after all blocks, with the last usage; only `message_stop` follows."""
        return bool(self._stop_reason)

    def add_event(self, event: dict[str, Any]) -> tuple[StreamPart, ...]:
        if event.get("type") == "message":  # the whole answer at once
            return tuple(filter(None, map(self._fold_event, _iter_message_events(event))))
        part = self._fold_event(event)
        return () if part is None else (part,)

    def handle_done(self) -> None:
        """Ignore the marker: this stream ends with an event of its own."""

    def _fold_event(self, event: dict[str, Any]) -> StreamPart | None:
        match event.get("type"):
            case "content_block_delta":
                return self._fold_delta(as_index(event.get("index")), as_dict(event.get("delta")))
            case "content_block_start":
                block = self._start_block(as_index(event.get("index")), as_dict(event.get("content_block")))
                thinking, text = block.get_text("thinking"), block.get_text("text")
                return ReasoningDelta(text=thinking) if thinking else TextDelta(text=text) if text else None
            case "message_start":
                self.has_usage = True
                return self._start_message(as_dict(event.get("message")))
            case "message_delta":
                delta = as_dict(event.get("delta"))
                self._stop_reason = as_text(delta.get("stop_reason")) or self._stop_reason
                self._stop_details = as_dict(delta.get("stop_details")) or self._stop_details
                self._update_usage(event.get("usage"))
            case "message_stop":
                self.is_complete = True
            case "error":
                self.stream_error = event.get("error") or {}
        return None

    def _start_message(self, message: dict[str, Any]) -> StreamPart | None:
        """Begin the message. A gateway may begin another one, from another server: no call of the first is run then."""
        self._update_usage(message.get("usage"))
        message_id = as_text(message.get("id"))
        is_other = bool(self._message_id and message_id) and message_id != self._message_id
        self._message_id = message_id or self._message_id
        if not is_other or not self._blocks:
            return None
        was_shown = any(block.get_text("text") for _, block in self._blocks)
        self._blocks.clear()
        self._newest_by_index.clear()
        return TextDelta(text="\n\n") if was_shown else None

    @property
    def tokens(self) -> TokenUsage:
        """Cached tokens are counted apart from the prompt (decision 0074); `raw` keeps the breakdown of writes."""
        usage = self._usage
        writes_by_lifetime = sum(map(to_token_count, as_dict(usage.get("cache_creation")).values()))
        return TokenUsage(
            prompt=to_token_count(usage.get("input_tokens")),
            completion=to_token_count(usage.get("output_tokens")),
            cache_read=to_token_count(usage.get("cache_read_input_tokens")),
            cache_creation=to_token_count(usage.get("cache_creation_input_tokens", writes_by_lifetime)),
            raw=to_storable_json(usage) or None,
        )

    def build_response(self) -> ModelResponse:
        stop = _FINISH_REASONS.get(self._stop_reason) or find_finish_reason(self._stop_reason)
        blocks = self._build_blocks()
        if stop is FinishReason.MAX_TOKENS and blocks and isinstance(blocks[-1], ToolCallBlock):
            # The limit fell inside this call, so its arguments may be incomplete even if they are readable.
            blocks[-1] = blocks[-1].model_copy(update={"malformed": True})
        has_calls = any(isinstance(block, ToolCallBlock) for block in blocks)
        if stop in (FinishReason.END, FinishReason.TOOL_CALLS):
            stop = FinishReason.TOOL_CALLS if has_calls else FinishReason.END
        return ModelResponse(
            blocks=assign_unique_call_ids(blocks, self._request_body),
            stop=stop,
            tokens=self.tokens,
            tokens_known="output_tokens" in self._usage,
            warning=None
            if self._stop_reason in _DOCUMENTED_ENDS
            else describe_unusual_end("Anthropic", self._stop_reason, has_calls=has_calls),
            refusal=self._get_refusal_reason() if stop is FinishReason.REFUSAL else None,
        )

    def _build_blocks(self) -> list[Block]:
        """Build the blocks in their order. A call that a gateway has sent twice under its index is one call."""
        blocks: list[Block] = []
        last_call: tuple[int, Block] | None = None
        for index, content in sorted(self._blocks, key=lambda entry: entry[0]):
            block = self._build_block(content)
            is_repeated = isinstance(block, ToolCallBlock) and block.tool_call_id and (index, block) == last_call
            if block is not None and not is_repeated:
                blocks.append(block)
                last_call = (index, block)
        return blocks

    def _get_refusal_reason(self) -> str | None:
        """Return the provider's explanation, or else the name of the policy."""
        category = as_text(self._stop_details.get("category")).replace("_", " ")
        explanation = as_text(self._stop_details.get("explanation"))
        return explanation or (f"it touches the policy on {category}" if category else None)

    def _start_block(self, index: int, start: dict[str, Any]) -> _ContentBlock:
        """Begin a block; some gateways give all of them the same index."""
        block = _ContentBlock(start)
        self._blocks.append((index, block))
        self._newest_by_index[index] = block
        return block

    def _fold_delta(self, index: int, delta: dict[str, Any]) -> StreamPart | None:
        block = self._newest_by_index.get(index) or self._start_block(index, {"type": "text"})
        match delta.get("type") or next((kind for name, kind in _DELTA_TYPES.items() if name in delta), ""):
            case "text_delta" if text := as_written_text(delta.get("text")):
                block.append("text", text)
                return TextDelta(text=text)
            case "input_json_delta":
                block.append("json", to_argument_text(delta.get("partial_json")))
            case "thinking_delta" if text := as_written_text(delta.get("thinking")):
                block.append("thinking", text)
                return ReasoningDelta(text=text)
            case "signature_delta" if signature := as_text(delta.get("signature")):
                block.deltas["signature"] = [signature]
        return None

    def _update_usage(self, usage: Any) -> None:
        """Take the newest numbers: each is a running total. Some gateways end with 0 for what they counted before."""
        self._usage |= {
            name: value
            for name, value in as_dict(usage).items()
            if value is not None and (value != 0 or not self._usage.get(name))
        }

    def _build_block(self, block: _ContentBlock) -> Block | None:
        match as_text(block.start.get("type")):
            case "text" | "":
                text = replace_lone_surrogates(block.get_text("text"))
                return TextBlock(text=text) if text.strip() else None
            case "tool_use":
                return block.build_call()
            case _:
                # Thinking, and any block that only the provider reads: stored as it came, to be sent back unchanged.
                payload = to_storable_json(block.build_payload())
                return ReasoningBlock(provider="anthropic", model=self._model, payload=payload)
