"""Refuses what OpenAI's Responses API refuses, in much the same words; with `named`, what OpenRouter's refuses."""

import json
import re
from collections.abc import Mapping
from typing import Any

from local.demo_model.request_checks.anthropic_messages import RequestRejected

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
_THINKS = re.compile(r"(?:ft:)?(?:o\d|gpt-(?:[5-9]|\d\d)|codex|fermata-demo)(?!.*chat)")
ENCRYPTED_REASONING = "reasoning.encrypted_content"

Item = dict[str, Any]


def check_request(headers: Mapping[str, str], body: Any, *, is_openrouter: bool = False) -> None:
    """Raise `Refused` for the first thing that is wrong."""
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


def _want(condition: bool, message: str) -> None:
    if not condition:
        raise RequestRejected(message)


def _check_frame(body: Item, named: bool) -> None:
    for name in sorted(body.keys() - _MEMBERS):
        raise RequestRejected(f"Unknown parameter: '{name}'.")
    for name in ("model", "input"):
        _want(bool(body.get(name)), f"Missing required parameter: '{name}'.")
    _want(isinstance(body["input"], list), "Invalid type for 'input': expected an array.")
    limit = body.get("max_output_tokens", 16)
    _want(type(limit) is int and limit >= 16, "Invalid 'max_output_tokens': integer below minimum value 16.")
    key = body.get("prompt_cache_key", "")
    _want(len(key) <= 64, "Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64.")
    _want(not named or body.get("store") is not True, "store: Invalid literal value, expected false")
    _want("instructions" not in body or bool(body["instructions"].strip()), "Invalid 'instructions': empty string.")
    if not named and not is_reasoning_model(body["model"]):
        _want(ENCRYPTED_REASONING not in body.get("include", ()), "Encrypted content is not supported with this model.")
        _want("reasoning" not in body, "Unsupported parameter: 'reasoning.effort' is not supported with this model.")


def _check_tools(body: Item, named: bool) -> None:
    tools = body.get("tools") or []
    for at, tool in enumerate(tools):
        _want(tool.get("type") == "function", f"Invalid value: '{tool.get('type')}' for 'tools[{at}].type'.")
        _want("name" in tool, f"Missing required parameter: 'tools[{at}].name'.")
        _want(bool(_NAME.fullmatch(tool["name"])), f"Invalid 'tools[{at}].name': string does not match pattern.")
        schema = tool.get("parameters")
        _want(isinstance(schema, dict), f"Missing required parameter: 'tools[{at}].parameters'.")
        _want(schema.get("type") == "object", "Invalid schema for function: schema must have type 'object'.")
        _want("properties" in schema, "Invalid schema for function: object schema missing properties.")
        for word in ("oneOf", "anyOf", "allOf", "enum", "not"):
            _want(word not in schema, f"Invalid schema for function: schema must not have '{word}' at the top level.")
        if tool.get("strict", not named):  # left out means strict here
            _check_strict(schema)
    _want(bool(tools) or "tool_choice" not in body, "Tool choice is only allowed when 'tools' are specified.")


def _check_strict(schema: Item) -> None:
    closed = schema.get("additionalProperties") is False
    all_required = set(schema.get("properties", ())) == set(schema.get("required", ()))
    _want(closed and all_required, "strict: optional members of this schema would become required ones.")


def _check_item(where: str, item: Any, named: bool) -> None:
    _want(isinstance(item, dict), f"Invalid type for '{where}': expected an object.")
    kind = item.get("type", "message")
    _want(kind in ITEM_TYPES, f"Invalid value: '{kind}' for '{where}.type'.")
    for name in sorted(item.keys() - _ITEM_MEMBERS[kind] - {"type", "id", "status"}):
        raise RequestRejected(f"Unknown parameter: '{where}.{name}'.")
    if kind == "message":
        _check_message(where, item, named)
    elif kind == "reasoning":
        _want(isinstance(item.get("summary"), list), f"Missing required parameter: '{where}.summary'.")
        _want(not named or isinstance(item.get("id"), str), f"{where}.id: expected string, received undefined")
    else:
        _check_call(where, item, named)


