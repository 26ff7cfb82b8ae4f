"""Map a model request to the body of a Messages request that the API accepts and can cache (decision 0060).

- The order is tools, system, messages; the API caches a request up to each of its at most four breakpoints, byte for
  byte. Turns and rounds only ever append, so each request finds the prefix of the last one in the cache.
- `ModelRequest.volatile` changes from turn to turn, so it is not part of `system`: it follows the newest prompt,
  behind a breakpoint. It stays there while the turn's rounds follow, because newer models discard their own thinking
  when anything before it has changed, and because text behind tool results makes models end their turn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress, islice
from operator import attrgetter
from typing import Any, Self, assert_never

from fermata.domain.blocks import Block, ImageBlock, ReasoningBlock, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest
from fermata.domain.tools import ToolSpec
from fermata.domain.untrusted_text import frame_context
from fermata.domain.weak_cache import WeakCache
from fermata.drivers.adjustments import NO_ADJUSTMENTS, AppliedAdjustments
from fermata.drivers.protocols.anthropic_messages.thinking import (
    MIN_THINKING_BUDGET_TOKENS,
    get_anthropic_allowance,
    get_max_output_tokens,
    get_thinking_mode,
    has_bound_thinking,
    has_output_schemas,
)
from fermata.drivers.protocols.call_id_mapping import CallIdMapper, choose_call_id_formatter, plain_id_formatter
from fermata.drivers.protocols.encode_items_once import EncodedItems, EncodedPart
from fermata.drivers.protocols.json_fields import as_text
from fermata.drivers.protocols.shared_encoding import (
    CONTINUE_PROMPT,
    build_tool_schema,
    encode_result,
    get_image_base64,
)

THINKING_BINDING_BETA = "thinking-binding-controls-2026-08-01"
NO_THINKING_ADJUSTMENT = "disable thinking"
"""The adjustment for a model that does not think, or not in the way its name suggests."""
_CACHE_BREAKPOINT = {"type": "ephemeral"}
_THINKING_TYPES = ("thinking", "redacted_thinking")
_REQUIRED_FIELDS = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
"""The API refuses a thinking block without these fields, and with any other."""
_format_id = plain_id_formatter(128)

_JsonObject = dict[str, Any]


def build_request_body(
    request: ModelRequest,
    applied: AppliedAdjustments = NO_ADJUSTMENTS,
    *,
    with_thinking: bool = True,
    with_history_thinking: bool = True,
) -> _JsonObject:
    """Build the JSON body.

    Args:
        applied: Decides about the form of call ids.
        with_thinking: Whether the model is asked to think at all.
        with_history_thinking: Whether its earlier thinking is sent back.
    """
    format_call_id = choose_call_id_formatter(applied, _format_id)
    messages = request.message_prefix_cache.fold_messages(
        ("anthropic", request.model, with_history_thinking, format_call_id),
        request.messages,
        lambda: _MessageFold(request.model, CallIdMapper(format_call_id), with_history_thinking=with_history_thinking),
    ).finish()
    body: _JsonObject = {"model": request.model, "max_tokens": request.max_tokens, "stream": True}
    system: list[_JsonObject] = []
    if request.system.strip():
        system.append({"type": "text", "text": request.system, "cache_control": _CACHE_BREAKPOINT})
    tools = _encode_tools(request.tools, is_breakpoint=not system)
    if tools:
        body["tools"] = tools
    if tools and not request.call_tools:
        body["tool_choice"] = {"type": "none"}
    elif request.forced_tool:
        body["tool_choice"] = _build_tool_choice(request.forced_tool)
    if system:
        body["system"] = system
    if request.output is not None and has_output_schemas(request.model):
        body["output_config"] = {"format": {"type": "json_schema", "schema": request.output.json_schema}}
    # A model that has to call a tool does not think first: the API refuses both together.
    if with_thinking and not request.forced_tool and (thinking := _build_thinking(request, messages)):
        body |= {"thinking": thinking, "max_tokens": _get_output_limit(request)}
    body["messages"] = _encode_messages(messages, _build_volatile(request))
    return body


def _build_tool_choice(forced_tool: str) -> _JsonObject:
    return {"type": "any"} if forced_tool == "*" else {"type": "tool", "name": forced_tool}


def _encode_messages(messages: list["_WireMessage"], volatile: list[_JsonObject]) -> EncodedItems:
    """Put the messages together. Breakpoints and the volatile part change only few of them, which move."""
    prompt = _find_newest_prompt(messages)
    breakpoints = _choose_breakpoints(messages)
    parts = list(map(_get_part, messages))
    for index in {prompt, *breakpoints}:
        parts[index] = messages[index].build_part(
            volatile if index == prompt else (), is_breakpoint=index in breakpoints
        )
    return EncodedItems(parts)


@dataclass
class _WireMessage:
    """One message on the wire: consecutive messages of one side."""

    role: str
    blocks: list[_JsonObject] = field(default_factory=list)
    has_prompt: bool = False
    """Whether a user speaks in it, and not only tools."""

    def add_blocks(self, blocks: list[_JsonObject]) -> None:
        """Add blocks. Tool results come first in a message, and calls last. Thinking begins it, or is left out."""
        if (self.blocks or blocks)[0]["type"] not in _THINKING_TYPES:
            blocks = [block for block in blocks if block["type"] not in _THINKING_TYPES]
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
            content[last] = {**content[last], "cache_control": _CACHE_BREAKPOINT}
        return EncodedPart([{"role": self.role, "content": content}])


_get_part = attrgetter("part")
_has_prompt = attrgetter("has_prompt")


def _get_place(block: _JsonObject) -> int:
    """Results begin a message. Calls end it: words between calls and results are refused by some servers."""
    return {"tool_result": -1, "tool_use": 1}.get(block["type"], 0)


class _MessageFold:
    """The messages on the wire. All but the last are complete."""

    def __init__(self, model: str, call_ids: CallIdMapper, *, with_history_thinking: bool) -> None:
        self._model = model
        self._with_history_thinking = with_history_thinking
        self._call_ids = call_ids
        self._messages: list[_WireMessage] = []

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
            self._messages.append(_WireMessage(role))
        self._messages[-1].add_blocks(blocks)
        self._messages[-1].has_prompt |= message.role == "user"

    def _drop_final_thinking(self) -> None:
        """Drop thinking that nothing follows: no message of the model may end with it (docs/provider-rules.md)."""
        blocks = self._messages[-1].blocks if self._messages else []
        while blocks and blocks[-1]["type"] in _THINKING_TYPES:
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
                return {"type": "tool_use", "id": call_id, "name": _format_id(block.tool_name, 1), "input": arguments}
            case "toolResult":
                return _build_result(block, self._call_ids.map_result_id(message.tool_call_id or ""))
            case "reasoning":
                is_sendable = self._with_history_thinking and message.role == "assistant"
                return _build_thinking_block(block) if is_sendable and _may_send_back(block, self._model) else None
            case "blob":
                raise ValueError("a blob must be fetched before it is sent to a provider")
            case _:
                assert_never(block)

    def finish(self) -> list[_WireMessage]:
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


def _make_filler_message() -> _WireMessage:
    return _WireMessage("user", [{"type": "text", "text": CONTINUE_PROMPT}])


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


def _build_tool(spec: ToolSpec) -> _JsonObject:
    description = {"description": spec.description} if spec.description else {}
    return {"name": spec.name, **description, "input_schema": build_tool_schema(spec)}


@WeakCache
def _build_tool_part(spec: ToolSpec) -> EncodedPart:
    return EncodedPart([_build_tool(spec)])


def _encode_tools(specs: Sequence[ToolSpec], *, is_breakpoint: bool) -> EncodedItems:
    """Put the tools together, each of which is encoded once in a process."""
    parts = list(map(_build_tool_part, specs))
    if is_breakpoint:
        parts[-1:] = [EncodedPart([{**part.items[0], "cache_control": _CACHE_BREAKPOINT}]) for part in parts[-1:]]
    return EncodedItems(parts)


def _choose_breakpoints(messages: list[_WireMessage]) -> list[int]:
    """Return the places of the messages to cache up to: the two newest of our side, and the newest prompt before these.

    The second newest is where the last round's request ended. The prompt is where the last turn's prefix ends that no
    volatile text has changed.
    """
    newest = list(islice(_list_newest_of_ours(messages), 2))
    return [*newest, *islice(_list_newest_prompts(messages, newest[-1]), 1)]


def _find_newest_prompt(messages: list[_WireMessage]) -> int:
    """Return the place of the newest message in which a user speaks, or without one the newest of our side."""
    prompt = next(_list_newest_prompts(messages, len(messages)), None)
    return next(_list_newest_of_ours(messages)) if prompt is None else prompt


def _list_newest_of_ours(messages: list[_WireMessage]) -> Iterator[int]:
    """Yield the places of our side's messages, the newest first. There is always one: the first message is ours."""
    return (index for index in reversed(range(len(messages))) if messages[index].role == "user")


