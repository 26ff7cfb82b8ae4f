"""Read fields of a provider's JSON leniently: a value of an unexpected type counts as absent (decision 0081)."""

from typing import Any

from fermata.domain.surrogates_and_infinities import replace_lone_surrogates

MAX_NAME_FIELD_CHARS = 256
"""Providers themselves take 128 at most."""
_MAX_TEXT_WRAPPINGS = 2


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_dict_list(value: Any) -> list[dict[str, Any]]:
    """Return the members of a list that are objects."""
    return [member for member in value if isinstance(member, dict)] if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_written_text(value: Any) -> str:
    """Return a text, also a wrapped one: `{"value": …}`, a part `{"type": "text", "text": …}`, or a list of these."""
    if isinstance(value, str):  # nearly always
        return value
    if isinstance(value, list):
        return "".join(map(_unwrap_text, value))
    return _unwrap_text(value)


def _unwrap_text(value: Any) -> str:
    for _ in range(_MAX_TEXT_WRAPPINGS):
        if not isinstance(value, dict):
            break
        value = value.get("value") or value.get("text")
    return as_text(value)


def as_name(value: Any) -> str:
    """Return an id or a name that can be stored; some servers number their ids."""
    if isinstance(value, str):
        return replace_lone_surrogates(value[:MAX_NAME_FIELD_CHARS])
    return str(value)[:MAX_NAME_FIELD_CHARS] if type(value) is int else ""


def as_index(value: Any) -> int:
    return value if type(value) is int else 0
