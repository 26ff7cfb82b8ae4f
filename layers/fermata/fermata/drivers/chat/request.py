"""Maps an `Ask` to a chat-completions body that servers of many makers accept.

Templates behind these servers want turns that alternate, content as plain text where it can be, and every call of a
turn in one message with its results right behind it.
"""

from typing import Any

from fermata.drivers.mapping import (
    Turn,
    arguments_text,
    data_url,
    nine_characters,
    plain,
    result_text,
    schema_of,
    turns_of,
)
from fermata.words.model import Ask
from fermata.words.tools import ToolSpec

DETAILS = "reasoning_details"
THOUGHTS = ("reasoning_content", "reasoning", DETAILS)
"""Where servers put what a model thought."""
EXTRA = "extra_content"
"""Where some put the signature of a call."""
LONGEST_CALL_ID = 40
LONGEST_NAME = 64
NINE_CHARACTERS = "ids of nine characters"
EMPTY_THOUGHTS = "empty thoughts"
"""A server in thinking mode wants thoughts at every call, also at those another model made."""
EMPTY_SIGNATURES = "empty signatures"
"""The same, for signatures."""
WITHOUT_THOUGHTS = "without thoughts"

_NO_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""What the maker documents for calls that come from elsewhere."""

Item = dict[str, Any]


def body_of(ask: Ask, provider: str, adjusted: frozenset[str]) -> dict[str, Any]:
    turns = turns_of(ask, provider, nine_characters if NINE_CHARACTERS in adjusted else plain(LONGEST_CALL_ID))
    messages: list[Item] = [{"role": "system", "content": ask.system}] if ask.system.strip() else []
    for turn in turns:
        messages += _user(turn) if turn.role == "user" else _assistant(turn, adjusted)
    body: dict[str, Any] = {"model": ask.model, "messages": messages, "stream": True}
    body["stream_options"] = {"include_usage": True}
    body["max_tokens"] = ask.max_tokens
    if ask.tools:
        body["tools"] = [tool(spec) for spec in ask.tools]
    if ask.tools and not ask.call_tools:
        body["tool_choice"] = "none"
    return body


def tool(spec: ToolSpec) -> Item:
    said = {"description": spec.description} if spec.description else {}
    return {"type": "function", "function": {"name": spec.name, **said, "parameters": schema_of(spec)}}


def prompt_text(turn: Turn) -> str:
    """A person's words in one text, and what stands behind them in a paragraph of its own."""
    said = " ".join(turn.texts)
    return f"{said}\n\n{turn.volatile}" if said and turn.volatile else said or turn.volatile


def _user(turn: Turn) -> list[Item]:
    if not turn.images:
        return [{"role": "user", "content": prompt_text(turn)}]
    texts = [{"type": "text", "text": text} for text in turn.texts]
    images = [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in turn.images]
    volatile = [{"type": "text", "text": turn.volatile}] if turn.volatile else []
    return [{"role": "user", "content": [*texts, *images, *volatile]}]


def _assistant(turn: Turn, adjusted: frozenset[str]) -> list[Item]:
    message: Item = {"role": "assistant", "content": "\n\n".join(turn.texts)}
    if calls := _calls(turn, adjusted):
        message |= _thoughts(turn, adjusted) | {"tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": one.call_id, "content": result_text(one.block)} for one in turn.results]
    return [message, *results]


def _calls(turn: Turn, adjusted: frozenset[str]) -> list[Item]:
    """Each call, with what its server wants back along with it."""
    calls: list[Item] = []
    extra: Item = {}
    for block in turn.said:
        if block.kind == "reasoning" and EXTRA in block.payload:
            extra = {EXTRA: block.payload[EXTRA]}
        elif block.kind == "toolCall":
            function = {"name": plain(LONGEST_NAME)(block.tool_name, 1), "arguments": arguments_text(block)}
            if EMPTY_SIGNATURES in adjusted and not extra:
                extra = {EXTRA: _NO_SIGNATURE}
            calls.append({"id": block.tool_call_id, "type": "function", "function": function} | extra)
            extra = {}
    return calls


def _thoughts(turn: Turn, adjusted: frozenset[str]) -> Item:
    """What led to the calls, under the names it came under. Where nothing was called it is of no use any more."""
    if WITHOUT_THOUGHTS in adjusted:
        return {}
    thoughts: Item = {"reasoning_content": ""} if EMPTY_THOUGHTS in adjusted else {}
    for block in turn.reasoning:
        thoughts |= {name: value for name, value in block.payload.items() if name in THOUGHTS}
    return thoughts