def _list_newest_prompts(messages: list[_WireMessage], end: int) -> Iterator[int]:
    """Yield the places before `end` where a user speaks, the newest first. A turn of many rounds has one, far back."""
    return compress(reversed(range(end)), map(_has_prompt, islice(reversed(messages), len(messages) - end, None)))


def _build_volatile(request: ModelRequest) -> list[_JsonObject]:
    """Build what follows the newest prompt and is not cached."""
    context = frame_context(request.volatile, request.instruction)
    return [{"type": "text", "text": context}] if context else []


def _build_thinking(request: ModelRequest, messages: list[_WireMessage]) -> _JsonObject | None:
    match get_thinking_mode(request.model, request.thinking_tokens):
        case "adaptive":
            # Summaries are asked for, because these models write their notes between two calls as thinking.
            thinking: _JsonObject = {"type": "adaptive", "display": "summarized"}
            if has_bound_thinking(request.model):
                # Without this, the API refuses a history that has changed: a shortened result, a new context.
                thinking["block_binding"] = {"prefix_mismatch_behavior": "drop_block"}
            return thinking
        case "enabled":
            allowance = get_anthropic_allowance(request.model, request.thinking_tokens)
            budget = min(allowance, get_max_output_tokens(request.model) - request.max_tokens)
            if budget >= MIN_THINKING_BUDGET_TOKENS and not _lacks_required_thinking(messages):
                return {"type": "enabled", "budget_tokens": budget}
    return None


def _get_output_limit(request: ModelRequest) -> int:
    """Return the tokens of the answer and of the thinking before it."""
    limit = request.max_tokens + get_anthropic_allowance(request.model, request.thinking_tokens)
    return max(request.max_tokens, min(limit, get_max_output_tokens(request.model)))


def _lacks_required_thinking(messages: list[_WireMessage]) -> bool:
    """Return whether the newest calls' message lacks its thinking, which the API requires with a budget."""
    if len(messages) < 2 or messages[-1].blocks[0]["type"] != "tool_result":
        return False
    return messages[-2].blocks[0]["type"] not in _THINKING_TYPES
