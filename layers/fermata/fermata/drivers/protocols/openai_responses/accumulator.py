"""Folds the events of one streamed response into blocks. No I/O and no clock: the same events give the same pieces."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fermata.domain.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.drivers.error_mapping import CONTENT_FILTER_REASON
from fermata.drivers.protocols.json_fields import as_dict, as_dict_list, as_name, as_text
from fermata.drivers.protocols.token_usage import tokens_from_usage
from fermata.drivers.protocols.tool_arguments import parse_tool_arguments, replace_lone_surrogates, to_storable_json
from fermata.drivers.protocols.tool_call_ids import assign_unique_call_ids

_REMEMBERED = ("encrypted_content", "signature", "content", "summary")
_ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


@dataclass
class _Item:
    """One output item while it grows: as it was announced, then as it was finished."""

    start: dict[str, Any] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    """What was shown, or the arguments of a call."""
    refused: bool = False
    done: bool = False

    @property
    def kind(self) -> str:
        return as_text(self.start.get("type")) or "message"

    @property
    def said(self) -> str:
        return "".join(self.text)


class ResponsesAccumulator:
    def __init__(self, provider: str, model: str, request: bytes) -> None:
        self.is_complete = False
        self.may_end = False
        self.stream_error: Any = None
        self._provider = provider
        self._model = model
        self._request = request
        self._items: dict[int | str, _Item] = {}
        self._usage: dict[str, Any] = {}
        self._end: dict[str, Any] = {}

    def add_event(self, event: dict[str, Any]) -> Iterator[StreamPart]:
        kind = as_text(event.get("type"))
        if event.get("object") == "response":  # the whole answer in one piece
            kind, event = f"response.{event.get('status')}", {"response": event}
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            yield from self._show(event, refused=kind == "response.refusal.delta")
        elif kind == "response.function_call_arguments.delta":
            self._item(event, "function_call").text.append(as_text(event.get("delta")))
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            yield from self._think(event)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            yield from self._announce(event, done=kind.endswith("done"))
        elif kind in _ENDS:
            yield from self._conclude(kind, as_dict(event.get("response")))
        elif kind == "error" or event.get("error"):
            self.stream_error = event.get("error") or {name: event.get(name) for name in ("code", "message")}

    def handle_done(self) -> None:
        """The stream ends with an event of its own, whatever stands behind it."""

    @property
    def has_usage(self) -> bool:
        return bool(self._usage)

    @property
    def tokens(self) -> TokenUsage:
        count = self._usage.get
        return tokens_from_usage(
            self._usage, count("input_tokens"), count("output_tokens"), count("input_tokens_details")
        )

    def build_response(self) -> ModelResponse:
        items = list(self._items.values())
        stop = self._stop(items)
        blocks = [block for item in items for block in self._blocks(item)]
        if stop is FinishReason.MAX_TOKENS and blocks and isinstance(blocks[-1], ToolCallBlock):
            # The limit fell inside this call. That its arguments can be read does not make them all of them.
            blocks[-1] = blocks[-1].model_copy(update={"malformed": True})
        named = assign_unique_call_ids(blocks, self._request)
        return ModelResponse(
            blocks=named,
            stop=stop,
            tokens=self.tokens,
            tokens_known="output_tokens" in self._usage,
            refusal=self._reason(items) if stop is FinishReason.REFUSAL else None,
        )

    def _item(self, event: Mapping[str, Any], kind: str) -> _Item:
        """By its place; servers that count none name it by its id, or have only one at a time."""
        place = event.get("output_index")
        key: int | str = place if isinstance(place, int) else as_name(event.get("item_id"))
        key = as_name(as_dict(event.get("item")).get("id")) if key == "" else key
        if key == "":
            key = next(reversed(self._items), 0)
        return self._items.setdefault(key, _Item({"type": kind}))

    def _show(self, event: Mapping[str, Any], *, refused: bool) -> Iterator[StreamPart]:
        item = self._item(event, "message")
        item.refused |= refused
        if text := as_text(event.get("delta")):
            item.text.append(text)
            yield TextDelta(text=text)

    def _think(self, event: Mapping[str, Any]) -> Iterator[StreamPart]:
        item = self._item(event, "reasoning")
        if text := as_text(event.get("delta")):
            part = event.get("summary_index") or event.get("content_index") or 0
            apart = "\n\n" if item.text and part != item.start.get("part", part) else ""
            item.start["part"] = part
            item.text.append(text)
            yield ReasoningDelta(text=apart + text)

    def _announce(self, event: Mapping[str, Any], *, done: bool) -> Iterator[StreamPart]:
        told = as_dict(event.get("item"))
        yield from self._grow(self._item(event, as_text(told.get("type"))), told, done=done)

    def _grow(self, item: _Item, told: Mapping[str, Any], *, done: bool) -> Iterator[StreamPart]:
        item.start = dict(told)
        item.done |= done and told.get("status") != "incomplete"
        if done:
            yield from self._complete(item)

    def _complete(self, item: _Item) -> Iterator[StreamPart]:
        """A finished item holds all of it: what no delta has brought is shown now."""
        if item.kind == "function_call":
            item.text = [text] if isinstance(text := item.start.get("arguments"), str) and text else item.text
        elif item.kind == "message":
            parts = as_dict_list(item.start.get("content"))
            item.refused |= any(part.get("type") == "refusal" for part in parts)
            text = "".join(as_text(part.get("text")) or as_text(part.get("refusal")) for part in parts)
            if missing := text.removeprefix(item.said) if text.startswith(item.said) else "":
                item.text.append(missing)
                yield TextDelta(text=missing)

    def _conclude(self, kind: str, response: dict[str, Any]) -> Iterator[StreamPart]:
        usage = as_dict(response.get("usage"))
        self._usage = {name: to_storable_json(value) for name, value in usage.items() if value is not None}
        self._end = response
        if kind == "response.failed":
            self.stream_error = response.get("error") or {"message": "no reason given"}
        elif kind == "response.cancelled":
            self.stream_error = {"message": "the provider cancelled the response"}
        else:
            self.is_complete = True
            yield from self._complete_by(response.get("output"), done=kind == "response.completed")

    def _complete_by(self, output: Any, *, done: bool) -> Iterator[StreamPart]:
        """The last event repeats all items; servers that announce some of them badly tell of them only here."""
        for place, told in enumerate(output if isinstance(output, list) else ()):
            if isinstance(told, dict):
                key = next((key for key in (place, as_name(told.get("id"))) if key in self._items), place)
                item = self._items.setdefault(key, _Item())
                if not item.done:
                    yield from self._grow(item, told, done=done or told.get("status") == "completed")
        for item in self._items.values():
            item.done |= done

    def _stop(self, items: list[_Item]) -> FinishReason:
        if self._was_filtered or any(item.refused for item in items):
            return FinishReason.REFUSAL
        if as_dict(self._end.get("incomplete_details")).get("reason") or self._end.get("status") == "incomplete":
            return FinishReason.MAX_TOKENS
        return FinishReason.TOOL_CALLS if any(item.kind == "function_call" for item in items) else FinishReason.END

    @property
    def _was_filtered(self) -> bool:
        return as_dict(self._end.get("incomplete_details")).get("reason") == "content_filter"

    def _reason(self, items: list[_Item]) -> str | None:
        """In the model's own words, or that it was not the model."""
        said = " ".join(item.said.strip() for item in items if item.refused)
        return said or (CONTENT_FILTER_REASON if self._was_filtered else None)

    def _blocks(self, item: _Item) -> Iterator[Block]:
        match item.kind:
            case "message":
                text = replace_lone_surrogates(item.said)
                if not text.strip():
                    return
                if phase := as_text(item.start.get("phase")):
                    yield self._kept({"type": "message", "phase": phase})
                yield TextBlock(text=text)
            case "function_call":
                value, malformed = parse_tool_arguments(item.said)
                yield ToolCallBlock(
                    tool_call_id=as_name(item.start.get("call_id")) or as_name(item.start.get("id")),
                    tool_name=as_name(item.start.get("name")),
                    input=value,
                    malformed=malformed or not item.done or None,
                )
            case "reasoning" if item.done and any(item.start.get(member) for member in _REMEMBERED):
                yield self._kept(item.start)

    def _kept(self, payload: dict[str, Any]) -> ReasoningBlock:
        """For the provider alone to read again."""
        return ReasoningBlock(provider=self._provider, model=self._model, payload=to_storable_json(payload))
