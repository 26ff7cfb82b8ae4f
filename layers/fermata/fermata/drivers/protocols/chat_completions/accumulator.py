"""Folds streamed chat-completion chunks into blocks. No I/O and no clock: the same chunks give the same pieces."""

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
from fermata.drivers.protocols.tool_call_ids import assign_unique_call_ids

_STOPS = {
    "length": FinishReason.MAX_TOKENS,
    "max_tokens": FinishReason.MAX_TOKENS,
    "model_length": FinishReason.MAX_TOKENS,
    "content_filter": FinishReason.REFUSAL,
    "refusal": FinishReason.REFUSAL,
}


@dataclass
class _Call:
    index: int
    id: str = ""
    name: str = ""
    text: list[str] = field(default_factory=list)
    extra: Any = None


class ChatAccumulator:
    def __init__(self, provider: str, label: str, model: str, request: bytes, expected: int) -> None:
        self.is_complete = False
        self.stream_error: Any = None
        self._provider, self._label, self._model = provider, label, model
        self._request = request
        self._expected = expected
        self._text: list[str] = []
        self._thoughts: dict[str, list[Any]] = {}
        self._calls: list[_Call] = []
        self._open: dict[int, _Call] = {}
        """The newest call of each index."""
        self._stop = ""
        self._refused: list[str] = []
        self._usage: dict[str, Any] = {}

    @property
    def may_end(self) -> bool:
        """A reason to stop was given; usage may follow, and some servers forget the last word."""
        return bool(self._stop)

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
                yield from self._choose(choice)

    def handle_done(self) -> None:
        self.is_complete = True

    @property
    def tokens(self) -> TokenUsage:
        count = self._usage.get
        details = count("prompt_tokens_details") or {
            "cached_tokens": count("prompt_cache_hit_tokens") or count("cached_tokens")
        }
        return tokens_from_usage(self._usage, count("prompt_tokens"), count("completion_tokens"), details)

    def build_response(self) -> ModelResponse:
        ordered = sorted(self._calls, key=lambda call: call.index)
        calls = [block for call in ordered for block in self._blocks(call)]
        stop = FinishReason.REFUSAL if self._refused else _STOPS.get(self._stop, FinishReason.END)
        if stop is FinishReason.MAX_TOKENS and calls:
            # The limit fell inside the last call. That its arguments can be read does not make them all of them.
            calls[-1] = calls[-1].model_copy(update={"malformed": True})
        if stop is FinishReason.END and calls:
            stop = FinishReason.TOOL_CALLS
        text = replace_lone_surrogates("".join(self._text))
        said: list[Block] = [TextBlock(text=text)] if text.strip() else []
        return ModelResponse(
            blocks=assign_unique_call_ids([*self._thought(), *said, *calls], self._request),
            stop=stop,
            tokens=self.tokens,
            tokens_known="completion_tokens" in self._usage,
            warning=truncation_warning(self._label, self._expected, self.tokens),
            refusal=self._reason() if stop is FinishReason.REFUSAL else None,
        )

    def _reason(self) -> str | None:
        """In the model's own words, or that it was not the model."""
        return "".join(self._refused).strip() or (CONTENT_FILTER_REASON if self._stop == "content_filter" else None)

    def _choose(self, choice: Mapping[str, Any]) -> Iterator[StreamPart]:
        delta = as_dict(choice.get("delta")) or as_dict(choice.get("message"))
        yield from self._think(delta)
        yield from self._say(delta)
        for call in as_dict_list(delta.get("tool_calls")):
            self._ask(call)
        self._stop = as_text(choice.get("finish_reason")) or self._stop
        if self._stop == "error":
            self.stream_error = {"message": "the answer broke off", "type": "server_error"}

    def _say(self, delta: Mapping[str, Any]) -> Iterator[StreamPart]:
        content, refusal = delta.get("content"), as_text(delta.get("refusal"))
        parts = [*content] if isinstance(content, list) else [content]
        if refusal:
            self._refused.append(refusal)
            parts.append(refusal)
        for part in parts:
            if text := as_text(part.get("text") if isinstance(part, dict) else part):
                self._text.append(text)
                yield TextDelta(text=text)
            elif isinstance(part, dict) and isinstance(part.get("thinking"), list):
                yield from self._think({"reasoning_content": "".join(_texts(part["thinking"]))})

    def _think(self, delta: Mapping[str, Any]) -> Iterator[StreamPart]:
        """The same thoughts may stand there under several names: all are kept, one is shown."""
        shown = ""
        for name in ("reasoning_content", "reasoning"):
            if text := as_text(delta.get(name)):
                self._thoughts.setdefault(name, []).append(text)
                shown = shown or text
        if isinstance(details := delta.get(REASONING_DETAILS_FIELD), list):
            self._thoughts.setdefault(REASONING_DETAILS_FIELD, []).extend(details)
        if shown:
            yield ReasoningDelta(text=shown)

    def _ask(self, told: Mapping[str, Any]) -> None:
        """A piece of a call. Servers that give no place, or all the same, begin a new call with its id or name."""
        function = as_dict(told.get("function"))
        call = self._place(told, function)
        call.id = call.id or as_name(told.get("id"))
        call.name = call.name or as_name(function.get("name"))
        call.extra = told.get(EXTRA_CONTENT_FIELD) or call.extra
        text = function.get("arguments")
        if isinstance(text, dict):
            call.text = [json.dumps(text)]
        elif isinstance(text, str):
            call.text.append(text)

    def _place(self, told: Mapping[str, Any], function: Mapping[str, Any]) -> _Call:
        index, call_id, name = told.get("index"), as_name(told.get("id")), as_name(function.get("name"))
        latest = self._calls[-1] if self._calls else None
        there = self._open.get(index) if isinstance(index, int) else latest
        if there is not None:
            another = call_id and there.id and call_id != there.id
            nameless = name and there.name and not call_id and not there.id
            begins_again = nameless and (name != there.name or "".join(there.text).strip())
            if not another and not begins_again:
                return there
        place = index if isinstance(index, int) else latest.index if latest else 0
        self._calls.append(_Call(place))
        self._open[place] = self._calls[-1]
        return self._calls[-1]

    def _blocks(self, call: _Call) -> list[Block]:
        if not (call.id or call.name or call.text):
            return []
        value, malformed = parse_tool_arguments("".join(call.text))
        block = ToolCallBlock(tool_call_id=call.id, tool_name=call.name, input=value, malformed=malformed or None)
        return [self._kept({EXTRA_CONTENT_FIELD: call.extra}), block] if call.extra else [block]

    def _thought(self) -> list[Block]:
        whole_ones = {
            name: parts if name == REASONING_DETAILS_FIELD else "".join(parts) for name, parts in self._thoughts.items()
        }
        return [self._kept(whole_ones)] if whole_ones else []

    def _kept(self, payload: dict[str, Any]) -> ReasoningBlock:
        """For the provider alone to read again."""
        return ReasoningBlock(provider=self._provider, model=self._model, payload=to_storable_json(payload))


def _texts(parts: list[Any]) -> Iterator[str]:
    """The thoughts in a list of parts, as Mistral sends them."""
    return (as_text(part.get("text")) for part in as_dict_list(parts))
