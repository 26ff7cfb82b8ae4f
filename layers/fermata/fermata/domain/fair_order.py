"""Order work of many owners so that none waits for all of another's."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

Work = TypeVar("Work")


def interleave_owners(items: Iterable[Work], get_owner: Callable[[Work], str]) -> list[Work]:
    """Order the first item of each owner before the second of any.

    Args:
        items: The items of one owner keep their order.
        get_owner: Returns whose an item is.
    """
    counts: Counter[str] = Counter()
    ranked: list[tuple[int, Work]] = []
    for item in items:
        owner = get_owner(item)
        ranked.append((counts[owner], item))
        counts[owner] += 1
    return [item for _, item in sorted(ranked, key=lambda pair: pair[0])]
