"""Check requests as chat-completions servers do, including chat templates that require alternating roles."""

import json
import re
from collections.abc import Mapping
from typing import Any

from local.demo_model.request_checks.errors import RequestRejected, require, require_bearer_token
from local.demo_model.request_checks.tool_schemas import check_schema

_MEMBERS = {
    "model", "messages", "stream", "stream_options", "tools", "tool_choice", "max_tokens", "max_completion_tokens",
    "reasoning_effort", "temperature", "top_p", "stop", "seed", "user", "response_format", "parallel_tool_calls",
}  # fmt: skip
_MESSAGE_MEMBERS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {
        *("role", "content", "tool_calls"),
        *("reasoning_content", "reasoning", "reasoning_details", "reasoning_text", "thinking"),
    },
    "tool": {"role", "content", "tool_call_id", "name"},
}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_TOOLS = 128
MAX_DESCRIPTION_CHARS = 1024

Item = dict[str, Any]


def check_request(headers: Mapping[str, str], body: Any) -> None:
    """Raise RequestRejected for the first violation. An API key is optional; one that is sent is a bearer token."""
    require_bearer_token(headers)
    if not isinstance(body, dict):
        raise RequestRejected("We could not parse the JSON body of your request.")
    for name in sorted(body.keys() - _MEMBERS):
        raise RequestRejected(f"Unrecognized request argument supplied: {name}")
    require(bool(body.get("model")), "you must provide a model parameter")
    require(
        "stream_options" not in body or body.get("stream") is True, "'stream_options' is only allowed with 'stream'."
    )
    both = "max_tokens" in body and "max_completion_tokens" in body
    require(not both, "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
    thinks = "max_completion_tokens" in body
    require(thinks or "reasoning_effort" not in body, "Unrecognized request argument supplied: reasoning_effort")
    check_tools(body)
    messages = body.get("messages")
    require(isinstance(messages, list) and bool(messages), "[] is too short - 'messages'")
    for at, message in enumerate(messages or ()):
        _check_message(f"messages[{at}]", message)
    _check_order(messages or [])


def check_tools(body: Item) -> None:
    tools = body.get("tools")
    require(tools is None or bool(tools), "[] is too short - 'tools'")
    require(len(tools or ()) <= MAX_TOOLS, f"Invalid 'tools': array too long. Expected maximum length {MAX_TOOLS}.")
    names = [(tool.get("function") or {}).get("name") for tool in tools or ()]
    require(len(set(names)) == len(names), "Tool names must be unique.")
    for at, tool in enumerate(tools or ()):
        require(tool.get("type") == "function", f"Invalid value for 'tools[{at}].type'.")
        function = tool.get("function") or {}
        require(bool(_NAME.fullmatch(function.get("name", ""))), f"Invalid 'tools[{at}].function.name'.")
        schema = function.get("parameters") or {}
        require(schema.get("type") == "object", f"Invalid schema for 'tools[{at}]'.")
        require("properties" in schema, f"Invalid schema for 'tools[{at}]': object schema missing properties.")
        check_schema(f"Invalid schema for 'tools[{at}]'", schema)
        length = len(function.get("description", "x"))
        require(
            0 < length <= MAX_DESCRIPTION_CHARS,
            f"Invalid 'tools[{at}].function.description': string too long. Expected maximum length 1024.",
        )
    require(bool(tools) or "tool_choice" not in body, "'tool_choice' is only allowed when 'tools' are specified.")


def _check_message(where: str, message: Any) -> None:
    require(isinstance(message, dict), f"Invalid type for '{where}'.")
    role = message.get("role")
    require(role in _MESSAGE_MEMBERS, f"Invalid value: '{role}' for '{where}.role'.")
    for name in sorted(message.keys() - _MESSAGE_MEMBERS[role]):
        raise RequestRejected(f"Additional properties are not allowed ('{name}' was unexpected) - '{where}'")
    content = message.get("content")
    if isinstance(content, list):
        require(role == "user" and bool(content), f"Invalid type for '{where}.content'.")
        for part in content:
            _check_part(where, part)
    else:
        require(isinstance(content, str), f"Invalid value for '{where}.content': expected a string, got null.")
    text = content.strip() if isinstance(content, str) else content
    require(role == "tool" or bool(text or message.get("tool_calls")), f"'{where}' must have non-empty content.")
    if "tool_calls" in message:
        _check_calls(where, message["tool_calls"])


def _check_part(where: str, part: Item) -> None:
    if part.get("type") == "image_url":
        url = str((part.get("image_url") or {}).get("url", ""))
        require(url.startswith(("data:image/", "https://")), f"Invalid image_url in '{where}'.")
    else:
        require(part.get("type") == "text" and bool(part.get("text")), f"Invalid content part in '{where}'.")


def _check_calls(where: str, calls: Any) -> None:
    require(isinstance(calls, list) and bool(calls), f"[] is too short - '{where}.tool_calls'")
    for call in calls:
        for name in sorted(call.keys() - {"id", "type", "function", "extra_content"}):
            raise RequestRejected(
                f"Additional properties are not allowed ('{name}' was unexpected) - '{where}.tool_calls'"
            )
        call_id, function = call.get("id"), call.get("function") or {}
        require(isinstance(call_id, str) and bool(call_id), f"Missing required parameter: '{where}.tool_calls[0].id'.")
        require(
            len(str(call_id)) <= 40, f"Invalid '{where}.tool_calls[0].id': string too long. Expected maximum length 40."
        )
        require(call.get("type") == "function", f"Missing required parameter: '{where}.tool_calls[0].type'.")
        require(bool(_NAME.fullmatch(function.get("name", ""))), f"Invalid '{where}.tool_calls[0].function.name'.")
        require(_is_object(function.get("arguments")), f"Invalid '{where}.tool_calls[0].function.arguments'.")


def _is_object(arguments: Any) -> bool:
    try:
        return isinstance(arguments, str) and isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


def _check_order(messages: list[Item]) -> None:
    """Check the order: the system message first, then alternating roles, and tool results right after their calls."""
    spoken = messages[1:] if messages[0]["role"] == "system" else messages
    require(bool(spoken) and spoken[0]["role"] == "user", "After the system message, a user message is expected.")
    waiting: list[str] = []
    used: set[str] = set()
    before = ""
    for message in spoken:
        role = message["role"]
        if role == "tool":
            call_id = message.get("tool_call_id")
            require(
                call_id in waiting,
                "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
            )
            waiting.remove(str(call_id))
        else:
            require(not waiting, f"These tool_call_ids did not have response messages: {', '.join(waiting)}.")
            require(role != before, f"Conversation roles must alternate user/assistant: two of {role}.")
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
            doubled = [call_id for call_id in waiting if call_id in used] or len(set(waiting)) < len(waiting)
            require(not doubled, "Duplicate tool call id.")
            used.update(waiting)
        require(role != "system", "System message must be at the beginning.")
        before = role
    require(not waiting, f"These tool_call_ids did not have response messages: {', '.join(waiting)}.")
    require(before != "assistant", "Cannot continue from an assistant message.")
