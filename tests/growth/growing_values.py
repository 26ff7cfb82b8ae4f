"""Make values larger, one part after the other: texts, lists, members and nesting."""

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tests.growth.measure_growth import MAX_GROWTH, TooSlow, measure_growth

TEXTS = ("a", "0", " ", "\n", "<", "-", '"', "\\", "\u00e9", "\U0001f600", "{}", "a ", "A-", "</", "<!--", "data:,")
"""What texts are filled with."""


_ITEMS_FACTOR = 8
"""Lists of items are so many times longer: an item has many characters, and work on it takes its time."""


class Growing(NamedTuple):
    """A value of which one part grows."""

    name: str
    make: Callable[[int], Any]
    """Builds it with about so many characters."""


def iter_growing_values(sample: Any, texts: Sequence[str] = TEXTS) -> Iterator[Growing]:
    """Iterate over the sample with each of its parts replaced by one that grows, or with more members or items.

    Args:
        texts: What each text of the sample is filled with, in turn.
    """
    for path in _iter_paths(sample, ()):
        part = _get(sample, path)
        for name, make in _iter_shapes(part, texts):
            yield Growing(
                f"{'.'.join(map(str, path))} {name}", lambda size, p=path, m=make: _replace(sample, p, m(size))
            )


def iter_growing_bodies() -> Iterator[Growing]:
    """Iterate over JSON texts, some of which are none, as no value can be written."""
    yield Growing("a member twice at the end", lambda n: _make_members(n)[:-1] + ',"z":1,"z":1}')
    yield Growing("the first member again at the end", lambda n: _make_members(n)[:-1] + ',"m0":1}')
    yield Growing("brackets", lambda n: "[" * n)
    yield Growing("objects", lambda n: '{"a":' * (n // 5))
    yield Growing("blanks", lambda n: " " * n)
    yield Growing("a number", lambda n: f'{{"a":{"1" * n}}}')
    yield Growing("a fraction", lambda n: f'{{"a":0.{"1" * n}}}')
    yield Growing("halves of pairs", lambda n: '{"a":"%s"}' % ("\\ud800" * (n // 6)))
    yield Growing("a text that is cut off", lambda n: '{"a":"' + '\\"' * (n // 2))


def find_slow_values(
    values: Iterator[Growing], prepare: Callable[[Any], Callable[[], object]], size: int, noticeable_seconds: float
) -> list[str]:
    """Return the names of the values on which work takes too much longer when they are larger.

    Args:
        prepare: Returns the work on a value.
        size: The size that has to take a noticeable time to be judged.
    """
    slow = []
    for growing in values:
        try:
            growth = measure_growth(
                lambda chars, make=growing.make: prepare(make(chars)), size, size, noticeable_seconds=noticeable_seconds
            )
        except TooSlow:
            growth = float("inf")
        if growth > MAX_GROWTH:
            slow.append(f"{growing.name}: {growth:.1f}")
    return slow


def _make_members(size: int) -> str:
    return json.dumps({f"m{number}": 1 for number in range(size // 12)})


def _iter_paths(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from _iter_paths(member, (*path, key))


def _iter_shapes(part: Any, texts: Sequence[str]) -> Iterator[tuple[str, Callable[[int], Any]]]:
    if isinstance(part, str):
        for text in texts:
            yield f"of {text!r}", lambda n, text=text: text * (n // len(text))
        yield "as it is, with blanks around", lambda n: " " * (n // 2) + part + " " * (n // 2)
    if isinstance(part, dict):
        yield "with more members", lambda n: part | {f"m{number}": 1 for number in range(n // 12)}
    if isinstance(part, list) and part:
        length = len(json.dumps(part))
        yield "with equal items", lambda n: copy.deepcopy(part * max(1, _ITEMS_FACTOR * n // length))
        yield (
            "with other ids",
            lambda n: [
                {key: f"{value}{number}" if key in ("id", "slug") else value for key, value in item.items()}
                for number in range(max(1, _ITEMS_FACTOR * n // length))
                for item in part
                if isinstance(item, dict)
            ],
        )
    yield "of empty objects", lambda n: [{}] * (n // 4)


def _get(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _replace(value: Any, path: tuple[str | int, ...], part: Any) -> Any:
    if not path:
        return part
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = _replace(value[path[0]], path[1:], part)
    return copied
