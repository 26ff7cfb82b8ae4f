"""Folds the events of one streamed response into blocks. No I/O and no clock: the same events give the same pieces."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fermata.drivers.arguments import arguments, whole, whole_value
from fermata.drivers.calling import named_apart
from fermata.drivers.counting import bucketed
from fermata.drivers.failures import FILTERED
from fermata.drivers.members import name_of, object_of, objects_of, text_of
from fermata.words.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock
from fermata.words.model import Piece, ReasoningDelta, Reply, Stop, TextDelta, Tokens

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
        return text_of(self.start.get("type")) or "message"

    @property
    def said(self) -> str:
        return "".join(self.text)


class Draft:
    def __init__(self, provider: str, model: str, request: bytes) -> None:
        self.complete = False
        self.finished = False
        self.failure: Any = None
        self._provider = provider
        self._model = model
        self._request = request
        self._items: dict[int | str, _Item] = {}
        self._usage: dict[str, Any] = {}
        self._end: dict[str, Any] = {}

    def take(self, event: dict[str, Any]) -> Iterator[Piece]:
        kind = text_of(event.get("type"))
        if event.get("object") == "response":  # the whole answer in one piece
            kind, event = f"response.{event.get('status')}", {"response": event}
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            yield from self._show(event, refused=kind == "response.refusal.delta")
        elif kind == "response.function_call_arguments.delta":
            self._item(event, "function_call").text.append(text_of(event.get("delta")))
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            yield from self._think(event)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            yield from self._announce(event, done=kind.endswith("done"))
        elif kind in _ENDS:
            yield from self._conclude(kind, object_of(event.get("response")))
        elif kind == "error" or event.get("error"):
            self.failure = event.get("error") or {name: event.get(name) for name in ("code", "message")}

    def close(self) -> None:
        """The stream ends with an event of its own, whatever stands behind it."""

    @property
    def counted(self) -> bool:
        return bool(self._usage)

    @property
    def tokens(self) -> Tokens:
        count = self._usage.get
        return bucketed(self._usage, count("input_tokens"), count("output_tokens"), count("input_tokens_details"))

    def reply(self) -> Reply:
        items = list(self._items.values())
        stop = self._stop(items)
        blocks = [block for item in items for block in self._blocks(item)]
        if stop is Stop.MAX_TOKENS and blocks and isinstance(blocks[-1], ToolCallBlock):
            # The limit fell inside this call. That its arguments can be read does not make them all of them.
            blocks[-1] = blocks[-1].model_copy(update={"malformed": True})
        named = named_apart(blocks, self._request)
        return Reply(
            blocks=named,
            stop=stop,
            tokens=self.tokens,
            tokens_known="output_tokens" in self._usage,
            refusal=self._reason(items) if stop is Stop.REFUSAL else None,
        )

    def _item(self, event: Mapping[str, Any], kind: str) -> _Item:
        """By its place; servers that count none name it by its id, or have only one at a time."""
        place = event.get("output_index")
        key: int | str = place if isinstance(place, int) else name_of(event.get("item_id"))
        key = name_of(object_of(event.get("item")).get("id")) if key == "" else key
        if key == "":
            key = next(reversed(self._items), 0)
        return self._items.setdefault(key, _Item({"type": kind}))

    def _show(self, event: Mapping[str, Any], *, refused: bool) -> Iterator[Piece]:
        item = self._item(event, "message")
        item.refused |= refused
        if text := text_of(event.get("delta")):
            item.text.append(text)
            yield TextDelta(text=text)

    def _think(self, event: Mapping[str, Any]) -> Iterator[Piece]:
        item = self._item(event, "reasoning")
        if text := text_of(event.get("delta")):
            part = event.get("summary_index") or event.get("content_index") or 0
            apart = "\n\n" if item.text and part != item.start.get("part", part) else ""
            item.start["part"] = part
            item.text.append(text)
            yield ReasoningDelta(text=apart + text)

    def _announce(self, event: Mapping[str, Any], *, done: bool) -> Iterator[Piece]:
        told = object_of(event.get("item"))
        yield from self._grow(self._item(event, text_of(told.get("type"))), told, done=done)

    def _grow(self, item: _Item, told: Mapping[str, Any], *, done: bool) -> Iterator[Piece]:
        item.start = dict(told)
        item.done |= done and told.get("status") != "incomplete"
        if done:
            yield from self._complete(item)

    def _complete(self, item: _Item) -> Iterator[Piece]:
        """A finished item holds all of it: what no delta has brought is shown now."""
        if item.kind == "function_call":
            item.text = [text] if isinstance(text := item.start.get("arguments"), str) and text else item.text
        elif item.kind == "message":
            parts = objects_of(item.start.get("content"))
            item.refused |= any(part.get("type") == "refusal" for part in parts)
            text = "".join(text_of(part.get("text")) or text_of(part.get("refusal")) for part in parts)
            if missing := text.removeprefix(item.said) if text.startswith(item.said) else "":
                item.text.append(missing)
                yield TextDelta(text=missing)

    def _conclude(self, kind: str, response: dict[str, Any]) -> Iterator[Piece]:
        usage = object_of(response.get("usage"))
        self._usage = {name: whole_value(value) for name, value in usage.items() if value is not None}
        self._end = response
        if kind == "response.failed":
            self.failure = response.get("error") or {"message": "no reason given"}
        elif kind == "response.cancelled":
            self.failure = {"message": "the provider cancelled the response"}
        else:
            self.complete = True
            yield from self._complete_by(response.get("output"), done=kind == "response.completed")

    def _complete_by(self, output: Any, *, done: bool) -> Iterator[Piece]:
        """The last event repeats all items; servers that announce some of them badly tell of them only here."""
        for place, told in enumerate(output if isinstance(output, list) else ()):
            if isinstance(told, dict):
                key = next((key for key in (place, name_of(told.get("id"))) if key in self._items), place)
                item = self._items.setdefault(key, _Item())
                if not item.done:
                    yield from self._grow(item, told, done=done or told.get("status") == "completed")
        for item in self._items.values():
            item.done |= done

    def _stop(self, items: list[_Item]) -> Stop:
        if self._was_filtered or any(item.refused for item in items):
            return Stop.REFUSAL
        if object_of(self._end.get("incomplete_details")).get("reason") or self._end.get("status") == "incomplete":
            return Stop.MAX_TOKENS
        return Stop.TOOL_CALLS if any(item.kind == "function_call" for item in items) else Stop.END

    @property
    def _was_filtered(self) -> bool:
        return object_of(self._end.get("incomplete_details")).get("reason") == "content_filter"

    def _reason(self, items: list[_Item]) -> str | None:
        """In the model's own words, or that it was not the model."""
        said = " ".join(item.said.strip() for item in items if item.refused)
        return said or (FILTERED if self._was_filtered else None)

    def _blocks(self, item: _Item) -> Iterator[Block]:
        match item.kind:
            case "message":
                text = whole(item.said)
                if not text.strip():
                    return
                if phase := text_of(item.start.get("phase")):
                    yield self._kept({"type": "message", "phase": phase})
                yield TextBlock(text=text)
            case "function_call":
                value, malformed = arguments(item.said)
                yield ToolCallBlock(
                    tool_call_id=name_of(item.start.get("call_id")) or name_of(item.start.get("id")),
                    tool_name=name_of(item.start.get("name")),
                    input=value,
                    malformed=malformed or not item.done or None,
                )
            case "reasoning" if item.done and any(item.start.get(member) for member in _REMEMBERED):
                yield self._kept(item.start)

    def _kept(self, payload: dict[str, Any]) -> ReasoningBlock:
        """For the provider alone to read again."""
        return ReasoningBlock(provider=self._provider, model=self._model, payload=whole_value(payload))
