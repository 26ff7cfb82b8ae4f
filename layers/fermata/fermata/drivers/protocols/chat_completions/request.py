"""Map a model request to a chat-completions body that servers of many makers accept (decision 0073).

The chat templates behind these servers want messages that alternate, plain text where possible, and all calls of a
response in one message with their results right behind it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from fermata.domain.model_io import ModelRequest
from fermata.domain.tools import ToolSpec
from fermata.drivers.adjustments import ADD_PLACEHOLDER_SIGNATURES, MERGE_SYSTEM_INTO_PROMPT, AppliedAdjustments
from fermata.drivers.protocols.call_id_mapping import choose_call_id_formatter, plain_id_formatter
from fermata.drivers.protocols.message_groups import CallResult, MessageGroup, StatelessItems, build_conversation
from fermata.drivers.protocols.shared_encoding import (
    build_tool_schema,
    encode_call_arguments,
    format_result_text,
    image_to_data_url,
)

REASONING_DETAILS_FIELD = "reasoning_details"
REASONING_TEXT_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
REASONING_FIELDS = (*REASONING_TEXT_FIELDS, REASONING_DETAILS_FIELD)
"""Where servers put a model's reasoning."""
EXTRA_CONTENT_FIELD = "extra_content"
"""Where some servers put the signature of a call."""

# Names of adjustments:
ADD_EMPTY_REASONING = "add empty reasoning"
"""For a server that, in thinking mode, wants reasoning at every answer, even at those of another model."""
OMIT_REASONING_FIELDS = "omit reasoning fields"
ANSWER_RESULTS = "answer results"
"""For a server that wants words of the model between results and the next prompt."""
BRIDGE_TEXT = "I have read the results."
SPLIT_PARALLEL_CALLS = "split parallel calls"
"""For templates that take one call in a message: each call is a message of its own, followed by its result."""
NAME_RESULTS = "name results"
"""For a server that wants the tool's name at each result."""

_MAX_CALL_ID_CHARS = 40
_PLACEHOLDER_SIGNATURE = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""What Google documents for calls that come from another model."""
_format_plain_call_id = plain_id_formatter(_MAX_CALL_ID_CHARS)
_format_tool_name = plain_id_formatter(64)

_JsonObject = dict[str, Any]


def build_request_body(request: ModelRequest, provider: str, applied: AppliedAdjustments) -> _JsonObject:
    """Build the JSON body. Reasoning blocks of other providers than `provider` are left out."""
    format_call_id = choose_call_id_formatter(applied, _format_plain_call_id)
    system: list[_JsonObject] = [{"role": "system", "content": request.system}] if request.system.strip() else []

    def build_items(group: MessageGroup) -> list[_JsonObject]:
        return [_build_user(group)] if group.role == "user" else _build_assistant(group, applied)

    messages: list[_JsonObject] = build_conversation(
        request, provider, format_call_id, lambda: StatelessItems(build_items), key=applied, before=system
    )
    if MERGE_SYSTEM_INTO_PROMPT in applied:
        messages = _merge_system(messages)
    if ANSWER_RESULTS in applied:
        messages = [*_iter_with_bridges(messages)]
    body: _JsonObject = {"model": request.model, "messages": messages, "stream": True}
    body["stream_options"] = {"include_usage": True}
    body["max_tokens"] = request.max_tokens
    if request.tools:
        body["tools"] = [build_function_tool(spec) for spec in request.tools]
    if request.tools and not request.call_tools:
        body["tool_choice"] = "none"
    elif request.forced_tool == "*":
        body["tool_choice"] = "required"
    elif request.forced_tool:
        body["tool_choice"] = {"type": "function", "function": {"name": request.forced_tool}}
    if request.output is not None:
        schema = {"name": _format_tool_name(request.output.name, 1), "schema": request.output.json_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def _merge_system(messages: Sequence[_JsonObject]) -> list[_JsonObject]:
    """Return the messages with the instructions in the first prompt."""
    if messages[0]["role"] != "system":
        return [*messages]
    system, prompt, *others = messages
    content = prompt["content"]
    if isinstance(content, str):
        merged: Any = f"{system['content']}\n\n{content}"
    else:
        merged = [{"type": "text", "text": system["content"]}, *content]
    return [{**prompt, "content": merged}, *others]


def _iter_with_bridges(messages: list[_JsonObject]) -> Iterator[_JsonObject]:
    """Yield the messages, with words of the model between results and a prompt."""
    role_before = ""
    for message in messages:
        if (role_before, message["role"]) == ("tool", "user"):
            yield {"role": "assistant", "content": BRIDGE_TEXT}
        yield message
        role_before = message["role"]


def build_function_tool(spec: ToolSpec) -> _JsonObject:
    description = {"description": spec.description} if spec.description else {}
    function = {"name": spec.name, **description, "parameters": build_tool_schema(spec)}
    return {"type": "function", "function": function}


def format_user_text(group: MessageGroup) -> str:
    """Join a user's texts; the volatile part follows as a paragraph of its own."""
    text = " ".join(group.texts)
    return f"{text}\n\n{group.volatile_context}" if text and group.volatile_context else text or group.volatile_context


