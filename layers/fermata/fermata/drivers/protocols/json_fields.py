"""Members of a provider's JSON, whatever they turn out to be: what is not of its kind counts as not there."""

from typing import Any

from fermata.drivers.protocols.tool_arguments import replace_lone_surrogates

MAX_NAME_FIELD_CHARS = 256
"""Characters; providers themselves take 128 at most."""


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_dict_list(value: Any) -> list[dict[str, Any]]:
    """Those of a list's members that are objects."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_name(value: Any) -> str:
    """An id or a name that can be stored. Some servers count their ids."""
    if isinstance(value, str):
        return replace_lone_surrogates(value[:MAX_NAME_FIELD_CHARS])
    return str(value)[:MAX_NAME_FIELD_CHARS] if type(value) is int else ""


def as_index(value: Any) -> int:
    return value if type(value) is int else 0
