"""Fold the events of a Responses stream into a response (decision 0071)."""

from collections.abc import Iterator, Mapping
from typing import Any

from fermata.domain.blocks import Block, ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.domain.surrogates_and_infinities import replace_lone_surrogates, to_storable_json
from fermata.drivers.protocols.finish_reasons import CONTENT_FILTER_REASON, describe_unusual_end, find_finish_reason
from fermata.drivers.protocols.json_fields import as_dict, as_dict_list, as_name, as_text, as_written_text
from fermata.drivers.protocols.openai_responses.output_items import OutputItem, OutputItems
from fermata.drivers.protocols.token_usage import tokens_from_usage
from fermata.drivers.protocols.tool_arguments import build_tool_call, find_arguments, to_argument_text
from fermata.drivers.protocols.unique_call_ids import assign_unique_call_ids

_STORED_REASONING_FIELDS = ("encrypted_content", "signature", "content", "summary")
"""A reasoning item with none of these is of no use later."""
_END_EVENTS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_WHOLE_TEXT_EVENTS = ("response.output_text.done", "response.refusal.done", "response.content_part.done")


class ResponsesAccumulator:
    """The `ResponseAccumulator` of the Responses protocol."""

    def __init__(self, provider: str, model: str, request_body: bytes) -> None:
        self.is_complete = False
        self.may_end = False
        self.stream_error: Any = None
        self._provider = provider
        self._model = model
        self._request_body = request_body
        self._items = OutputItems()
        self._usage: dict[str, Any] = {}
        self._final_response: dict[str, Any] = {}

    def add_event(self, event: dict[str, Any]) -> Iterator[StreamPart]:
        kind = as_text(event.get("type"))
        if event.get("object") == "response":  # the whole answer at once
            event = {"response": event}
            kind = "response.done"
        if kind in ("response.done", "response.completed"):  # the status counts
            status = as_dict(event.get("response")).get("status")
            kind = f"response.{status}" if f"response.{status}" in _END_EVENTS else "response.completed"
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            yield from self._fold_text(event, is_refusal=kind == "response.refusal.delta")
        elif kind == "response.function_call_arguments.delta":
            self._items.find_or_add(event, "function_call").texts.append(to_argument_text(event.get("delta")))
        elif kind == "response.function_call_arguments.done":
            self._items.find_or_add(event, "function_call").complete_arguments(event.get("arguments"))
        elif kind in _WHOLE_TEXT_EVENTS:
            yield from self._fold_whole_text(event)
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            yield from self._fold_reasoning(event)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            members, is_done = as_dict(event.get("item")), kind.endswith("done")
            item = self._items.find_or_announce(event, members, is_done=is_done)
            yield from self._replace_item(item, members, is_done=is_done)
        elif kind in _END_EVENTS:
            yield from self._fold_end(kind, as_dict(event.get("response")))
        elif kind == "error" or event.get("error"):
            self.stream_error = event.get("error") or {name: event.get(name) for name in ("code", "message")}

    def handle_done(self) -> None:
        """Ignore the marker: the stream ends with an event of its own."""

    @property
    def has_usage(self) -> bool:
        return bool(self._usage)

    @property
    def tokens(self) -> TokenUsage:
        usage = self._usage
        return tokens_from_usage(
            usage, usage.get("input_tokens"), usage.get("output_tokens"), usage.get("input_tokens_details")
        )

    def build_response(self) -> ModelResponse:
        items = self._items.in_order
        stop = self._get_finish_reason(items)
        blocks = [block for item in items for block in self._build_blocks(item)]
        if stop is FinishReason.MAX_TOKENS and blocks and isinstance(blocks[-1], ToolCallBlock):
            # The limit fell inside this call, so its arguments may be incomplete even if they are readable.
            blocks[-1] = blocks[-1].model_copy(update={"malformed": True})
        return ModelResponse(
            blocks=assign_unique_call_ids(blocks, self._request_body),
            stop=stop,
            tokens=self.tokens,
            tokens_known="output_tokens" in self._usage,
            refusal=self._get_refusal_reason(items) if stop is FinishReason.REFUSAL else None,
            warning=describe_unusual_end("The provider", self._incomplete_reason),
        )

    def _fold_text(self, event: Mapping[str, Any], *, is_refusal: bool) -> Iterator[StreamPart]:
        item = self._items.find_or_add(event, "message")
        item.is_refusal |= is_refusal
        if text := as_written_text(event.get("delta")):
            item.texts.append(text)
            yield TextDelta(text=text)

    def _fold_whole_text(self, event: Mapping[str, Any]) -> Iterator[StreamPart]:
        """Take the text of an item of which no delta has brought anything."""
        part = as_dict(event.get("part")) or event
        if as_text(part.get("type")).startswith("reasoning"):
            return
        item = self._items.find_or_add(event, "message")
        text = as_written_text(part.get("text")) or as_text(part.get("refusal"))
        if item.kind == "message" and text and not item.texts:
            item.is_refusal |= bool(part.get("refusal"))
            item.texts.append(text)
            yield TextDelta(text=text)

    def _fold_reasoning(self, event: Mapping[str, Any]) -> Iterator[StreamPart]:
        item = self._items.find_or_add(event, "reasoning")
        if text := as_written_text(event.get("delta")):
            section = event.get("summary_index") or event.get("content_index") or 0
            is_new_section = bool(item.texts) and section != item.members.get("part", section)
            item.members["part"] = section
            item.texts.append(text)
            yield ReasoningDelta(text=f"\n\n{text}" if is_new_section else text)

    def _replace_item(self, item: OutputItem, members: Mapping[str, Any], *, is_done: bool) -> Iterator[StreamPart]:
        item.members = dict(members)
        item.is_done |= is_done and members.get("status") != "incomplete"
        if is_done:
            yield from self._complete_text(item)

    def _complete_text(self, item: OutputItem) -> Iterator[StreamPart]:
        """Take the whole text from a completed item, and yield what no delta has brought."""
        if item.kind == "function_call":
            item.complete_arguments(find_arguments(item.members))
        elif item.kind == "message":
            content = item.members.get("content")
            contents = as_dict_list([{"text": content}] if isinstance(content, str) else content)
            item.is_refusal |= any(content.get("type") == "refusal" for content in contents)
            text = "".join(as_written_text(part.get("text")) or as_text(part.get("refusal")) for part in contents)
            missing = text.removeprefix(item.text) if text.startswith(item.text) else ""
            if missing:
                item.texts.append(missing)
                yield TextDelta(text=missing)

    def _fold_end(self, kind: str, response: dict[str, Any]) -> Iterator[StreamPart]:
        usage = as_dict(response.get("usage"))
        self._usage = {name: to_storable_json(value) for name, value in usage.items() if value is not None}
        self._final_response = response
        if kind == "response.failed":
            self.stream_error = response.get("error") or {"message": "no reason given"}
        elif kind == "response.cancelled":
            self.stream_error = {"message": "the provider cancelled the response"}
        else:
            self.is_complete = True
            yield from self._complete_items(response.get("output"), is_done=kind == "response.completed")

    def _complete_items(self, output: Any, *, is_done: bool) -> Iterator[StreamPart]:
        """Complete the items from the last event, which repeats them all, also those announced badly before."""
        for index, members in enumerate(output if isinstance(output, list) else ()):
            if isinstance(members, dict):
                item = self._items.find_completed(index, members)
                if not item.is_done:
                    is_item_done = is_done or members.get("status") == "completed"
                    yield from self._replace_item(item, members, is_done=is_item_done)
        for item in self._items.in_order:
            item.is_done |= is_done

    def _get_finish_reason(self, items: list[OutputItem]) -> FinishReason:
        if any(item.is_refusal for item in items):
            return FinishReason.REFUSAL
        if self._final_response.get("status") == "incomplete" and not self._incomplete_reason:
            return FinishReason.MAX_TOKENS
        stop = find_finish_reason(self._incomplete_reason)
        if stop is not FinishReason.END:
            return stop
        return FinishReason.TOOL_CALLS if any(item.kind == "function_call" for item in items) else FinishReason.END

    @property
    def _incomplete_reason(self) -> str:
        return as_text(as_dict(self._final_response.get("incomplete_details")).get("reason"))

    def _get_refusal_reason(self, items: list[OutputItem]) -> str | None:
        """Return the model's own words, or that a content filter stopped it."""
        words = " ".join(item.text.strip() for item in items if item.is_refusal)
        return words or (CONTENT_FILTER_REASON if self._incomplete_reason else None)

    def _build_blocks(self, item: OutputItem) -> Iterator[Block]:
        match item.kind:
            case "message":
                text = replace_lone_surrogates(item.text)
                if not text.strip():
                    return
                if phase := as_text(item.members.get("phase")):
                    yield self._build_reasoning_block({"type": "message", "phase": phase})
                yield TextBlock(text=text)
            case "function_call":
                call_id = as_name(item.members.get("call_id")) or as_name(item.members.get("id"))
                name = as_name(item.members.get("name"))
                item.complete_arguments(item.text or find_arguments(item.members))
                yield build_tool_call(call_id, name, item.text, is_cut_off=not item.is_done)
            case "reasoning" if item.is_done and any(item.members.get(name) for name in _STORED_REASONING_FIELDS):
                yield self._build_reasoning_block(item.members)

    def _build_reasoning_block(self, payload: dict[str, Any]) -> ReasoningBlock:
        """Build the block of reasoning, which only the provider reads again."""
        return ReasoningBlock(provider=self._provider, model=self._model, payload=to_storable_json(payload))
