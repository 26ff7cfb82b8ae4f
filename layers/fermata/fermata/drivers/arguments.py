"""What a model writes as the arguments of a call, read as far as it can be; and text that can be stored."""

import json
from typing import Any, NoReturn


def arguments(text: str) -> tuple[Any, bool]:
    """The value, and whether the text was unreadable. No text at all means no arguments."""
    if not text.strip():
        return {}, False
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return {}, True
    return (whole_value(value) if "\\ud" in text.lower() else value), False


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def whole(text: str) -> str:
    """Half a surrogate pair cannot be stored or sent; it becomes the replacement character."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_value(value: Any) -> Any:
    """The same for every text in a JSON value."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, list):
        return [whole_value(item) for item in value]
    if isinstance(value, dict):
        return {whole(name): whole_value(item) for name, item in value.items()}
    return value
