"""Fold the chunks of a chat-completions stream into a response (decision 0073)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fermata.domain.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.drivers.error_mapping import CONTENT_FILTER_REASON
from fermata.drivers.protocols.chat_completions.request import EXTRA_CONTENT_FIELD, REASONING_DETAILS_FIELD
from fermata.drivers.protocols.json_fields import as_dict, as_dict_list, as_name, as_text
from fermata.drivers.protocols.token_usage import tokens_from_usage, truncation_warning
from fermata.drivers.protocols.tool_arguments import parse_tool_arguments, replace_lone_surrogates, to_storable_json
from fermata.drivers.protocols.unique_call_ids import assign_unique_call_ids

_FINISH_REASONS = {
    "length": FinishReason.MAX_TOKENS,
    "max_tokens": FinishReason.MAX_TOKENS,
    "model_length": FinishReason.MAX_TOKENS,
    "content_filter": FinishReason.REFUSAL,
    "refusal": FinishReason.REFUSAL,
}


@dataclass
class _Call:
    """One tool call while it grows."""

    index: int
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra_content: Any = None

    def is_continued_by(self, call_id: str, name: str) -> bool:
        """Return whether a fragment with this id and name belongs to the call, or begins another one."""
        if call_id and self.id:
            return call_id == self.id
        if not name or not self.name or call_id or self.id:
            return True
        return name == self.name and not "".join(self.arguments).strip()


class ChatAccumulator:
    """The `ResponseAccumulator` of chat completions.

    Args:
        expected_tokens: An estimate of the prompt, to detect that the server has truncated it.
    """

    def __init__(self, provider: str, label: str, model: str, request_body: bytes, expected_tokens: int) -> None:
        self.is_complete = False
        self.stream_error: Any = None
        self._provider = provider
        self._label = label
        self._model = model
        self._request_body = request_body
        self._expected_tokens = expected_tokens
        self._text: list[str] = []
        self._reasoning: dict[str, list[Any]] = {}
        self._calls: list[_Call] = []
        self._calls_by_index: dict[int, _Call] = {}
        """The newest call of each index."""
        self._finish_reason = ""
        self._refusal: list[str] = []
        self._usage: dict[str, Any] = {}

    @property
    def may_end(self) -> bool:
        """After the finish reason usage may follow, and some servers forget the `[DONE]` marker."""
        return bool(self._finish_reason)

    @property
    def has_usage(self) -> bool:
        return bool(self._usage)

    def add_event(self, event: dict[str, Any]) -> Iterator[StreamPart]:
        if error := event.get("error"):
            self.stream_error = error
            return
        if usage := as_dict(event.get("usage")):
            self._usage |= {name: to_storable_json(value) for name, value in usage.items() if value is not None}
        for choice in as_dict_list(event.get("choices")):
            if not choice.get("index"):
                yield from self._fold_choice(choice)

    def handle_done(self) -> None:
        self.is_complete = True

    @property
    def tokens(self) -> TokenUsage:
        usage = self._usage
        details = usage.get("prompt_tokens_details") or {
            "cached_tokens": usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens")
        }
        return tokens_from_usage(usage, usage.get("prompt_tokens"), usage.get("completion_tokens"), details)

    def build_response(self) -> ModelResponse:
        ordered = sorted(self._calls, key=lambda call: call.index)
        calls = [block for call in ordered for block in self._build_call_blocks(call)]
        stop = FinishReason.REFUSAL if self._refusal else _FINISH_REASONS.get(self._finish_reason, FinishReason.END)
        if stop is FinishReason.MAX_TOKENS and calls:
            # The limit fell inside the last call, so its arguments may be incomplete even if they are readable.
            calls[-1] = calls[-1].model_copy(update={"malformed": True})
        if stop is FinishReason.END and calls:
            stop = FinishReason.TOOL_CALLS
        text = replace_lone_surrogates("".join(self._text))
        texts: list[Block] = [TextBlock(text=text)] if text.strip() else []
        return ModelResponse(
            blocks=assign_unique_call_ids([*self._build_reasoning(), *texts, *calls], self._request_body),
            stop=stop,
            tokens=self.tokens,
            tokens_known="completion_tokens" in self._usage,
            warning=truncation_warning(self._label, self._expected_tokens, self.tokens),
            refusal=self._get_refusal_reason() if stop is FinishReason.REFUSAL else None,
        )

    def _get_refusal_reason(self) -> str | None:
        """Return the model's own words, or that a content filter stopped it."""
        is_filtered = self._finish_reason == "content_filter"
        return "".join(self._refusal).strip() or (CONTENT_FILTER_REASON if is_filtered else None)

    def _fold_choice(self, choice: Mapping[str, Any]) -> Iterator[StreamPart]:
        delta = as_dict(choice.get("delta")) or as_dict(choice.get("message"))
        yield from self._fold_reasoning(delta)
        yield from self._fold_content(delta)
        for fragment in as_dict_list(delta.get("tool_calls")):
            self._fold_call(fragment)
        self._finish_reason = as_text(choice.get("finish_reason")) or self._finish_reason
        if self._finish_reason == "error":
            self.stream_error = {"message": "the answer was interrupted", "type": "server_error"}

    def _fold_content(self, delta: Mapping[str, Any]) -> Iterator[StreamPart]:
        content = delta.get("content")
        pieces = [*content] if isinstance(content, list) else [content]
        if refusal := as_text(delta.get("refusal")):
            self._refusal.append(refusal)
            pieces.append(refusal)
        for piece in pieces:
            if text := as_text(piece.get("text") if isinstance(piece, dict) else piece):
                self._text.append(text)
                yield TextDelta(text=text)
            elif isinstance(piece, dict) and isinstance(piece.get("thinking"), list):
                # Mistral sends reasoning as a list of texts inside the content.
                texts = (as_text(member.get("text")) for member in as_dict_list(piece["thinking"]))
                yield from self._fold_reasoning({"reasoning_content": "".join(texts)})

    def _fold_reasoning(self, delta: Mapping[str, Any]) -> Iterator[StreamPart]:
        """Servers may send the same reasoning in several fields: all are stored, one is shown."""
        shown = ""
        for name in ("reasoning_content", "reasoning"):
            if text := as_text(delta.get(name)):
                self._reasoning.setdefault(name, []).append(text)
                shown = shown or text
        if isinstance(details := delta.get(REASONING_DETAILS_FIELD), list):
            self._reasoning.setdefault(REASONING_DETAILS_FIELD, []).extend(details)
        if shown:
            yield ReasoningDelta(text=shown)

    def _fold_call(self, fragment: Mapping[str, Any]) -> None:
        function = as_dict(fragment.get("function"))
        call_id, name = as_name(fragment.get("id")), as_name(function.get("name"))
        call = self._find_call(fragment.get("index"), call_id, name)
        call.id = call.id or call_id
        call.name = call.name or name
        call.extra_content = fragment.get(EXTRA_CONTENT_FIELD) or call.extra_content
        arguments = function.get("arguments")
        if isinstance(arguments, dict):
            call.arguments = [json.dumps(arguments)]
        elif isinstance(arguments, str):
            call.arguments.append(arguments)

    def _find_call(self, index: Any, call_id: str, name: str) -> _Call:
        """Return the call that a fragment belongs to.

        Servers without indexes, or with the same index for all calls, begin a new call with its id or name.
        """
        latest = self._calls[-1] if self._calls else None
        candidate = self._calls_by_index.get(index) if isinstance(index, int) else latest
        if candidate is not None and candidate.is_continued_by(call_id, name):
            return candidate
        new_index = index if isinstance(index, int) else latest.index if latest else 0
        call = _Call(new_index)
        self._calls.append(call)
        self._calls_by_index[new_index] = call
        return call

    def _build_call_blocks(self, call: _Call) -> list[Block]:
        if not (call.id or call.name or call.arguments):
            return []
        arguments, is_malformed = parse_tool_arguments("".join(call.arguments))
        block = ToolCallBlock(
            tool_call_id=call.id, tool_name=call.name, input=arguments, malformed=is_malformed or None
        )
        if not call.extra_content:
            return [block]
        return [self._build_reasoning_block({EXTRA_CONTENT_FIELD: call.extra_content}), block]

    def _build_reasoning(self) -> list[Block]:
        payload = {
            name: pieces if name == REASONING_DETAILS_FIELD else "".join(pieces)
            for name, pieces in self._reasoning.items()
        }
        return [self._build_reasoning_block(payload)] if payload else []

    def _build_reasoning_block(self, payload: dict[str, Any]) -> ReasoningBlock:
        """Only the provider reads these blocks again."""
        return ReasoningBlock(provider=self._provider, model=self._model, payload=to_storable_json(payload))
