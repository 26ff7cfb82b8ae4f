"""Group a conversation into messages that alternate, with the call ids, results and images that all mappers share."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import assert_never

from fermata.domain.blocks import ImageBlock, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest
from fermata.domain.tools import ToolSpec
from fermata.domain.weak_cache import WeakCache

CONTINUE_PROMPT = "Continue."
OMITTED_SCREENSHOTS_NOTE = "[{} screenshot(s) omitted: this provider delivers tool results as text only.]"

_NOT_IN_PLAIN_ID = re.compile(r"[^A-Za-z0-9_-]")
_NINE_CHARACTERS = re.compile(r"[A-Za-z0-9]{9}")
encode_compact_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

CallIdFormatter = Callable[[str, int], str]
"""Turns a call id into one the provider accepts; a higher number (the first is 1) gives another one."""
ModelBlock = TextBlock | ToolCallBlock | ReasoningBlock


@dataclass
class CallResult:
    """The result of one call, with the call's id on the wire and the name of its tool."""

    call_id: str
    tool_name: str
    block: ToolResultBlock


@dataclass
class MessageGroup:
    """Consecutive messages of one side. A group of the model holds the results of its calls, wherever they were.

    Attributes:
        volatile: What changes from turn to turn; follows the newest prompt (decision 0060).
        is_filler: Inserted by the driver, because the protocol requires a message of the user there.
    """

    role: str
    blocks: list[ModelBlock] = field(default_factory=list)
    images: list[ImageBlock] = field(default_factory=list)
    results: list[CallResult] = field(default_factory=list)
    volatile_context: str = ""
    is_filler: bool = False

    @property
    def texts(self) -> list[str]:
        """The texts of the group, in order."""
        return [block.text for block in self.blocks if isinstance(block, TextBlock)]

    @property
    def calls(self) -> list[ToolCallBlock]:
        """The tool calls of the group, in order; empty for a group of the user."""
        return [block for block in self.blocks if isinstance(block, ToolCallBlock)]

    @property
    def reasoning(self) -> list[ReasoningBlock]:
        """The reasoning of the group, in order, in the form in which its provider sent it."""
        return [block for block in self.blocks if isinstance(block, ReasoningBlock)]

    def awaits_result(self, call_id: str) -> bool:
        """Return whether the group made this call and has no result of it."""
        is_caller = any(call.tool_call_id == call_id for call in self.calls)
        return is_caller and not any(result.call_id == call_id for result in self.results)


def group_messages(request: ModelRequest, provider: str, format_call_id: CallIdFormatter) -> list[MessageGroup]:
    """Group the conversation so that the sides alternate, a user begins, and a user or results end it.

    Call ids become unique ids that the provider accepts. Reasoning of another provider or model is left out, and so are
    empty texts and reasoning that nothing follows.
    """
    grouping = _MessageGrouping(provider, request.model, CallIdMapper(format_call_id))
    for message in request.messages:
        if message.role == "tool":
            grouping.add_result(message)
        else:
            grouping.add_message(message)
    for group in grouping.groups:
        _drop_trailing_reasoning(group)
    return _alternate_sides([group for group in grouping.groups if group.blocks or group.images], request.volatile)


class _MessageGrouping:
    """The groups of the messages that were added so far, in their order."""

    def __init__(self, provider: str, model: str, call_ids: "CallIdMapper") -> None:
        self.groups: list[MessageGroup] = []
        self._origin = (provider, model)
        self._call_ids = call_ids

    def add_message(self, message: Message) -> None:
        if not self.groups or self.groups[-1].role != message.role or self.groups[-1].results:
            self.groups.append(MessageGroup(message.role))
        group = self.groups[-1]
        for block in message.content:
            match block.kind:  # by name: an isinstance check of a pydantic model is slow, and histories are long
                case "text":
                    if block.text.strip():
                        group.blocks.append(block)
                case "image":
                    if message.role == "user":
                        group.images.append(block)
                case "toolCall":
                    if message.role == "assistant":
                        group.blocks.append(self._with_wire_id(block))
                case "reasoning":
                    if message.role == "assistant" and (block.provider, block.model) == self._origin:
                        group.blocks.append(block)
                case "toolResult":
                    pass  # results have rows of their own
                case "blob":
                    raise ValueError("a blob must be fetched before it is sent to a provider")
                case _:
                    assert_never(block)

    def _with_wire_id(self, call: ToolCallBlock) -> ToolCallBlock:
        call_id = self._call_ids.map_call_id(call.tool_call_id)
        return call if call_id == call.tool_call_id else call.model_copy(update={"tool_call_id": call_id})

    def add_result(self, message: Message) -> None:
        """Add a result to the newest group of the model, even if messages of a user are in between."""
        caller = next((group for group in reversed(self.groups) if group.role == "assistant"), None)
        call_id = self._call_ids.map_result_id(message.tool_call_id or "")
        for block in message.content:
            if block.kind == "blob":
                raise ValueError("a blob must be fetched before it is sent to a provider")
            if caller is not None and block.kind == "toolResult" and caller.awaits_result(call_id):
                caller.results.append(CallResult(call_id, message.tool_name or "", block))


