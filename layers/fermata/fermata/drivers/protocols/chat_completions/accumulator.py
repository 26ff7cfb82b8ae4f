"""Fold the chunks of a chat-completions stream into a response (decision 0073)."""

from collections.abc import Iterator, Mapping
from typing import Any

from fermata.domain.blocks import Block, ReasoningBlock, TextBlock
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.domain.surrogates_and_infinities import replace_lone_surrogates, to_storable_json
from fermata.drivers.protocols.chat_completions.call_fragments import CallCollector, CollectedCall, read_index
from fermata.drivers.protocols.chat_completions.merge_reasoning_details import merge_reasoning_details
from fermata.drivers.protocols.chat_completions.nonstandard_fields import (
    iter_usages,
    list_choices,
    read_message,
    read_thinking_part,
)
from fermata.drivers.protocols.chat_completions.request import (
    EXTRA_CONTENT_FIELD,
    REASONING_DETAILS_FIELD,
    REASONING_FIELDS,
    REASONING_TEXT_FIELDS,
)
from fermata.drivers.protocols.cumulative_text import CumulativeText
from fermata.drivers.protocols.finish_reasons import CONTENT_FILTER_REASON, describe_unusual_end, find_finish_reason
from fermata.drivers.protocols.json_fields import as_dict, as_dict_list, as_text, as_written_text
from fermata.drivers.protocols.token_usage import tokens_from_usage, truncation_warning
from fermata.drivers.protocols.unique_call_ids import assign_unique_call_ids

