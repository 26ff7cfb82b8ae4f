"""Check requests as the Responses API of OpenAI does or, with `is_openrouter`, that of OpenRouter.

They differ in item ids: OpenRouter requires them, OpenAI rejects them for requests that are not stored.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from local.demo_model.request_checks.errors import RequestRejected, require
from local.demo_model.request_checks.tool_schemas import check_schema

ITEM_TYPES = ("message", "function_call", "function_call_output", "reasoning")
_MEMBERS = {
    "model", "input", "instructions", "stream", "store", "tools", "tool_choice", "max_output_tokens", "include",
    "reasoning", "prompt_cache_key", "temperature", "top_p", "metadata", "parallel_tool_calls", "text", "truncation",
    "user", "safety_identifier", "service_tier", "stream_options", "background", "previous_response_id",
}  # fmt: skip
_ITEM_MEMBERS = {
    "message": {"role", "content", "phase"},
    "function_call": {"call_id", "name", "arguments"},
    "function_call_output": {"call_id", "output"},
    "reasoning": {"summary", "encrypted_content", "content", "format", "signature"},
}
_PARTS = {"user": ("input_text", "input_image"), "assistant": ("output_text", "refusal")}
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_TOOLS = 128
_THINKS = re.compile(r"(?:ft:)?(?:o\d|gpt-(?:[5-9]|\d\d)|codex|fermata-demo)(?!.*chat)")
ENCRYPTED_REASONING = "reasoning.encrypted_content"

Item = dict[str, Any]


def check_request(headers: Mapping[str, str], body: Any, *, is_openrouter: bool = False) -> None:
    """Raise RequestRejected for the first violation."""
    if not headers.get("authorization", "").startswith("Bearer "):
        raise RequestRejected("You didn't provide an API key.", kind="invalid_request_error", status=401)
    if not isinstance(body, dict):
        raise RequestRejected("We could not parse the JSON body of your request.")
    _check_frame(body, is_openrouter)
    _check_tools(body, is_openrouter)
    items = body["input"]
    for at, item in enumerate(items):
        _check_item(f"input[{at}]", item, is_openrouter)
    _check_pairs(items)
    _check_ids(items, is_openrouter)
    _check_reasoning(body, items, is_openrouter)


def is_reasoning_model(model: str) -> bool:
    return _THINKS.match(model.rpartition("/")[2]) is not None


def _check_frame(body: Item, is_openrouter: bool) -> None:
    for name in sorted(body.keys() - _MEMBERS):
        raise RequestRejected(f"Unknown parameter: '{name}'.")
    for name in ("model", "input"):
        require(bool(body.get(name)), f"Missing required parameter: '{name}'.")
    require(isinstance(body["input"], list), "Invalid type for 'input': expected an array.")
    limit = body.get("max_output_tokens", 16)
    require(type(limit) is int and limit >= 16, "Invalid 'max_output_tokens': integer below minimum value 16.")
    key = body.get("prompt_cache_key", "")
    require(len(key) <= 64, "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64.")
    require(not is_openrouter or body.get("store") is not True, "store: Invalid literal value, expected false")
    require("instructions" not in body or bool(body["instructions"].strip()), "Invalid 'instructions': empty string.")
    if not is_openrouter and not is_reasoning_model(body["model"]):
        require(
            ENCRYPTED_REASONING not in body.get("include", ()), "Encrypted content is not supported with this model."
        )
        require("reasoning" not in body, "Unsupported parameter: 'reasoning.effort' is not supported with this model.")


def _check_tools(body: Item, is_openrouter: bool) -> None:
    tools = body.get("tools") or []
    require(len(tools) <= MAX_TOOLS, f"Invalid 'tools': array too long. Expected maximum length {MAX_TOOLS}.")
    require(len({tool.get("name") for tool in tools}) == len(tools), "Tool names must be unique.")
    for at, tool in enumerate(tools):
        require(tool.get("type") == "function", f"Invalid value: '{tool.get('type')}' for 'tools[{at}].type'.")
        require("name" in tool, f"Missing required parameter: 'tools[{at}].name'.")
        require(bool(_NAME.fullmatch(tool["name"])), f"Invalid 'tools[{at}].name': string does not match pattern.")
        schema = tool.get("parameters")
        require(isinstance(schema, dict), f"Missing required parameter: 'tools[{at}].parameters'.")
        require(schema.get("type") == "object", "Invalid schema for function: schema must have type 'object'.")
        require("properties" in schema, "Invalid schema for function: object schema missing properties.")
        for word in ("oneOf", "anyOf", "allOf", "enum", "not"):
            require(word not in schema, f"Invalid schema for function: schema must not have '{word}' at the top level.")
        check_schema("Invalid schema for function", schema)
        if tool.get("strict", not is_openrouter):  # the default is strict
            _check_strict(schema)
    require(bool(tools) or "tool_choice" not in body, "Tool choice is only allowed when 'tools' are specified.")


def _check_strict(schema: Item) -> None:
    closed = schema.get("additionalProperties") is False
    all_required = set(schema.get("properties", ())) == set(schema.get("required", ()))
    require(closed and all_required, "strict: optional members of this schema would become required ones.")


def _check_item(where: str, item: Any, is_openrouter: bool) -> None:
    require(isinstance(item, dict), f"Invalid type for '{where}': expected an object.")
    kind = item.get("type", "message")
    require(kind in ITEM_TYPES, f"Invalid value: '{kind}' for '{where}.type'.")
    for name in sorted(item.keys() - _ITEM_MEMBERS[kind] - {"type", "id", "status"}):
        raise RequestRejected(f"Unknown parameter: '{where}.{name}'.")
    if kind == "message":
        _check_message(where, item, is_openrouter)
    elif kind == "reasoning":
        require(isinstance(item.get("summary"), list), f"Missing required parameter: '{where}.summary'.")
        require(
            not is_openrouter or isinstance(item.get("id"), str), f"{where}.id: expected string, received undefined"
        )
    else:
        _check_call(where, item, is_openrouter)


def _check_message(where: str, item: Item, is_openrouter: bool) -> None:
    role = str(item.get("role"))
    require(role in _PARTS, f"Invalid value: '{role}' for '{where}.role'.")
    parts = item.get("content")
    require(isinstance(parts, list) and bool(parts), f"Invalid '{where}.content': empty array.")
    for part in parts or ():
        allowed = _PARTS[role]
        require(part.get("type") in allowed, f"Invalid value: '{part.get('type')}'. Supported values are: {allowed}.")
        if part["type"] == "input_image":
            _check_image(where, part)
        else:
            text = part.get("text")
            require(isinstance(text, str) and bool(text), f"Missing required parameter: '{where}.content[0].text'.")
    if is_openrouter and role == "assistant":
        has_id_and_status = isinstance(item.get("id"), str) and item.get("status") == "completed"
        require(has_id_and_status, f"{where}: Invalid input: id and status of an assistant message are required")
    require(role == "assistant" or "phase" not in item, f"Unknown parameter: '{where}.phase'.")


def _check_image(where: str, part: Item) -> None:
    require(part.get("detail") in ("auto", "low", "high"), f"Missing required parameter: '{where}.content.detail'.")
    require(str(part.get("image_url", "")).startswith(("data:image/", "https://")), f"Invalid '{where}.image_url'.")


def _check_call(where: str, item: Item, is_openrouter: bool) -> None:
    call_id = item.get("call_id")
    require(isinstance(call_id, str) and bool(call_id), f"Missing required parameter: '{where}.call_id'.")
    require(len(str(call_id)) <= 64, f"Invalid '{where}.call_id': string too long. Expected maximum length 64.")
    if item["type"] == "function_call_output":
        require(isinstance(item.get("output"), str), f"Missing required parameter: '{where}.output'.")
        return
    require(bool(_NAME.fullmatch(item.get("name", ""))), f"Invalid '{where}.name': string does not match pattern.")
    arguments = item.get("arguments")
    require(isinstance(arguments, str), f"Invalid type for '{where}.arguments': expected a string.")
    require(isinstance(_parsed(arguments), dict), f"Invalid '{where}.arguments': expected a JSON object.")
    require(not is_openrouter or isinstance(item.get("id"), str), f"{where}.id: expected string, received undefined")


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _check_pairs(items: list[Item]) -> None:
    """Check that every call is followed by exactly one output."""
    open_calls: list[str] = []
    seen: set[str] = set()
    for item in items:
        call_id = item.get("call_id", "")
        if item.get("type") == "function_call":
            require(call_id not in seen, f"Duplicate function call with call_id {call_id}.")
            seen.add(call_id)
            open_calls.append(call_id)
        elif item.get("type") == "function_call_output":
            require(call_id in open_calls, f"No tool call found for function call output with call_id {call_id}.")
            open_calls.remove(call_id)
    require(not open_calls, f"No tool output found for function call {', '.join(open_calls)}.")


def _check_ids(items: list[Item], is_openrouter: bool) -> None:
    seen: set[str] = set()
    for item in items:
        name = item.get("id")
        if name is None:
            continue
        if not is_openrouter:
            raise RequestRejected(f"Item with id '{name}' not found. `store` is false: items do not last.", status=404)
        require(name not in seen, f"Duplicate item found with id {name}. Remove duplicate items from your input.")
        seen.add(name)


def _check_reasoning(body: Item, items: list[Item], is_openrouter: bool) -> None:
    """Check that reasoning is followed by an item, and that its encrypted content is for this model."""
    for at, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        after = items[at + 1] if at + 1 < len(items) else {}
        follows = after.get("type") in ("function_call", "reasoning") or after.get("role") == "assistant"
        require(follows, "Item of type 'reasoning' was provided without its required following item.")
        require(
            is_openrouter or not item.get("content"),
            f"Invalid 'input[{at}].content': array too long. Expected length 0.",
        )
        encrypted = str(item.get("encrypted_content") or "")
        require(is_openrouter or bool(encrypted), f"Missing required parameter: 'input[{at}].encrypted_content'.")
        maker, _, rest = encrypted.partition(":")
        readable = maker != "sealed" or rest.rpartition(":")[0] == body["model"]
        require(readable, "The encrypted content could not be verified. Reason: it is of another model.")
