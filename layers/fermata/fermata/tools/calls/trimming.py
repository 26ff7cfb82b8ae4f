"""Shorten the data of a tool result for the model.

Data is cut between values, not inside their JSON text, so that what remains is still true.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

_MARK_CHARS = 40
"""Characters reserved for one mark "… [n more]"."""
_MAX_DEPTH = 60
"""Levels of nesting that are searched. A deeper value is left out whole."""


def shorten_data(data: Any, max_chars: int) -> Any:
    """Return `data` itself if its JSON text fits, or else a note with as many of its first values as fit."""
    size = count_json_chars(data)
    if size <= max_chars:
        return data
    note = f"Shortened: the first {max_chars:,} or fewer of {size:,} characters. Ask for less, or for a single part."
    return {"truncated": True, "note": note, "data": _shorten_value(data, max(max_chars, _MARK_CHARS), _MAX_DEPTH)}


def shorten_text(text: str, max_chars: int) -> str:
    """Cut a text to `max_chars` characters, and append how many are missing. The note comes on top of `max_chars`."""
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}… [{len(text) - max_chars:,} more characters]"


def count_json_chars(data: Any) -> int:
    """Count the characters of the compact JSON text.

    Raises:
        TypeError, ValueError: The data is not JSON.
    """
    return len(json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def _shorten_value(value: Any, max_chars: int, depth: int) -> Any:
    """Return a value of the same kind whose JSON text has about `max_chars` characters at most."""
    if count_json_chars(value) <= max_chars:
        return value
    match value:
        case str():
            return _shorten_string(value, max_chars)
        case list() | tuple() if depth:
            items = [item for _, item in _take_first_members(enumerate(value), max_chars, depth)]
            omitted = len(value) - len(items)
            return [*items, f"… [{omitted:,} more items]"] if omitted else items
        case dict() if depth:
            members = dict(_take_first_members(value.items(), max_chars, depth))
            omitted = len(value) - len(members)
            return {**members, "…": f"{omitted:,} more members"} if omitted else members
    return f"… [{count_json_chars(value):,} characters left out]"


def _shorten_string(text: str, max_chars: int) -> str:
    """Cut a string by its share of the excess, because escapes make the JSON text longer than the string."""
    limit = max(0, max_chars - _MARK_CHARS)
    cut = text[:limit]
    while cut and count_json_chars(cut) > limit:
        cut = cut[: min(len(cut) - 1, len(cut) * limit // count_json_chars(cut))]
    return shorten_text(text, len(cut))


def _take_first_members(members: Iterable[tuple[Any, Any]], max_chars: int, depth: int) -> Iterator[tuple[Any, Any]]:
    """Yield the first members that fit whole, then the next one shortened if enough characters are left for it."""
    left = max_chars - _MARK_CHARS
    for key, value in members:
        overhead = 2 if isinstance(key, int) else count_json_chars(key) + 2
        size = count_json_chars(value) + overhead
        if size > left:
            if left - overhead > 2 * _MARK_CHARS:
                yield key, _shorten_value(value, left - overhead, depth - 1)
            return
        left -= size
        yield key, value
