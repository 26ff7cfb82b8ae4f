"""Cache values in the process for a limited time."""

from fermata.aws import cache
from fermata.aws.cache import TTLCache
from tests.resources import TestClock


class Source:
    def __init__(self, *values: object) -> None:
        self.values = list(values)
        self.call_count = 0

    def __call__(self) -> object:
        self.call_count += 1
        return self.values[min(self.call_count, len(self.values)) - 1]


def test_a_value_is_loaded_once_until_it_expires() -> None:
    clock, source = TestClock(), Source("one", "two")
    ttl_cache = TTLCache(clock.monotonic)
    assert [ttl_cache.get_or_load("key", 60, source) for _ in range(3)] == ["one"] * 3
    clock.advance(61)
    assert ttl_cache.get_or_load("key", 60, source) == "two"


def test_none_is_not_cached() -> None:
    source = Source(None, "there now")
    ttl_cache = TTLCache(TestClock().monotonic)
    assert ttl_cache.get_or_load("key", 60, source) is None
    assert ttl_cache.get_or_load("key", 60, source) == "there now"


def test_values_are_kept_apart_by_key_and_invalidated_one_by_one() -> None:
    ttl_cache = TTLCache(TestClock().monotonic)
    ttl_cache.get_or_load(("a", 1), 60, Source("one"))
    ttl_cache.get_or_load(("a", 2), 60, Source("two"))
    ttl_cache.invalidate(("a", 1))
    ttl_cache.invalidate("never there")
    assert ttl_cache.get_or_load(("a", 1), 60, Source("new")) == "new"
    assert ttl_cache.get_or_load(("a", 2), 60, Source("new")) == "two"


def test_the_number_of_entries_is_limited() -> None:
    clock = TestClock()
    ttl_cache = TTLCache(clock.monotonic)
    for number in range(cache.MAX_CACHE_ENTRIES):
        ttl_cache.get_or_load(number, 10, Source(number))
    clock.advance(11)
    ttl_cache.get_or_load("old ones go first", 10, Source("x"))
    assert len(ttl_cache._entries) == 1
    for number in range(cache.MAX_CACHE_ENTRIES + 5):
        ttl_cache.get_or_load(number, 10, Source(number))
    assert len(ttl_cache._entries) <= cache.MAX_CACHE_ENTRIES