def _check_message(where: str, item: Item, named: bool) -> None:
    role = str(item.get("role"))
    _want(role in _PARTS, f"Invalid value: '{role}' for '{where}.role'.")
    parts = item.get("content")
    _want(isinstance(parts, list) and bool(parts), f"Invalid '{where}.content': empty array.")
    for part in parts or ():
        allowed = _PARTS[role]
        _want(part.get("type") in allowed, f"Invalid value: '{part.get('type')}'. Supported values are: {allowed}.")
        if part["type"] == "input_image":
            _check_image(where, part)
        else:
            text = part.get("text")
            _want(isinstance(text, str) and bool(text), f"Missing required parameter: '{where}.content[0].text'.")
    if named and role == "assistant":
        named_well = isinstance(item.get("id"), str) and item.get("status") == "completed"
        _want(named_well, f"{where}: Invalid input: id and status of an assistant message are required")
    _want(role == "assistant" or "phase" not in item, f"Unknown parameter: '{where}.phase'.")


def _check_image(where: str, part: Item) -> None:
    _want(part.get("detail") in ("auto", "low", "high"), f"Missing required parameter: '{where}.content.detail'.")
    _want(str(part.get("image_url", "")).startswith(("data:image/", "https://")), f"Invalid '{where}.image_url'.")


def _check_call(where: str, item: Item, named: bool) -> None:
    call_id = item.get("call_id")
    _want(isinstance(call_id, str) and bool(call_id), f"Missing required parameter: '{where}.call_id'.")
    _want(len(str(call_id)) <= 64, f"Invalid '{where}.call_id': string too long. Expected maximum length 64.")
    if item["type"] == "function_call_output":
        _want(isinstance(item.get("output"), str), f"Missing required parameter: '{where}.output'.")
        return
    _want(bool(_NAME.fullmatch(item.get("name", ""))), f"Invalid '{where}.name': string does not match pattern.")
    arguments = item.get("arguments")
    _want(isinstance(arguments, str), f"Invalid type for '{where}.arguments': expected a string.")
    _want(isinstance(_parsed(arguments), dict), f"Invalid '{where}.arguments': expected a JSON object.")
    _want(not named or isinstance(item.get("id"), str), f"{where}.id: expected string, received undefined")


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _check_pairs(items: list[Item]) -> None:
    """Every call has one output, behind it."""
    open_calls: list[str] = []
    seen: set[str] = set()
    for item in items:
        call_id = item.get("call_id", "")
        if item.get("type") == "function_call":
            _want(call_id not in seen, f"Duplicate function call with call_id {call_id}.")
            seen.add(call_id)
            open_calls.append(call_id)
        elif item.get("type") == "function_call_output":
            _want(call_id in open_calls, f"No tool call found for function call output with call_id {call_id}.")
            open_calls.remove(call_id)
    _want(not open_calls, f"No tool output found for function call {', '.join(open_calls)}.")


def _check_ids(items: list[Item], named: bool) -> None:
    seen: set[str] = set()
    for item in items:
        name = item.get("id")
        if name is None:
            continue
        if not named:
            raise RequestRejected(f"Item with id '{name}' not found. `store` is false: items do not last.", status=404)
        _want(name not in seen, f"Duplicate item found with id {name}. Remove duplicate items from your input.")
        seen.add(name)


def _check_reasoning(body: Item, items: list[Item], named: bool) -> None:
    """Reasoning leads to something, and can be read: what this server encrypted names the model it is for."""
    for at, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        after = items[at + 1] if at + 1 < len(items) else {}
        follows = after.get("type") in ("function_call", "reasoning") or after.get("role") == "assistant"
        _want(follows, "Item of type 'reasoning' was provided without its required following item.")
        _want(named or not item.get("content"), f"Invalid 'input[{at}].content': array too long. Expected length 0.")
        encrypted = str(item.get("encrypted_content") or "")
        _want(named or bool(encrypted), f"Missing required parameter: 'input[{at}].encrypted_content'.")
        maker, _, rest = encrypted.partition(":")
        readable = maker != "sealed" or rest.rpartition(":")[0] == body["model"]
        _want(readable, "The encrypted content could not be verified. Reason: it is of another model.")