def _drop_trailing_reasoning(group: MessageGroup) -> None:
    """Reasoning that nothing follows is refused by the providers that have it (decision 0071)."""
    while group.role == "assistant" and group.blocks and group.blocks[-1].kind == "reasoning":
        group.blocks.pop()


def _alternate_sides(groups: list[MessageGroup], volatile: str) -> list[MessageGroup]:
    merged: list[MessageGroup] = []
    for group in groups:
        if merged and merged[-1].role == group.role and not merged[-1].results:
            merged[-1].blocks += group.blocks
            merged[-1].images += group.images
            merged[-1].results += group.results
        else:
            merged.append(group)
    if not merged or merged[0].role == "assistant":
        merged.insert(0, _make_filler_prompt())
    if merged[-1].role == "assistant" and not merged[-1].results:
        merged.append(_make_filler_prompt())
    if volatile.strip():
        prompts = [group for group in merged if group.role == "user"]
        newest = next((group for group in reversed(prompts) if not group.is_filler), prompts[-1])
        newest.volatile_context = f"<context>\n{volatile}\n</context>"
    return merged


def _make_filler_prompt() -> MessageGroup:
    return MessageGroup("user", [TextBlock(text=CONTINUE_PROMPT)], is_filler=True)


class CallIdMapper:
    """Map call ids to ids that a provider accepts and that are unique in the request; always to the same ones."""

    def __init__(self, format_call_id: CallIdFormatter) -> None:
        self._format_call_id = format_call_id
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}
        self._latest: dict[str, str] = {}

    def map_call_id(self, call_id: str) -> str:
        count = self._counts.get(call_id, 0) + 1
        while (wire_id := self._format_call_id(call_id, count)) in self._used:
            count += 1
        self._used.add(wire_id)
        self._counts[call_id] = count
        self._latest[call_id] = wire_id
        return wire_id

    def map_result_id(self, call_id: str) -> str:
        """Return the id of the newest call with that id."""
        return self._latest.get(call_id) or self._format_call_id(call_id, 1)


def plain_id_formatter(max_chars: int) -> CallIdFormatter:
    """Make a formatter for ids of letters, digits, `_` and `-`."""

    def format_call_id(call_id: str, number: int) -> str:
        suffix = "" if number == 1 else f"_{number}"
        return (_to_plain_id(call_id)[: max_chars - len(suffix)] or "_") + suffix

    return format_call_id


@lru_cache(4096)
def _to_plain_id(text: str) -> str:
    return _NOT_IN_PLAIN_ID.sub("_", text)


def format_nine_character_id(call_id: str, number: int) -> str:
    """Format an id for Mistral, which accepts exactly nine letters or digits."""
    if number == 1 and _NINE_CHARACTERS.fullmatch(call_id):
        return call_id
    return hashlib.sha256(f"{number}:{call_id}".encode("utf-8", "replace")).hexdigest()[:9]


def get_call_arguments(call: ToolCallBlock) -> dict[str, object]:
    """Return a call's arguments; none for a call that was cut off, because it never ran."""
    return call.input if isinstance(call.input, dict) and not call.malformed else {}


def schema_with_properties(spec: ToolSpec) -> dict[str, object]:
    """Return a tool's schema; some providers refuse an object schema without `properties`, even for no arguments."""
    return spec.input_schema if "properties" in spec.input_schema else {**spec.input_schema, "properties": {}}


@WeakCache
def encode_result_data(block: ToolResultBlock) -> str:
    """Encode a result's data as JSON. The history is sent again with every round, so this is cached."""
    return encode_compact_json({"ok": True} if block.data is None else block.data)


@WeakCache
def encode_call_arguments(call: ToolCallBlock) -> str:
    """Encode a call's arguments as JSON; cached like `encode_result_data`."""
    return encode_compact_json(get_call_arguments(call))


def format_result_text(block: ToolResultBlock) -> str:
    """Format a result for a provider that reads text only: data or error, and how many images are left out."""
    text = encode_result_data(block) if block.ok else (block.error or "").strip() or "The tool failed."
    return f"{text}\n\n{OMITTED_SCREENSHOTS_NOTE.format(len(block.images))}" if block.images else text


def get_image_base64(image: ImageBlock) -> str:
    if image.data is None:
        raise ValueError("an image must be fetched before it is sent to a provider")
    return image.data


def image_to_data_url(image: ImageBlock) -> str:
    return f"data:{image.mime_type};base64,{get_image_base64(image)}"
