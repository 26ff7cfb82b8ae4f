"""Maps an `Ask` to the body of a Messages request that the API accepts and can cache.

What it may look like and why:
- Order is tools, system, messages; a request is cached up to each of its at most four breakpoints, byte for byte. Turns
  and rounds only ever add to the end, so each request finds the prefix of the last one.
- `Ask.volatile` changes from turn to turn, so it stands outside of `system`: at the end of the newest prompt, behind a
  breakpoint. There it stays while the turn's rounds follow it, because newer models throw away their own thinking when
  anything before it has changed, and because text behind tool results makes models end their turn.
"""

from dataclasses import dataclass, field
from typing import Any, assert_never

from fermata.domain.blocks import Block, ImageBlock, ReasoningBlock, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest
from fermata.drivers.protocols.anthropic_messages.thinking import (
    MIN_THINKING_BUDGET_TOKENS,
    get_anthropic_allowance,
    get_max_output_tokens,
    get_thinking_mode,
    has_bound_thinking,
)
from fermata.drivers.protocols.json_fields import as_text
from fermata.drivers.protocols.message_mapping import (
    CONTINUE_PROMPT,
    CallIdMapper,
    encode_result_data,
    get_image_base64,
    plain_id_formatter,
)

THINKING_BINDING_BETA = "thinking-binding-controls-2026-08-01"
DISABLE_THINKING = "without thinking"
"""The adjustment for a model that does not think, or not in the way its name lets one expect."""
OMIT_THINKING_BLOCKS = "without thoughts"
"""The adjustment for a server that cannot verify what it once signed: another account's, another gateway's."""

_MARK = {"type": "ephemeral"}
_THINKING = ("thinking", "redacted_thinking")
_NEEDED = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
"""Texts without which a block is refused."""
_fit = plain_id_formatter(128)


def build_request_body(ask: ModelRequest, *, with_thinking: bool = True) -> dict[str, Any]:
    turns = _turns(ask)
    body: dict[str, Any] = {"model": ask.model, "max_tokens": ask.max_tokens, "stream": True}
    tools = [_tool(spec.name, spec.description, spec.input_schema) for spec in ask.tools]
    system: list[dict[str, Any]] = [{"type": "text", "text": ask.system}] if ask.system.strip() else []
    for block in (system or tools)[-1:]:
        block["cache_control"] = _MARK
    for turn in _anchors(turns):
        turn.blocks[-1]["cache_control"] = _MARK
    _say_volatile(ask.volatile, turns)
    if tools:
        body["tools"] = tools
    if tools and not ask.call_tools:
        body["tool_choice"] = {"type": "none"}
    if system:
        body["system"] = system
    if with_thinking and (thinking := _thinking(ask, turns)):
        body |= {"thinking": thinking, "max_tokens": _limit(ask)}
    return body | {"messages": [{"role": turn.role, "content": turn.blocks} for turn in turns]}


def drop_thinking_blocks(ask: ModelRequest) -> ModelRequest:
    return ask.model_copy(update={"messages": tuple(map(_thoughtless, ask.messages))})


def _thoughtless(message: Message) -> Message:
    content = tuple(block for block in message.content if block.kind != "reasoning")
    return message.model_copy(update={"content": content})


@dataclass
class _WireMessage:
    """One message on the wire: rows in a row of the same side."""

    role: str
    blocks: list[dict[str, Any]] = field(default_factory=list)
    prompt: bool = False
    """A person speaks in it, not only tools."""

    def add(self, blocks: list[dict[str, Any]]) -> None:
        """Tool results come first, whatever else the message says. So does thinking, or it is left out."""
        if (self.blocks or blocks)[0]["type"] not in _THINKING:
            blocks = [block for block in blocks if block["type"] not in _THINKING]
        self.blocks += blocks
        self.blocks.sort(key=_comes_late)


def _comes_late(block: dict[str, Any]) -> bool:
    return bool(block["type"] != "tool_result")


def _turns(ask: ModelRequest) -> list[_WireMessage]:
    turns: list[_WireMessage] = []
    names = CallIdMapper(_fit)
    for message in ask.messages:
        blocks = [wired for block in message.content if (wired := _block(block, message, ask, names))]
        role = "assistant" if message.role == "assistant" else "user"
        if not blocks:
            continue
        if not turns or turns[-1].role != role:
            turns.append(_WireMessage(role))
        turns[-1].add(blocks)
        turns[-1].prompt |= message.role == "user"
    if not turns or turns[0].role == "assistant":
        turns.insert(0, _WireMessage("user", [{"type": "text", "text": CONTINUE_PROMPT}]))
    if turns[-1].role == "assistant" and turns[-1].blocks[-1]["type"] in ("text", *_THINKING):
        # A request may not end with words put in the model's mouth. Work its own tools paused on may stand last.
        turns.append(_WireMessage("user", [{"type": "text", "text": CONTINUE_PROMPT}]))
    return turns


