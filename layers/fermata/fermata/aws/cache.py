"""What a process remembers for a little while, so that a warm request asks AWS nothing about it again."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")
MAX_CACHE_ENTRIES = 10_000


class TTLCache:
    """Answers by key, each with its own time to forget. What was not found (None) is never remembered.

    Two threads may load the same answer at once; both answers are right, the later one stays.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known: dict[Hashable, tuple[float, Any]] = {}

    def get_or_load(self, key: Hashable, seconds: float, load: Callable[[], Value]) -> Value:
        known = self._known.get(key)
        if known is not None and known[0] > self._monotonic():
            value: Value = known[1]
            return value
        value = load()
        if value is not None:
            self._keep(key, seconds, value)
        return value

    def invalidate(self, key: Hashable) -> None:
        self._known.pop(key, None)

    def _keep(self, key: Hashable, seconds: float, value: Any) -> None:
        now = self._monotonic()
        if len(self._known) >= MAX_CACHE_ENTRIES:
            self._known = {held: entry for held, entry in list(self._known.items()) if entry[0] > now}
        if len(self._known) >= MAX_CACHE_ENTRIES:
            self._known = {}
        self._known[key] = (now + seconds, value)