_PLAIN_MEMBERS = frozenset({"role", "content"})
"""Of a delta that brings text and nothing else."""
_OTHER_MEMBERS = frozenset({"message", "error"})
"""Of a choice that brings more than its delta."""


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
        self._text_deltas = CumulativeText()
        self._reasoning_deltas: dict[str, CumulativeText] = {}
        self._reasoning: dict[str, list[Any]] = {}
        self._calls = CallCollector(request_body)
        self._choice_index: int | None = None
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
        choices = list_choices(event)
        for usage in iter_usages(event, choices):
            self._usage |= {name: to_storable_json(value) for name, value in usage.items() if value is not None}
        for choice in choices:
            if not self._is_first_choice(choice):
                continue
            if text := self._get_plain_text(choice):
                yield from self._fold_text(text)
            else:
                yield from self._fold_choice(choice)

    def _is_first_choice(self, choice: Mapping[str, Any]) -> bool:
        """Return whether the choice is the one that came first: one is asked for, and a few servers count from 1."""
        index = read_index(choice.get("index"))
        if self._choice_index is None:
            self._choice_index = index
        return index is None or index == self._choice_index

    def handle_done(self) -> None:
        self.is_complete = True

    @property
    def tokens(self) -> TokenUsage:
        usage = self._usage
        details = (
            usage.get("prompt_tokens_details")
            or usage.get("input_tokens_details")
            or {"cached_tokens": usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens")}
        )
        prompt = usage.get("prompt_tokens") or usage.get("input_tokens")
        return tokens_from_usage(usage, prompt, usage.get("completion_tokens") or usage.get("output_tokens"), details)

    def build_response(self) -> ModelResponse:
        stop = FinishReason.REFUSAL if self._refusal else find_finish_reason(self._finish_reason)
        collected = self._calls.get_calls()
        # The limit fell inside the last call, so its arguments may be incomplete even if they are readable.
        cut_off = collected[-1] if collected and stop is FinishReason.MAX_TOKENS else None
        calls = [block for call in collected for block in self._build_call_blocks(call, is_cut_off=call is cut_off)]
        if stop is FinishReason.END and calls:
            stop = FinishReason.TOOL_CALLS
        text = replace_lone_surrogates("".join(self._text))
        texts: list[Block] = [TextBlock(text=text)] if text.strip() else []
        unusual_end = describe_unusual_end(self._label, self._finish_reason, has_calls=bool(calls))
        cut_prompt = truncation_warning(self._label, self._expected_tokens, self.tokens)
        return ModelResponse(
            blocks=assign_unique_call_ids([*self._build_reasoning(), *texts, *calls], self._request_body),
            stop=stop,
            tokens=self.tokens,
            tokens_known=not self._usage.keys().isdisjoint(("completion_tokens", "output_tokens")),
            warning=unusual_end or cut_prompt,
            is_prompt_cut=not unusual_end and bool(cut_prompt),
            refusal=self._get_refusal_reason() if stop is FinishReason.REFUSAL else None,
        )

    def _get_refusal_reason(self) -> str | None:
        """Return the model's own words, or that a content filter stopped it."""
        is_filtered = self._finish_reason != "refusal" and not self._refusal
        return "".join(self._refusal).strip() or (CONTENT_FILTER_REASON if is_filtered else None)

    def _get_plain_text(self, choice: Mapping[str, Any]) -> str:
        """Return the text of a choice that has nothing else, as nearly all have; else nothing."""
        delta = choice.get("delta")
        if not isinstance(delta, dict) or not delta.keys() <= _PLAIN_MEMBERS or choice.keys() & _OTHER_MEMBERS:
            return ""
        is_ending = choice.get("finish_reason") or self._finish_reason or self._calls.has_calls
        return "" if is_ending else as_text(delta.get("content"))

    def _fold_choice(self, choice: Mapping[str, Any]) -> Iterator[StreamPart]:
        delta, message = read_message(choice.get("delta")), read_message(choice.get("message"))
        if not delta and not message:
            delta = {"content": choice.get("text")}  # as servers of the protocol for completions send it
        if not delta and message:
            yield from self._flush_text()
            delta = self._find_missing(message)
        elif choice.get("finish_reason") and self._repeats_text(delta.get("content")):
            delta = {**delta, "content": None}
        if any(map(delta.get, REASONING_FIELDS)):
            yield from self._fold_reasoning(delta)
        yield from self._fold_content(delta)
        calls = delta.get("tool_calls")
        for fragment in as_dict_list([calls] if isinstance(calls, dict) else calls):
            self._calls.add_fragment(fragment)
        if function := as_dict(delta.get("function_call")):  # the member that tool_calls replaced
            self._calls.add_fragment({"function": function})
        self._finish_reason = as_text(choice.get("finish_reason")) or self._finish_reason
        if self._finish_reason or self._calls.has_calls:
            yield from self._flush_reasoning()
            yield from self._flush_text()
        if self._finish_reason == "error" or choice.get("error"):
            unnamed = {"message": "the answer was interrupted", "type": "server_error"}
            self.stream_error = choice.get("error") or unnamed

    def _flush_reasoning(self) -> Iterator[StreamPart]:
        """Yield what waited for a further delta."""
        held = {name: text for name, deltas in self._reasoning_deltas.items() if (text := deltas.flush())}
        for name, text in held.items():
            self._reasoning.setdefault(name, []).append(text)
        for text in [*held.values()][:1]:
            yield ReasoningDelta(text=text)

    def _flush_text(self) -> Iterator[StreamPart]:
        if held := self._text_deltas.flush():
            self._text.append(held)
            yield TextDelta(text=held)

    def _repeats_text(self, content: Any) -> bool:
        """Return whether the last chunk repeats the whole text."""
        if len(self._text) < 2 or not isinstance(content, str) or len(content) < len(self._text):
            return False
        return content == "".join(self._text)

    def _find_missing(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return what a whole message adds to what was streamed before it: usually nothing (decision 0195)."""
        missing = dict(message)
        if (content := message.get("content")) and self._text:
            streamed, whole = "".join(self._text), as_written_text(content)
            missing["content"] = whole.removeprefix(streamed) if whole.startswith(streamed) else None
        if self._reasoning:
            missing |= dict.fromkeys(REASONING_FIELDS)
        if self._calls.has_calls:
            missing |= {"tool_calls": None, "function_call": None}
        return missing

    def _fold_content(self, delta: Mapping[str, Any]) -> Iterator[StreamPart]:
        content = delta.get("content")
        if content and isinstance(content, str) and not delta.get("refusal"):
            yield from self._fold_text(content)
            return
        pieces = [*content] if isinstance(content, list) else [content]
        if refusal := as_text(delta.get("refusal")):
            self._refusal.append(refusal)
            pieces.append(refusal)
        if not content:  # a model that speaks writes down what it says
            pieces.append(as_dict(delta.get("audio")).get("transcript"))
        for piece in pieces:
            if thinking := read_thinking_part(piece):
                yield from self._fold_reasoning({"reasoning_content": thinking})
            else:
                yield from self._fold_text(as_written_text(piece))

    def _fold_text(self, delta: str) -> Iterator[StreamPart]:
        if text := self._text_deltas.add(delta):
            if self._reasoning_deltas and not self._text:
                yield from self._flush_reasoning()
            self._text.append(text)
            yield TextDelta(text=text)

    def _fold_reasoning(self, delta: Mapping[str, Any]) -> Iterator[StreamPart]:
        """Fold reasoning, which servers may send in several fields: all are stored, one is shown."""
        shown = ""
        for name in REASONING_TEXT_FIELDS:
            deltas = self._reasoning_deltas.setdefault(name, CumulativeText())
            if text := deltas.add(as_written_text(delta.get(name))):
                self._reasoning.setdefault(name, []).append(text)
                shown = shown or text
        if isinstance(details := delta.get(REASONING_DETAILS_FIELD), list):
            self._reasoning.setdefault(REASONING_DETAILS_FIELD, []).extend(details)
            shown = shown or "".join(map(read_thinking_part, details))
        if shown:
            yield ReasoningDelta(text=shown)

    def _build_call_blocks(self, call: CollectedCall, *, is_cut_off: bool) -> list[Block]:
        block = call.build_block(is_cut_off=is_cut_off)
        if not call.extra_content:
            return [block]
        return [self._build_reasoning_block({EXTRA_CONTENT_FIELD: call.extra_content}), block]

    def _build_reasoning(self) -> list[Block]:
        payload = {
            name: merge_reasoning_details(pieces) if name == REASONING_DETAILS_FIELD else "".join(pieces)
            for name, pieces in self._reasoning.items()
        }
        return [self._build_reasoning_block(payload)] if payload else []

    def _build_reasoning_block(self, payload: dict[str, Any]) -> ReasoningBlock:
        """Build the block of reasoning, which only the provider reads again."""
        return ReasoningBlock(provider=self._provider, model=self._model, payload=to_storable_json(payload))
