"""Maps an `Ask` to a chat-completions body that servers of many makers accept.

Templates behind these servers want turns that alternate, content as plain text where it can be, and every call of a
turn in one message with its results right behind it.
"""

from typing import Any

from fermata.domain.model_io import ModelRequest
from fermata.domain.tools import ToolSpec
from fermata.drivers.protocols.message_mapping import (
    MessageGroup,
    encode_call_arguments,
    format_nine_character_id,
    format_result_text,
    group_messages,
    image_to_data_url,
    plain_id_formatter,
    schema_with_properties,
)

REASONING_DETAILS_FIELD = "reasoning_details"
REASONING_FIELDS = ("reasoning_content", "reasoning", REASONING_DETAILS_FIELD)
"""Where servers put what a model thought."""
EXTRA_CONTENT_FIELD = "extra_content"
"""Where some put the signature of a call."""
_MAX_CALL_ID_CHARS = 40
_MAX_TOOL_NAME_CHARS = 64
NINE_CHARACTER_CALL_IDS = "ids of nine characters"
ADD_EMPTY_REASONING = "empty thoughts"
"""A server in thinking mode wants thoughts at every call, also at those another model made."""
ADD_PLACEHOLDER_SIGNATURES = "empty signatures"
"""The same, for signatures."""
OMIT_REASONING_FIELDS = "without thoughts"

_NO_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""What the maker documents for calls that come from elsewhere."""

_JsonObject = dict[str, Any]


def build_request_body(ask: ModelRequest, provider: str, adjusted: frozenset[str]) -> dict[str, Any]:
    turns = group_messages(
        ask,
        provider,
        format_nine_character_id if NINE_CHARACTER_CALL_IDS in adjusted else plain_id_formatter(_MAX_CALL_ID_CHARS),
    )
    messages: list[_JsonObject] = [{"role": "system", "content": ask.system}] if ask.system.strip() else []
    for turn in turns:
        messages += _user(turn) if turn.role == "user" else _assistant(turn, adjusted)
    body: dict[str, Any] = {"model": ask.model, "messages": messages, "stream": True}
    body["stream_options"] = {"include_usage": True}
    body["max_tokens"] = ask.max_tokens
    if ask.tools:
        body["tools"] = [build_function_tool(spec) for spec in ask.tools]
    if ask.tools and not ask.call_tools:
        body["tool_choice"] = "none"
    return body


def build_function_tool(spec: ToolSpec) -> _JsonObject:
    said = {"description": spec.description} if spec.description else {}
    return {"type": "function", "function": {"name": spec.name, **said, "parameters": schema_with_properties(spec)}}


def format_user_text(turn: MessageGroup) -> str:
    """A person's words in one text, and what stands behind them in a paragraph of its own."""
    said = " ".join(turn.texts)
    return f"{said}\n\n{turn.volatile}" if said and turn.volatile else said or turn.volatile


def _user(turn: MessageGroup) -> list[_JsonObject]:
    if not turn.images:
        return [{"role": "user", "content": format_user_text(turn)}]
    texts = [{"type": "text", "text": text} for text in turn.texts]
    images = [{"type": "image_url", "image_url": {"url": image_to_data_url(image)}} for image in turn.images]
    volatile = [{"type": "text", "text": turn.volatile}] if turn.volatile else []
    return [{"role": "user", "content": [*texts, *images, *volatile]}]


def _assistant(turn: MessageGroup, adjusted: frozenset[str]) -> list[_JsonObject]:
    message: _JsonObject = {"role": "assistant", "content": "\n\n".join(turn.texts)}
    if calls := _calls(turn, adjusted):
        message |= _thoughts(turn, adjusted) | {"tool_calls": calls}
    results = [
        {"role": "tool", "tool_call_id": one.call_id, "content": format_result_text(one.block)} for one in turn.results
    ]
    return [message, *results]


def _calls(turn: MessageGroup, adjusted: frozenset[str]) -> list[_JsonObject]:
    """Each call, with what its server wants back along with it."""
    calls: list[_JsonObject] = []
    extra: _JsonObject = {}
    for block in turn.blocks:
        if block.kind == "reasoning" and EXTRA_CONTENT_FIELD in block.payload:
            extra = {EXTRA_CONTENT_FIELD: block.payload[EXTRA_CONTENT_FIELD]}
        elif block.kind == "toolCall":
            function = {
                "name": plain_id_formatter(_MAX_TOOL_NAME_CHARS)(block.tool_name, 1),
                "arguments": encode_call_arguments(block),
            }
            if ADD_PLACEHOLDER_SIGNATURES in adjusted and not extra:
                extra = {EXTRA_CONTENT_FIELD: _NO_SIGNATURE}
            calls.append({"id": block.tool_call_id, "type": "function", "function": function} | extra)
            extra = {}
    return calls


def _thoughts(turn: MessageGroup, adjusted: frozenset[str]) -> _JsonObject:
    """What led to the calls, under the names it came under. Where nothing was called it is of no use any more."""
    if OMIT_REASONING_FIELDS in adjusted:
        return {}
    thoughts: _JsonObject = {"reasoning_content": ""} if ADD_EMPTY_REASONING in adjusted else {}
    for block in turn.reasoning:
        thoughts |= {name: value for name, value in block.payload.items() if name in REASONING_FIELDS}
    return thoughts
