"""Fold the messages of a history into those of a Messages request: consecutive ones of one side become one message."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, assert_never

from fermata.domain.blocks import Block, ImageBlock, ReasoningBlock, ToolResultBlock
from fermata.domain.messages import Message
from fermata.drivers.protocols.call_id_mapping import CallIdMapper, plain_id_formatter
from fermata.drivers.protocols.encode_items_once import EncodedPart
from fermata.drivers.protocols.json_fields import as_text
from fermata.drivers.protocols.shared_encoding import (
    CONTINUE_PROMPT,
    encode_result,
    get_image_base64,
)

_JsonObject = dict[str, Any]

CACHE_BREAKPOINT = {"type": "ephemeral"}
THINKING_BLOCK_TYPES = ("thinking", "redacted_thinking")
_REQUIRED_FIELDS = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
"""The API refuses a thinking block without these fields, and with any other."""
format_anthropic_id = plain_id_formatter(128)


@dataclass
class AnthropicMessage:
    """One message on the wire: consecutive messages of one side."""

    role: str
    blocks: list[_JsonObject] = field(default_factory=list)
    has_prompt: bool = False
    """Whether a user speaks in it, and not only tools."""

    def add_blocks(self, blocks: list[_JsonObject]) -> None:
        """Add blocks. Tool results come first in a message, and calls last. Thinking begins it, or is left out."""
        if (self.blocks or blocks)[0]["type"] not in THINKING_BLOCK_TYPES:
            blocks = [block for block in blocks if block["type"] not in THINKING_BLOCK_TYPES]
        self.blocks += blocks
        self.blocks.sort(key=_get_place)

    @cached_property
    def part(self) -> EncodedPart:
        """The message in a request, once it is complete."""
        return self.build_part(())

    def build_part(self, volatile: Sequence[_JsonObject], *, is_breakpoint: bool = False) -> EncodedPart:
        """Build the message with what follows its blocks; a breakpoint is before that."""
        content = [*self.blocks, *volatile]
        if is_breakpoint:
            last = len(self.blocks) - 1
            content[last] = {**content[last], "cache_control": CACHE_BREAKPOINT}
        return EncodedPart([{"role": self.role, "content": content}])


def _get_place(block: _JsonObject) -> int:
    """Results begin a message. Calls end it: words between calls and results are refused by some servers."""
    return {"tool_result": -1, "tool_use": 1}.get(block["type"], 0)


class AnthropicMessageFold:
    """The messages on the wire. All but the last are complete."""

    def __init__(self, model: str, call_ids: CallIdMapper, *, with_history_thinking: bool) -> None:
        self._model = model
        self._with_history_thinking = with_history_thinking
        self._call_ids = call_ids
        self._messages: list[AnthropicMessage] = []

    def copy(self) -> Self:
        copied = type(self)(self._model, self._call_ids.copy(), with_history_thinking=self._with_history_thinking)
        copied._messages = [*self._messages]
        copied._own_last_message()
        return copied

    def _own_last_message(self) -> None:
        """Copy the last message, which may change, while those before it are shared with other folds."""
        self._messages[-1:] = [replace(last, blocks=[*last.blocks]) for last in self._messages[-1:]]

    def add_message(self, message: Message) -> None:
        blocks = [mapped for block in message.content if (mapped := self._build_block(block, message))]
        role = "assistant" if message.role == "assistant" else "user"
        if not blocks:
            return
        if self._messages and self._messages[-1].role != role:
            self._drop_final_thinking()
        if not self._messages or self._messages[-1].role != role:
            self._messages.append(AnthropicMessage(role))
        self._messages[-1].add_blocks(blocks)
        self._messages[-1].has_prompt |= message.role == "user"

    def _drop_final_thinking(self) -> None:
        """Drop thinking that nothing follows: no message of the model may end with it (docs/provider-rules.md)."""
        blocks = self._messages[-1].blocks if self._messages else []
        while blocks and blocks[-1]["type"] in THINKING_BLOCK_TYPES:
            blocks.pop()
        if self._messages and not blocks:
            self._messages.pop()
            self._own_last_message()

    def _build_block(self, block: Block, message: Message) -> _JsonObject | None:
        match block.kind:  # by name: an isinstance check of a pydantic model is slow, and histories are long
            case "text":
                return {"type": "text", "text": block.text} if block.text.strip() else None
            case "image":
                return _build_image(block) if message.role != "assistant" else None
            case "audio":
                return None  # its transcript is a text
            case "toolCall":
                arguments = block.input if isinstance(block.input, dict) and not block.malformed else {}
                call_id = self._call_ids.map_call_id(block.tool_call_id)
                return {
                    "type": "tool_use",
                    "id": call_id,
                    "name": format_anthropic_id(block.tool_name, 1),
                    "input": arguments,
                }
            case "toolResult":
                return _build_result(block, self._call_ids.map_result_id(message.tool_call_id or ""))
            case "reasoning":
                is_sendable = self._with_history_thinking and message.role == "assistant"
                return _build_thinking_block(block) if is_sendable and _may_send_back(block, self._model) else None
            case "blob":
                raise ValueError("a blob must be fetched before it is sent to a provider")
            case _:
                assert_never(block)

    def finish(self) -> list[AnthropicMessage]:
        """Return all messages, begun by a user and ended by a user or by results."""
        self._drop_final_thinking()
        messages = self._messages
        if not messages or messages[0].role == "assistant":
            messages.insert(0, _make_filler_message())
        if messages[-1].role == "assistant" and messages[-1].blocks[-1]["type"] == "text":
            # The API refuses a request that ends with the model's own words. It may end with other blocks: work that
            # the model's own tools have paused (`pause_turn`).
            messages.append(_make_filler_message())
        return messages


def _make_filler_message() -> AnthropicMessage:
    return AnthropicMessage("user", [{"type": "text", "text": CONTINUE_PROMPT}])


def _may_send_back(block: ReasoningBlock, model: str) -> bool:
    """Return whether a block is complete, signature included, and of this model."""
    required = _REQUIRED_FIELDS.get(as_text(block.payload.get("type")), ("type",))
    is_complete = all(isinstance(block.payload.get(name), str) for name in required)
    is_own = (block.provider, block.model) == ("anthropic", model)
    return is_complete and is_own and block.payload.get("signature") != ""


def _build_thinking_block(block: ReasoningBlock) -> _JsonObject:
    """Return the block unchanged, except for thinking: the API refuses other than its required fields."""
    required = _REQUIRED_FIELDS.get(block.payload["type"])
    return {name: block.payload[name] for name in ("type", *required)} if required else dict(block.payload)


def _build_result(block: ToolResultBlock, call_id: str) -> _JsonObject:
    result: _JsonObject = {"type": "tool_result", "tool_use_id": call_id}
    if not block.ok:
        # The API accepts nothing but text in a failed result.
        return result | {"content": encode_result(block), "is_error": True}
    text = encode_result(block)
    if not block.images:
        return result | {"content": text}
    return result | {"content": [{"type": "text", "text": text}, *map(_build_image, block.images)]}


def _build_image(block: ImageBlock) -> _JsonObject:
    source = {"type": "base64", "media_type": block.mime_type, "data": get_image_base64(block)}
    return {"type": "image", "source": source}
