"""Maps an `Ask` to the body of Ollama's /api/chat.

Ollama loads a model with the window a request asks for, and loads it anew for another one; so all requests ask for
the same. What does not fit is refused (`truncate`, `shift`), because otherwise it is cut from the front in silence,
tools and all. Older servers know neither member; the fold then looks at what was counted.
"""

from typing import Any

from fermata.domain.model_io import ModelRequest
from fermata.drivers.protocols.chat_completions.request import build_function_tool, format_user_text
from fermata.drivers.protocols.message_mapping import (
    MessageGroup,
    format_result_text,
    get_call_arguments,
    get_image_base64,
    group_messages,
    plain_id_formatter,
)

_MAX_CALL_ID_CHARS = 64

_JsonObject = dict[str, Any]


def build_request_body(ask: ModelRequest, provider: str, *, thinking_allowance: int) -> _JsonObject:
    messages: list[_JsonObject] = [{"role": "system", "content": ask.system}] if ask.system.strip() else []
    for turn in group_messages(ask, provider, plain_id_formatter(_MAX_CALL_ID_CHARS)):
        messages += [_user(turn)] if turn.role == "user" else _assistant(turn)
    body: _JsonObject = {"model": ask.model, "messages": messages, "stream": True, "truncate": False, "shift": False}
    limit = ask.max_tokens + thinking_allowance
    body["options"] = {"num_ctx": ask.window_tokens, "num_predict": limit}
    if ask.tools and ask.call_tools:  # there is no way to offer tools that may not be called
        body["tools"] = [build_function_tool(spec) for spec in ask.tools]
    if ask.thinking_tokens > 0:
        body["think"] = True
    return body


def _user(turn: MessageGroup) -> _JsonObject:
    message: _JsonObject = {"role": "user", "content": format_user_text(turn)}
    return message | {"images": [get_image_base64(image) for image in turn.images]} if turn.images else message


def _assistant(turn: MessageGroup) -> list[_JsonObject]:
    message: _JsonObject = {"role": "assistant", "content": "\n\n".join(turn.texts)}
    if turn.calls:
        message["thinking"] = "".join(str(block.payload.get("thinking") or "") for block in turn.reasoning)
        message["tool_calls"] = [
            {
                "id": call.tool_call_id,
                "function": {"index": at, "name": call.tool_name, "arguments": get_call_arguments(call)},
            }
            for at, call in enumerate(turn.calls)
        ]
    names = {call.tool_call_id: call.tool_name for call in turn.calls}
    results = [
        {
            "role": "tool",
            "tool_name": names.get(one.call_id, one.tool_name),
            "tool_call_id": one.call_id,
            "content": format_result_text(one.block),
        }
        for one in turn.results
    ]
    return [message, *results]
