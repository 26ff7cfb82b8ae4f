"""What a model writes as the arguments of a call, read as far as it can be; and text that can be stored."""

import json
import math
from typing import Any, NoReturn

MAX_ARGUMENT_DEPTH = 100
"""Levels of nesting that are read; no tool takes a tenth of them, and what is deeper cannot be stored."""


def parse_tool_arguments(text: str) -> tuple[Any, bool]:
    """The value, and whether the text was unreadable. No text at all means no arguments."""
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
    if math.isfinite(number := float(text)):
        return number
    raise ValueError("a number is too large")


def is_nested_too_deeply(text: str, value: Any) -> bool:
    """Of a value and its JSON; the text tells of nearly all that they are not."""
    return text.count("{") + text.count("[") > MAX_ARGUMENT_DEPTH and _is_deeper_than(value, MAX_ARGUMENT_DEPTH)


def _is_deeper_than(value: Any, level: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return not level or any(_is_deeper_than(one, level - 1) for one in inner)


def replace_lone_surrogates(text: str) -> str:
    """Half a surrogate pair cannot be stored or sent; it becomes the replacement character."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def to_storable_json(value: Any) -> Any:
    """The same for every text in a JSON value; and a number that JSON cannot hold is none."""
    if isinstance(value, str):
        return replace_lone_surrogates(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [to_storable_json(item) for item in value]
    if isinstance(value, dict):
        return {replace_lone_surrogates(name): to_storable_json(item) for name, item in value.items()}
    return value