def _block(block: Block, message: Message, ask: ModelRequest, names: CallIdMapper) -> dict[str, Any] | None:
    match block.kind:  # by name: an isinstance check of a pydantic model is slow, and histories are long
        case "text":
            return {"type": "text", "text": block.text} if block.text.strip() else None
        case "image":
            return _image(block) if message.role != "assistant" else None
        case "toolCall":
            value = block.input if isinstance(block.input, dict) and not block.malformed else {}
            name = _fit(block.tool_name, 1)
            return {"type": "tool_use", "id": names.map_call_id(block.tool_call_id), "name": name, "input": value}
        case "toolResult":
            return _result(block, names.map_result_id(message.tool_call_id or ""))
        case "reasoning":
            return _thought(block) if message.role == "assistant" and _may_return(block, ask.model) else None
        case "blob":
            raise ValueError("a blob must be fetched before it is sent to a provider")
        case _:
            assert_never(block)


def _may_return(block: ReasoningBlock, model: str) -> bool:
    """Whole or not at all: only to the model it came from, and only if its signature arrived."""
    needed = _NEEDED.get(as_text(block.payload.get("type")), ("type",))
    is_whole = all(isinstance(block.payload.get(name), str) for name in needed)
    return is_whole and block.payload.get("signature") != "" and (block.provider, block.model) == ("anthropic", model)


def _thought(block: ReasoningBlock) -> dict[str, Any]:
    """As it came. Of thinking only what may be sent: a member more would be refused, here and ever after."""
    needed = _NEEDED.get(block.payload["type"])
    return {name: block.payload[name] for name in ("type", *needed)} if needed else dict(block.payload)


def _result(block: ToolResultBlock, call_id: str) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
    if not block.ok:
        # A failed result may hold nothing but text.
        return result | {"content": (block.error or "").strip() or "The tool failed.", "is_error": True}
    text = encode_result_data(block)
    if not block.images:
        return result | {"content": text}
    return result | {"content": [{"type": "text", "text": text}, *map(_image, block.images)]}


def _image(block: ImageBlock) -> dict[str, Any]:
    source = {"type": "base64", "media_type": block.mime_type, "data": get_image_base64(block)}
    return {"type": "image", "source": source}


def _tool(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    said = {"description": description} if description else {}
    return {"name": name, **said, "input_schema": schema}


def _anchors(turns: list[_WireMessage]) -> list[_WireMessage]:
    """Where the conversation is cached: the two newest messages of our side, and the newest prompt before them.

    The second newest is where the last round's request ended. The prompt is where the last turn's prefix ends that no
    volatile text has touched.
    """
    ours = [turn for turn in turns if turn.role == "user"]
    prompts = [turn for turn in ours[:-2] if turn.prompt]
    return ours[-2:] + prompts[-1:]


def _say_volatile(text: str, turns: list[_WireMessage]) -> None:
    if not text.strip():
        return
    ours = [turn for turn in turns if turn.role == "user"]
    prompt = next((turn for turn in reversed(ours) if turn.prompt), ours[-1])
    prompt.blocks.append({"type": "text", "text": f"<context>\n{text}\n</context>"})


def _thinking(ask: ModelRequest, turns: list[_WireMessage]) -> dict[str, Any] | None:
    """Thinking that a model decides on is shown, because its notes between two tool calls come as thinking too."""
    match get_thinking_mode(ask.model, ask.thinking_tokens):
        case "adaptive":
            adaptive: dict[str, Any] = {"type": "adaptive", "display": "summarized"}
            # Without this, a turn on a changed history (a result shortened, a new context) is refused.
            binding = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
            return adaptive | binding if has_bound_thinking(ask.model) else adaptive
        case "enabled":
            budget = min(
                get_anthropic_allowance(ask.model, ask.thinking_tokens),
                get_max_output_tokens(ask.model) - ask.max_tokens,
            )
            if budget >= MIN_THINKING_BUDGET_TOKENS and not _lost_its_thinking(turns):
                return {"type": "enabled", "budget_tokens": budget}
    return None


def _limit(ask: ModelRequest) -> int:
    """Tokens of the answer and of the thinking before it."""
    wanted = ask.max_tokens + get_anthropic_allowance(ask.model, ask.thinking_tokens)
    return max(ask.max_tokens, min(wanted, get_max_output_tokens(ask.model)))


def _lost_its_thinking(turns: list[_WireMessage]) -> bool:
    """With a budget, the answer that asked for the newest tool results has to begin with its thinking."""
    if len(turns) < 2 or turns[-1].blocks[0]["type"] != "tool_result":
        return False
    return turns[-2].blocks[0]["type"] not in _THINKING
