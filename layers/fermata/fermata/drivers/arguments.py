"""What a model writes as the arguments of a call, read as far as it can be; and text that can be stored."""

import json
import math
from typing import Any, NoReturn

DEEPEST = 100
"""Levels of nesting that are read; no tool takes a tenth of them, and what is deeper cannot be stored."""


def arguments(text: str) -> tuple[Any, bool]:
    """The value, and whether the text was unreadable. No text at all means no arguments."""
    if not text.strip():
        return {}, False
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return {}, True
    if is_too_deep(text, value):
        return {}, True
    return (whole_value(value) if "\\ud" in text.lower() else value), False


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    """A number that is too large for a float would be written as `Infinity`, which is not JSON."""
    if math.isfinite(number := float(text)):
        return number
    raise ValueError("a number is too large")


def is_too_deep(text: str, value: Any) -> bool:
    """Of a value and its JSON; the text tells of nearly all that they are not."""
    return text.count("{") + text.count("[") > DEEPEST and _reaches(value, DEEPEST)


def _reaches(value: Any, level: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return not level or any(_reaches(one, level - 1) for one in inner)


def whole(text: str) -> str:
    """Half a surrogate pair cannot be stored or sent; it becomes the replacement character."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_value(value: Any) -> Any:
    """The same for every text in a JSON value; and a number that JSON cannot hold is none."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [whole_value(item) for item in value]
    if isinstance(value, dict):
        return {whole(name): whole_value(item) for name, item in value.items()}
    return value
