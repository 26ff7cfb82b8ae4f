"""Cache values in the process for a limited time, so that a warm Lambda function does not read them from AWS again."""

import math
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

CachedValue = TypeVar("CachedValue")
MAX_CACHE_ENTRIES = 10_000


class TTLCache:
    """Values by key, each with its own lifetime. None is never cached.

    Two threads may load the same key at the same time. Both values are valid; the later one is kept.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._entries: dict[Hashable, tuple[float, Any]] = {}
        """By key: the monotonic time at which the entry expires, and the value."""

    def get_or_load(self, key: Hashable, seconds: float, load: Callable[[], CachedValue]) -> CachedValue:
        """Return the cached value, or call `load` and cache its result.

        Args:
            key: Names the value within the process; its first member says what is cached.
            seconds: The lifetime of a value that is loaded now. A cached value keeps its own.
            load: Reads the value. None is returned and not cached; what it raises is not caught.
        """
        cached: CachedValue | None = self.get_value(key)
        if cached is not None:
            return cached
        value = load()
        if value is not None:
            self._store(key, seconds, value)
        return value

    def get_value(self, key: Hashable) -> Any:
        """Return the cached value, or None."""
        entry = self._entries.get(key)
        return entry[1] if entry is not None and entry[0] > self._monotonic() else None

    def get_shared(self, key: Hashable, make: Callable[[], CachedValue]) -> CachedValue:
        """Return the one value that all threads of the process share; the first of them makes it. It does not expire.

        Two threads may call `make` at the same time. Both get the value of the same one.
        """
        cached: CachedValue | None = self.get_value(key)
        if cached is not None:
            return cached
        shared: CachedValue = self._entries.setdefault(key, (math.inf, make()))[1]
        return shared

    def put_value(self, key: Hashable, seconds: float, value: Any) -> None:
        """Cache a value in place of the one that is cached."""
        self._store(key, seconds, value)

    def invalidate(self, key: Hashable) -> None:
        """Remove a value from this process after a write that changed it. In other processes it expires later."""
        self._entries.pop(key, None)

    def _store(self, key: Hashable, seconds: float, value: Any) -> None:
        now = self._monotonic()
        if len(self._entries) >= MAX_CACHE_ENTRIES:
            self._entries = {other: entry for other, entry in list(self._entries.items()) if entry[0] > now}
        if len(self._entries) >= MAX_CACHE_ENTRIES:
            self._entries = {other: entry for other, entry in list(self._entries.items()) if entry[0] == math.inf}
        self._entries[key] = (now + seconds, value)
