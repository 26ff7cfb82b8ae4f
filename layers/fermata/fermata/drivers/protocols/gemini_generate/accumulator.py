"""Fold the chunks of a generateContent stream into a response."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from fermata.domain.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.domain.surrogates_and_infinities import replace_lone_surrogates, to_storable_json
from fermata.drivers.protocols.finish_reasons import CONTENT_FILTER_REASON, describe_unusual_end, find_finish_reason
from fermata.drivers.protocols.json_fields import as_dict, as_dict_list, as_name, as_text
from fermata.drivers.protocols.token_usage import to_token_count
from fermata.drivers.protocols.tool_arguments import build_tool_call, find_arguments
from fermata.drivers.protocols.unique_call_ids import assign_unique_call_ids

_REFUSALS = {
    "RECITATION": "it would repeat a source word for word",
    "BLOCKLIST": "it would contain a word that is blocked",
    "PROHIBITED_CONTENT": "it would contain what the provider prohibits",
    "SPII": "it would contain sensitive data about a person",
}
"""What is shown for these reasons, which come without words."""


@dataclass
class _Part:
    """A part of the answer while it grows, with the signature it came with."""

    kind: Literal["thought", "text", "call"]
    texts: list[str] = field(default_factory=list)
    call: ToolCallBlock | None = None
    signature: str = ""

    @property
    def text(self) -> str:
        return replace_lone_surrogates("".join(self.texts))

    def build_blocks(self, provider: str, model: str) -> Iterator[Block]:
        """Yield the part, after its signature. A thought without a signature is not sent back, so it is not kept."""
        signature = {"thoughtSignature": replace_lone_surrogates(self.signature)} if self.signature else {}
        if self.kind == "thought":
            signature |= {"thought": self.text} if signature and self.text else {}
        if signature:
            yield ReasoningBlock(provider=provider, model=model, payload=signature)
        if self.kind == "text" and self.text.strip():
            yield TextBlock(text=self.text)
        if self.call is not None:
            yield self.call


class GeminiAccumulator:
    """The `ResponseAccumulator` of Google's generateContent."""

    def __init__(self, provider: str, label: str, model: str, request_body: bytes) -> None:
        self.is_complete = False
        self.stream_error: Any = None
        self._provider = provider
        self._label = label
        self._model = model
        self._request_body = request_body
        self._parts: list[_Part] = []
        self._known_calls: set[tuple[str, str, str]] = set()
        self._usage: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._block_reason = ""
        self._block_message = ""

    @property
    def may_end(self) -> bool:
        """The last chunk has the reason and the usage. Only a signature or the usage may follow in one more."""
        return bool(self._block_reason or self._finish_reason)

    @property
    def has_usage(self) -> bool:
        return bool(self._usage)

    @property
    def _finish_reason(self) -> str:
        return as_text(self._candidate.get("finishReason"))

    def add_event(self, event: dict[str, Any]) -> Iterator[StreamPart]:
        if error := event.get("error"):
            self.stream_error = error
            return
        if usage := event.get("usageMetadata"):
            self._add_usage(as_dict(usage))
        if feedback := as_dict(event.get("promptFeedback")):
            self._block_reason = as_text(feedback.get("blockReason")) or self._block_reason
            self._block_message = as_text(feedback.get("blockReasonMessage")) or self._block_message
        for candidate in as_dict_list(event.get("candidates"))[:1]:
            for part in self._add_candidate(candidate):
                if (delta := self._add_part(part)) is not None:
                    yield delta

    def _add_usage(self, usage: dict[str, Any]) -> None:
        for name, value in usage.items():
            if value is not None and (value != 0 or not self._usage.get(name)):
                self._usage[name] = value

    def _add_candidate(self, candidate: dict[str, Any]) -> list[dict[str, Any]]:
        """Keep what a candidate says, and return the parts of its content."""
        for name, value in candidate.items():
            if name != "content" and value is not None:
                self._candidate[name] = value
        parts = as_dict(candidate.get("content")).get("parts")
        return as_dict_list([parts] if isinstance(parts, dict) else parts)

    def _add_part(self, part: dict[str, Any]) -> TextDelta | ReasoningDelta | None:
        signature = as_text(part.get("thoughtSignature"))
        if isinstance(part.get("functionCall"), dict):
            self._add_call(part["functionCall"], signature)
            return None
        text = as_text(part.get("text"))
        if not text and not signature:
            return None
        kind: Literal["thought", "text"] = "thought" if part.get("thought") is True else "text"
        grown = self._get_growing_part(kind)
        grown.texts.append(text)
        grown.signature = signature
        if not text:
            return None
        return ReasoningDelta(text) if kind == "thought" else TextDelta(text)

    def _get_growing_part(self, kind: Literal["thought", "text"]) -> _Part:
        """Return the last part. A signature ends a part; the next text is one of its own."""
        if not self._parts or self._parts[-1].kind != kind or self._parts[-1].signature:
            self._parts.append(_Part(kind))
        return self._parts[-1]

    def _add_call(self, call: dict[str, Any], signature: str) -> None:
        block = build_tool_call(as_name(call.get("id")), as_name(call.get("name")), find_arguments(call))
        content = (block.tool_call_id, block.tool_name, json.dumps(block.input))
        if block.tool_call_id and content in self._known_calls:
            return
        self._known_calls.add(content)
        self._parts.append(_Part("call", call=block, signature=signature))

    def handle_done(self) -> None:
        """Ignore the marker, which only gateways send."""

    @property
    def tokens(self) -> TokenUsage:
        """Thinking is counted apart from the answer, and what the provider's own tools read apart from the prompt."""
        usage = self._usage
        counts = {name: to_token_count(value) for name, value in usage.items()}
        prompt = counts.get("promptTokenCount", 0) + counts.get("toolUsePromptTokenCount", 0)
        answer, thoughts = counts.get("candidatesTokenCount", 0), counts.get("thoughtsTokenCount", 0)
        is_thought_within = counts.get("totalTokenCount") == prompt + answer
        cached = counts.get("cachedContentTokenCount", 0)
        return TokenUsage(
            prompt=prompt,
            completion=answer if is_thought_within else answer + thoughts,
            cache_read=cached,
            cached_within=cached > 0,
            raw=to_storable_json(usage) or None,
        )

    def build_response(self) -> ModelResponse:
        blocks = [block for part in self._parts for block in part.build_blocks(self._provider, self._model)]
        has_calls = any(isinstance(block, ToolCallBlock) for block in blocks)
        stop = FinishReason.REFUSAL if self._block_reason else find_finish_reason(self._finish_reason)
        if stop is FinishReason.END and has_calls:
            stop = FinishReason.TOOL_CALLS
        return ModelResponse(
            blocks=assign_unique_call_ids(blocks, self._request_body),
            stop=stop,
            tokens=self.tokens,
            tokens_known=self.has_usage,
            warning=None if self._block_reason else describe_unusual_end(self._label, self._finish_reason),
            refusal=self._describe_refusal() if stop is FinishReason.REFUSAL else None,
        )

    def _describe_refusal(self) -> str:
        """Return the provider's words, or else which of its categories, or what its reason means."""
        words = self._block_message or as_text(self._candidate.get("finishMessage"))
        ratings = as_dict_list(self._candidate.get("safetyRatings"))
        blocked = [as_text(rating.get("category")) for rating in ratings if rating.get("blocked") is True]
        if categories := " and ".join(
            name.removeprefix("HARM_CATEGORY_").replace("_", " ").lower() for name in blocked
        ):
            categories = f"it touches the policy on {categories}"
        reason = self._block_reason or self._finish_reason
        return words or categories or _REFUSALS.get(reason, CONTENT_FILTER_REASON)