def _build_user(group: MessageGroup) -> _JsonObject:
    if not group.images:
        return {"role": "user", "content": format_user_text(group)}
    texts = [{"type": "text", "text": text} for text in group.texts]
    images = [{"type": "image_url", "image_url": {"url": image_to_data_url(image)}} for image in group.images]
    volatile = [{"type": "text", "text": group.volatile_context}] if group.volatile_context else []
    return {"role": "user", "content": [*texts, *images, *volatile]}


def _build_assistant(group: MessageGroup, applied: AppliedAdjustments) -> list[_JsonObject]:
    message: _JsonObject = {"role": "assistant", "content": "\n\n".join(group.texts)}
    calls = _build_calls(group, applied)
    if calls or ADD_EMPTY_REASONING in applied:
        message |= _build_reasoning(group, applied)
    results = [_build_result(result, applied) for result in group.results]
    if SPLIT_PARALLEL_CALLS in applied and len(calls) > 1:
        return _split_calls(message, calls, results)
    if calls:
        message["tool_calls"] = calls
    return [message, *results]


def _build_result(result: CallResult, applied: AppliedAdjustments) -> _JsonObject:
    message = {"role": "tool", "tool_call_id": result.call_id, "content": format_result_text(result.block)}
    if NAME_RESULTS in applied:
        message["name"] = _format_tool_name(result.tool_name, 1)
    return message


def _split_calls(
    message: _JsonObject, calls: Sequence[_JsonObject], results: Sequence[_JsonObject]
) -> list[_JsonObject]:
    """Return a message for each call, followed by its result. The first one has the text and the reasoning."""
    split: list[_JsonObject] = []
    for call in calls:
        caller = {"role": "assistant", "content": ""} if split else message
        split.append({**caller, "tool_calls": [call]})
        split += [result for result in results if result["tool_call_id"] == call["id"]]
    return split


def _build_calls(group: MessageGroup, applied: AppliedAdjustments) -> list[_JsonObject]:
    """Build each call together with the extra content that its server expects back."""
    calls: list[_JsonObject] = []
    extra: _JsonObject = {}
    for block in group.blocks:
        if block.kind == "reasoning" and EXTRA_CONTENT_FIELD in block.payload:
            extra = {EXTRA_CONTENT_FIELD: block.payload[EXTRA_CONTENT_FIELD]}
        elif block.kind == "toolCall":
            function = {"name": _format_tool_name(block.tool_name, 1), "arguments": encode_call_arguments(block)}
            if ADD_PLACEHOLDER_SIGNATURES in applied and not extra:
                extra = {EXTRA_CONTENT_FIELD: _PLACEHOLDER_SIGNATURE}
            calls.append({"id": block.tool_call_id, "type": "function", "function": function} | extra)
            extra = {}
    return calls


def _build_reasoning(group: MessageGroup, applied: AppliedAdjustments) -> _JsonObject:
    """Return the reasoning that led to the calls, in the fields it came in."""
    if OMIT_REASONING_FIELDS in applied:
        return {}
    fields: _JsonObject = {"reasoning_content": ""} if ADD_EMPTY_REASONING in applied else {}
    for block in group.reasoning:
        fields |= {name: value for name, value in block.payload.items() if name in REASONING_FIELDS}
    return fields
