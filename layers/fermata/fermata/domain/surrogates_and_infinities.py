"""Make text and JSON values storable: UTF-8 has no halves of surrogate pairs, and JSON no infinite numbers."""

import math
from typing import Any


def replace_lone_surrogates(text: str) -> str:
    """Join the halves of surrogate pairs, and replace those without another half by U+FFFD."""
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
