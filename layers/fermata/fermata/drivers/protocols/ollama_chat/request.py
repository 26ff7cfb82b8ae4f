"""Map a model request to the body of Ollama's /api/chat (decision 0072).

Ollama loads a model with the context window that a request asks for, and loads it again for another window; so all
requests ask for the same one. `truncate` and `shift` are off, so that a request that does not fit is refused; otherwise
Ollama cuts it from the front without notice, tools included. Older servers ignore both members; for these, the
accumulator compares the tokens they counted with an estimate.
"""

from typing import Any

from fermata.domain.model_io import ModelRequest
from fermata.drivers.adjustments import NO_ADJUSTMENTS, AppliedAdjustments
from fermata.drivers.protocols.call_id_mapping import choose_call_id_formatter, plain_id_formatter
from fermata.drivers.protocols.chat_completions.request import build_function_tool, format_user_text
from fermata.drivers.protocols.message_groups import MessageGroup, StatelessItems, build_conversation
from fermata.drivers.protocols.shared_encoding import format_result_text, get_call_arguments, get_image_base64

_format_call_id = plain_id_formatter(64)
_NAMELESS = "unnamed"
"""Stands for the name of a call that a model has made without one."""

_JsonObject = dict[str, Any]


def build_request_body(
    request: ModelRequest, provider: str, applied: AppliedAdjustments = NO_ADJUSTMENTS, *, thinking_allowance: int
) -> _JsonObject:
    """Build the JSON body. Reasoning blocks of other providers than `provider` are left out."""
    system: list[_JsonObject] = [{"role": "system", "content": request.system}] if request.system.strip() else []
    format_call_id = choose_call_id_formatter(applied, _format_call_id)
    messages = build_conversation(
        request, provider, format_call_id, lambda: StatelessItems(_build_items), key=applied, before=system
    )
    body: _JsonObject = {"model": request.model, "messages": messages, "stream": True}
    body |= {"truncate": False, "shift": False}
    body["options"] = {
        "num_ctx": request.window_tokens,
        "num_predict": request.max_tokens + thinking_allowance,
    }
    if request.tools and request.call_tools:  # tools cannot be offered without permitting calls
        body["tools"] = [build_function_tool(spec) for spec in request.tools]
    if request.output is not None and "tools" not in body:  # a bound answer cannot be a call
        body["format"] = request.output.json_schema
    if request.thinking_tokens > 0:
        body["think"] = True
    return body


def _build_items(group: MessageGroup) -> list[_JsonObject]:
    return [_build_user(group)] if group.role == "user" else _build_assistant(group)


def _build_user(group: MessageGroup) -> _JsonObject:
    message: _JsonObject = {"role": "user", "content": format_user_text(group)}
    return message | {"images": [get_image_base64(image) for image in group.images]} if group.images else message


def _build_assistant(group: MessageGroup) -> list[_JsonObject]:
    message: _JsonObject = {"role": "assistant", "content": "\n\n".join(group.texts)}
    if group.calls:
        message["thinking"] = "".join(str(block.payload.get("thinking") or "") for block in group.reasoning)
        message["tool_calls"] = [
            {
                "id": call.tool_call_id,
                "function": {
                    "index": index,
                    "name": call.tool_name or _NAMELESS,
                    "arguments": get_call_arguments(call),
                },
            }
            for index, call in enumerate(group.calls)
        ]
    names = {call.tool_call_id: call.tool_name or _NAMELESS for call in group.calls}
    results = [
        {
            "role": "tool",
            "tool_name": names.get(result.call_id, result.tool_name),
            "tool_call_id": result.call_id,
            "content": format_result_text(result.block),
        }
        for result in group.results
    ]
    return [message, *results]
