"""Shortens a tool's data for the model at the borders of its values, so that what is left is still true."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

_MARK = 40
"""Room for one "… [n more]" mark."""
_DEEPEST = 60
"""Levels of nesting that are looked into; what lies deeper is left out whole."""


def shortened(data: Any, limit: int) -> Any:
    """`data` itself when its JSON text fits, else a note and as much as fits, first things first."""
    size = json_size(data)
    if size <= limit:
        return data
    note = f"Shortened: the first {limit:,} or fewer of {size:,} characters. Ask for less, or for a single part."
    return {"truncated": True, "note": note, "data": _fitting(data, max(limit, _MARK), _DEEPEST)}


def shortened_text(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… [{len(text) - limit:,} more characters]"


def json_size(data: Any) -> int:
    return len(json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def _fitting(data: Any, room: int, levels: int) -> Any:
    """Something of the same kind whose JSON text takes about `room` characters at most."""
    if json_size(data) <= room:
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
    return f"… [{json_size(data):,} characters left out]"


def _fitting_text(text: str, room: int) -> str:
    """Escapes make JSON text longer than the text, so the cut is made by the share that is too much."""
    limit = max(0, room - _MARK)
    cut = text[:limit]
    while cut and json_size(cut) > limit:
        cut = cut[: min(len(cut) - 1, len(cut) * limit // json_size(cut))]
    return shortened_text(text, len(cut))


def _leading(members: Iterable[tuple[Any, Any]], room: int, levels: int) -> Iterator[tuple[Any, Any]]:
    """The first members that fit whole; the one that does not is shortened when that is worth it, and ends the list."""
    left = room - _MARK
    for key, value in members:
        overhead = 2 if isinstance(key, int) else json_size(key) + 2
        size = json_size(value) + overhead
        if size > left:
            if left - overhead > 2 * _MARK:
                yield key, _fitting(value, left - overhead, levels - 1)
            return
        left -= size
        yield key, value
