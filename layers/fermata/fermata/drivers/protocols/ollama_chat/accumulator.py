"""Fold the lines of Ollama's stream into a response."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fermata.domain.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.domain.surrogates_and_infinities import replace_lone_surrogates, to_storable_json
from fermata.drivers.protocols.cumulative_text import CumulativeText
from fermata.drivers.protocols.finish_reasons import CONTENT_FILTER_REASON, describe_unusual_end, find_finish_reason
from fermata.drivers.protocols.json_fields import as_dict, as_dict_list, as_name, as_text, as_written_text
from fermata.drivers.protocols.token_usage import tokens_from_usage, truncation_warning
from fermata.drivers.protocols.tool_arguments import build_tool_call, find_arguments
from fermata.drivers.protocols.unique_call_ids import assign_unique_call_ids


class OllamaAccumulator:
    """The `ResponseAccumulator` of Ollama's own chat protocol.

    Args:
        expected_tokens: An estimate of the prompt, to detect that the server has truncated it.
    """

    def __init__(self, provider: str, label: str, model: str, request_body: bytes, expected_tokens: int) -> None:
        self.is_complete = False
        self.may_end = False
        self.stream_error: Any = None
        self._provider = provider
        self._label = label
        self._model = model
        self._request_body = request_body
        self._expected_tokens = expected_tokens
        self._text: list[str] = []
        self._text_deltas = CumulativeText()
        self._thinking: list[str] = []
        self._calls: list[ToolCallBlock] = []
        self._known_calls: set[tuple[str, str, str]] = set()
        self._last_line: dict[str, Any] = {}

    @property
    def has_usage(self) -> bool:
        return bool(self._last_line)

    def add_event(self, event: dict[str, Any]) -> Iterator[StreamPart]:
        if error := event.get("error"):
            self.stream_error = error if isinstance(error, dict) else {"message": str(error), "type": "server_error"}
            return
        message = as_dict(event.get("message"))
        if text := as_written_text(message.get("thinking")):
            self._thinking.append(text)
            yield ReasoningDelta(text=text)
        text = as_written_text(message.get("content"))
        if event.get("done") and len(self._text) > 1 and text == "".join(self._text):
            text = ""  # the last line repeats the whole text
        if text := self._text_deltas.add(text) + (self._text_deltas.flush() if event.get("done") else ""):
            self._text.append(text)
            yield TextDelta(text=text)
        listed = message.get("tool_calls")
        calls = [_build_call(call) for call in as_dict_list([listed] if isinstance(listed, dict) else listed)]
        if not event.get("done") or calls != self._calls:
            self._calls += filter(self._is_new, calls)
        if event.get("done"):
            numbers = {name: value for name, value in event.items() if name != "message" and value is not None}
            self._last_line = to_storable_json(numbers)
            self.is_complete = True

    def _is_new(self, call: ToolCallBlock) -> bool:
        """Return whether no call of this id, tool and input was there before."""
        content = (call.tool_call_id, call.tool_name, json.dumps(call.input))
        is_new = not call.tool_call_id or content not in self._known_calls
        self._known_calls.add(content)
        return is_new

    def handle_done(self) -> None:
        """Ignore the marker: the last line says so itself."""

    @property
    def tokens(self) -> TokenUsage:
        usage = self._last_line
        cached = {"cached_tokens": usage.get("prompt_eval_cached_count")}
        return tokens_from_usage(usage, usage.get("prompt_eval_count"), usage.get("eval_count"), cached)

    def build_response(self) -> ModelResponse:
        reason = as_text(self._last_line.get("done_reason"))
        stop = find_finish_reason(reason)
        if stop is FinishReason.END and self._calls:
            stop = FinishReason.TOOL_CALLS
        unusual_end = describe_unusual_end(self._label, reason)
        cut_prompt = truncation_warning(self._label, self._expected_tokens, self.tokens)
        return ModelResponse(
            blocks=assign_unique_call_ids([*self._iter_text_blocks(), *self._calls], self._request_body),
            stop=stop,
            tokens=self.tokens,
            tokens_known="eval_count" in self._last_line,
            refusal=CONTENT_FILTER_REASON if stop is FinishReason.REFUSAL else None,
            warning=unusual_end or cut_prompt,
            is_prompt_cut=not unusual_end and bool(cut_prompt),
        )

    def _iter_text_blocks(self) -> Iterator[Block]:
        if self._thinking and self._calls:  # only thinking that led to a call is sent back
            payload = {"thinking": replace_lone_surrogates("".join(self._thinking))}
            yield ReasoningBlock(provider=self._provider, model=self._model, payload=payload)
        text = replace_lone_surrogates("".join(self._text))
        if text.strip():
            yield TextBlock(text=text)


def _build_call(call: Mapping[str, Any]) -> ToolCallBlock:
    """Build a call, which arrives whole with an object as arguments.

    Some proxies write the arguments as text, or leave the wrapping out.
    """
    function = as_dict(call.get("function")) or call
    return build_tool_call(as_name(call.get("id")), as_name(function.get("name")), find_arguments(function))
