"""Members of a provider's JSON, whatever they turn out to be: what is not of its kind counts as not there."""

from typing import Any

from fermata.drivers.arguments import whole

LONGEST_NAME = 256
"""Characters; providers themselves take 128 at most."""


def object_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[dict[str, Any]]:
    """Those of a list's members that are objects."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def name_of(value: Any) -> str:
    """An id or a name that can be stored. Some servers count their ids."""
    if isinstance(value, str):
        return whole(value[:LONGEST_NAME])
    return str(value)[:LONGEST_NAME] if type(value) is int else ""


def place_of(value: Any) -> int:
    return value if type(value) is int else 0
