"""Check requests as Ollama's /api/chat does: it rejects values of the wrong type and ignores unknown members."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from local.demo_model.request_checks.errors import RequestRejected, require

DEFAULT_CONTEXT_TOKENS = 4096
PROMPT_TOO_LONG_MESSAGE = (
    "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the "
    "context length in settings, or use a model with a longer context length"
)
_ROLES = ("system", "user", "assistant", "tool")
_TYPES: dict[str, type | tuple[type, ...]] = {
    "role": str, "content": str, "thinking": str, "images": list, "tool_calls": list, "tool_name": str,
    "tool_call_id": str,
}  # fmt: skip
_BODY: dict[str, type | tuple[type, ...]] = {
    "model": str, "messages": list, "stream": bool, "tools": list, "options": dict, "think": (bool, str),
    "truncate": bool, "shift": bool, "keep_alive": (str, int), "format": (str, dict),
}  # fmt: skip
_BOOLEANS = ("stream", "truncate", "shift", "think")

Item = dict[str, Any]


def check_request(headers: Mapping[str, str], body: Any) -> None:
    """Raise RequestRejected for the first violation."""
    if not isinstance(body, dict):
        raise RequestRejected("missing request body")
    _check_types("ChatRequest", body, _BODY)
    require(bool(body.get("model")), "model is required")
    for name in ("num_ctx", "num_predict"):
        value = (body.get("options") or {}).get(name, 0)
        require(type(value) is int, f'option "{name}" must be of type integer')
    for tool in body.get("tools") or ():
        require(bool((tool.get("function") or {}).get("name")), "invalid tool: function name is required")
    messages = body.get("messages") or ()
    for message in messages:
        _check_message(message)
    last_roles = [message["role"] for message in messages[-2:]]
    require(last_roles != ["assistant"] * 2, "Cannot have 2 or more assistant messages at the end of the list.")


def context_window(body: Item) -> int:
    return int((body.get("options") or {}).get("num_ctx") or DEFAULT_CONTEXT_TOKENS)


def count_read_tokens(body: Item, tokens: int) -> int:
    """Count the tokens of a prompt that are read. A prompt that does not fit is cut, unless the request forbids that.

    Raises:
        RequestRejected: where the request forbids it.
    """
    window = context_window(body)
    if tokens <= window:
        return tokens
    if body.get("truncate") is False and body.get("shift") is False:
        raise RequestRejected(PROMPT_TOO_LONG_MESSAGE)
    return window // 2 + 2


def _check_types(struct: str, value: Item, types: Mapping[str, type | tuple[type, ...]]) -> None:
    for name, expected_type in types.items():
        member = value.get(name)
        if member is not None:
            text = f"json: cannot unmarshal {type(member).__name__} into Go struct field {struct}.{name}"
            require(
                isinstance(member, expected_type)
                and (expected_type is bool or not isinstance(member, bool) or name == "think"),
                text,
            )


def _check_message(message: Any) -> None:
    require(isinstance(message, dict), "json: cannot unmarshal into Go struct field ChatRequest.messages")
    _check_types("Message", message, _TYPES)
    require(message.get("role") in _ROLES, f"invalid role: {message.get('role')!r}, must be one of {_ROLES}")
    for image in message.get("images") or ():
        require(_is_base64(image), "illegal base64 data at input byte 0")
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        _check_types("ToolCallFunction", function, {"index": int, "name": str, "arguments": dict})
        require(bool(function.get("name")), "invalid tool call: name is required")


def _is_base64(text: Any) -> bool:
    try:
        return isinstance(text, str) and bool(base64.b64decode(text, validate=True))
    except binascii.Error:
        return False
