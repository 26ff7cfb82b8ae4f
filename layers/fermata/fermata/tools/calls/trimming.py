"""Shortens a tool's data for the model at the borders of its values, so that what is left is still true."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

_MARK = 40
"""Room for one "… [n more]" mark."""
_DEEPEST = 60
"""Levels of nesting that are looked into; what lies deeper is left out whole."""


def shorten_data(data: Any, max_chars: int) -> Any:
    """`data` itself when its JSON text fits, else a note and as much as fits, first things first."""
    size = count_json_chars(data)
    if size <= max_chars:
        return data
    note = f"Shortened: the first {max_chars:,} or fewer of {size:,} characters. Ask for less, or for a single part."
    return {"truncated": True, "note": note, "data": _fitting(data, max(max_chars, _MARK), _DEEPEST)}


def shorten_text(text: str, max_chars: int) -> str:
    if len(text) <= max_chars:
        return text
    return f"{text[:max_chars]}… [{len(text) - max_chars:,} more characters]"


def count_json_chars(data: Any) -> int:
    return len(json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def _fitting(data: Any, room: int, levels: int) -> Any:
    """Something of the same kind whose JSON text takes about `room` characters at most."""
    if count_json_chars(data) <= room:
        return data
    match data:
        case str():
            return _fitting_text(data, room)
        case list() | tuple() if levels:
            items = [item for _, item in _leading(enumerate(data), room, levels)]
            more = len(data) - len(items)
            return [*items, f"… [{more:,} more items]"] if more else items
        case dict() if levels:
            members = dict(_leading(data.items(), room, levels))
            more = len(data) - len(members)
            return {**members, "…": f"{more:,} more members"} if more else members
    return f"… [{count_json_chars(data):,} characters left out]"


def _fitting_text(text: str, room: int) -> str:
    """Escapes make JSON text longer than the text, so the cut is made by the share that is too much."""
    limit = max(0, room - _MARK)
    cut = text[:limit]
    while cut and count_json_chars(cut) > limit:
        cut = cut[: min(len(cut) - 1, len(cut) * limit // count_json_chars(cut))]
    return shorten_text(text, len(cut))


def _leading(members: Iterable[tuple[Any, Any]], room: int, levels: int) -> Iterator[tuple[Any, Any]]:
    """The first members that fit whole; the one that does not is shortened when that is worth it, and ends the list."""
    left = room - _MARK
    for key, value in members:
        overhead = 2 if isinstance(key, int) else count_json_chars(key) + 2
        size = count_json_chars(value) + overhead
        if size > left:
            if left - overhead > 2 * _MARK:
                yield key, _fitting(value, left - overhead, levels - 1)
            return
        left -= size
        yield key, value
