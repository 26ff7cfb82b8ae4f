"""Folds the lines of Ollama's answer into blocks. No I/O and no clock: the same lines give the same pieces."""

from collections.abc import Iterator, Mapping
from typing import Any

from fermata.domain.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.drivers.protocols.json_fields import as_dict, as_dict_list, as_name, as_text
from fermata.drivers.protocols.token_usage import tokens_from_usage, truncation_warning
from fermata.drivers.protocols.tool_arguments import parse_tool_arguments, replace_lone_surrogates, to_storable_json
from fermata.drivers.protocols.tool_call_ids import assign_unique_call_ids


class OllamaAccumulator:
    def __init__(self, provider: str, label: str, model: str, request: bytes, expected: int) -> None:
        self.is_complete = False
        self.may_end = False
        self.stream_error: Any = None
        self._provider = provider
        self._label = label
        self._model = model
        self._request = request
        self._expected = expected
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[ToolCallBlock] = []
        self._last: dict[str, Any] = {}

    @property
    def has_usage(self) -> bool:
        return bool(self._last)

    def add_event(self, event: dict[str, Any]) -> Iterator[StreamPart]:
        if error := event.get("error"):
            self.stream_error = error if isinstance(error, dict) else {"message": str(error), "type": "server_error"}
            return
        message = as_dict(event.get("message"))
        if text := as_text(message.get("thinking")):
            self._thoughts.append(text)
            yield ReasoningDelta(text=text)
        if text := as_text(message.get("content")):
            self._text.append(text)
            yield TextDelta(text=text)
        self._calls += [_call(call) for call in as_dict_list(message.get("tool_calls"))]
        if event.get("done"):
            told = {name: value for name, value in event.items() if name != "message" and value is not None}
            self._last, self.is_complete = to_storable_json(told), True

    def handle_done(self) -> None:
        """The last line says so itself."""

    @property
    def tokens(self) -> TokenUsage:
        count = self._last.get
        cached = {"cached_tokens": count("prompt_eval_cached_count")}
        return tokens_from_usage(self._last, count("prompt_eval_count"), count("eval_count"), cached)

    def build_response(self) -> ModelResponse:
        stop = FinishReason.TOOL_CALLS if self._calls else FinishReason.END
        if self._last.get("done_reason") == "length":
            stop = FinishReason.MAX_TOKENS
        return ModelResponse(
            blocks=assign_unique_call_ids([*self._said(), *self._calls], self._request),
            stop=stop,
            tokens=self.tokens,
            tokens_known="eval_count" in self._last,
            warning=truncation_warning(self._label, self._expected, self.tokens),
        )

    def _said(self) -> Iterator[Block]:
        if self._thoughts and self._calls:  # only what led to a call is ever said again
            payload = {"thinking": replace_lone_surrogates("".join(self._thoughts))}
            yield ReasoningBlock(provider=self._provider, model=self._model, payload=payload)
        text = replace_lone_surrogates("".join(self._text))
        if text.strip():
            yield TextBlock(text=text)


def _call(told: Mapping[str, Any]) -> ToolCallBlock:
    """Calls come whole, their arguments as an object; some proxies write them as text."""
    function = as_dict(told.get("function"))
    value, malformed = function.get("arguments"), False
    if isinstance(value, str):
        value, malformed = parse_tool_arguments(value)
    return ToolCallBlock(
        tool_call_id=as_name(told.get("id")),
        tool_name=as_name(function.get("name")),
        input={} if value is None else to_storable_json(value),
        malformed=malformed or None,
    )
