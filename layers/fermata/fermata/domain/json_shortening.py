"""Shorten the data of a tool result for the model.

Data is cut between values, not inside their JSON text, so that what remains is still true. A note says how much is
missing and how to ask for it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_MARK_CHARS = 40
"""Characters reserved for one mark "… [n more]"."""
_MAX_DEPTH = 60
"""Levels of nesting that are searched. A deeper value is left out whole."""
_MAX_SHARED_MEMBERS = 40
"""An object with more members is cut at its end, like a list."""
_MIN_MEMBER_CHARS = 2 * _MARK_CHARS
_SHORTENED_MEMBERS = {"truncated", "note", "totalCharacters", "data"}
ADVICE = "To read the rest, ask for less at once, a later part, or a single node or item."
"""What the model reads about the part that is missing."""
_ADVICE_OF_PART = (
    "What is missing is in no other part, whatever pageInfo says: ask for this part again alone, or for single nodes "
    "behind the last one here."
)
"""The same of a part of a document, whose nextPart begins behind the gap."""


def shorten_data(data: Any, max_chars: int) -> Any:
    """Return `data` itself if its JSON text fits, or else a note with as much of its values as fits.

    Small members of an object stay whole, and the large ones share what is left. Data that was shortened before is
    shortened further, and still says how much there was in the beginning.
    """
    size = count_json_chars(data)
    if size <= max_chars:
        return data
    if isinstance(data, dict) and data.keys() == _SHORTENED_MEMBERS and type(data["totalCharacters"]) is int:
        size, data = data["totalCharacters"], data["data"]
    shortened = shorten_value(data, max_chars)
    note = (
        f"Shortened: about {count_json_chars(shortened):,} of {size:,} characters are here. {advise_on_the_rest(data)}"
    )
    return {"truncated": True, "note": note, "totalCharacters": size, "data": shortened}


def advise_on_the_rest(data: Any) -> str:
    """Return how to ask for what was left out of data: it is not in the next part of a document that comes in parts."""
    return _ADVICE_OF_PART if isinstance(data, dict) and isinstance(data.get("pageInfo"), dict) else ADVICE


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


def share_room(sizes: Sequence[int], room: int) -> list[int]:
    """Divide `room` among things of these sizes: the small ones get all they need, the others equal shares."""
    shares = [0] * len(sizes)
    left = max(0, room)
    for place, index in enumerate(sorted(range(len(sizes)), key=lambda index: sizes[index])):
        shares[index] = min(sizes[index], left // (len(sizes) - place))
        left -= shares[index]
    return shares


def shorten_value(value: Any, max_chars: int) -> Any:
    """Return a value of the same kind with about `max_chars` characters of JSON text, and marks of what is missing."""
    return _shorten_value(value, max(max_chars, _MARK_CHARS), _MAX_DEPTH)


def _shorten_value(value: Any, max_chars: int, depth: int) -> Any:
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
            return _shorten_object(value, max_chars, depth)
    return f"… [{count_json_chars(value):,} characters left out]"


def _shorten_object(value: dict[str, Any], max_chars: int, depth: int) -> dict[str, Any]:
    """Keep all members, the large ones shortened, if there is room for a piece of each; else the first ones."""
    if len(value) <= _MAX_SHARED_MEMBERS:
        keys = [count_json_chars(key) + 2 for key in value]
        shares = share_room([count_json_chars(member) for member in value.values()], max_chars - sum(keys) - 2)
        shared = list(zip(value.items(), shares, strict=True))
        if all(share >= _MIN_MEMBER_CHARS or count_json_chars(member) <= share for (_, member), share in shared):
            return {key: _shorten_value(member, share, depth - 1) for (key, member), share in shared}
    members = dict(_take_first_members(value.items(), max_chars, depth))
    omitted = len(value) - len(members)
    return {**members, "…": f"{omitted:,} more members"} if omitted else members


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
