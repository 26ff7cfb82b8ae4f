"""Parse the arguments that a model writes for a tool call, and make text and JSON storable (decision 0081)."""

import json
import math
from typing import Any, NoReturn

MAX_ARGUMENT_DEPTH = 100
"""Levels of nesting that are read; no tool takes a tenth of them, and a deeper value cannot be stored."""


def parse_tool_arguments(text: str) -> tuple[Any, bool]:
    """Return the value, and whether the text was unreadable; an empty text means no arguments."""
    if not text.strip():
        return {}, False
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_float=_parse_finite_float)
    except (ValueError, RecursionError):
        return {}, True
    if is_nested_too_deeply(text, value):
        return {}, True
    return (to_storable_json(value) if "\\ud" in text.lower() else value), False


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _parse_finite_float(text: str) -> float:
    """A number that is too large for a float would be written as `Infinity`, which is not JSON."""
    number = float(text)
    if math.isfinite(number):
        return number
    raise ValueError("a number is too large")


def is_nested_too_deeply(text: str, value: Any) -> bool:
    """Return whether a value is nested too deeply; its JSON text rules that out cheaply for nearly all values."""
    return text.count("{") + text.count("[") > MAX_ARGUMENT_DEPTH and _is_deeper_than(value, MAX_ARGUMENT_DEPTH)


def _is_deeper_than(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    children = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_deeper_than(child, levels - 1) for child in children)


def replace_lone_surrogates(text: str) -> str:
    """Replace halves of surrogate pairs by U+FFFD; UTF-8 cannot encode them."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def to_storable_json(value: Any) -> Any:
    """Return the JSON value without lone surrogates; numbers that JSON cannot hold become None."""
    if isinstance(value, str):
        return replace_lone_surrogates(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [to_storable_json(item) for item in value]
    if isinstance(value, dict):
        return {replace_lone_surrogates(name): to_storable_json(item) for name, item in value.items()}
    return value
