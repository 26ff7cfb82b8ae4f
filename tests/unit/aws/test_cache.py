"""What a process remembers for a little while."""

from fermata.aws import cache
from fermata.aws.cache import TTLCache
from tests.resources import TestClock


class Source:
    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self) -> object:
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]


def test_an_answer_is_asked_for_once_until_its_time_is_over() -> None:
    clock, source = TestClock(), Source("one", "two")
    known = TTLCache(clock.monotonic)
    assert [known.get_or_load("key", 60, source) for _ in range(3)] == ["one"] * 3
    clock.advance(61)
    assert known.get_or_load("key", 60, source) == "two"


def test_what_was_not_found_is_not_remembered() -> None:
    source = Source(None, "there now")
    known = TTLCache(TestClock().monotonic)
    assert known.get_or_load("key", 60, source) is None
    assert known.get_or_load("key", 60, source) == "there now"


def test_answers_are_kept_apart_by_their_keys_and_forgotten_one_by_one() -> None:
    known = TTLCache(TestClock().monotonic)
    known.get_or_load(("a", 1), 60, Source("one"))
    known.get_or_load(("a", 2), 60, Source("two"))
    known.invalidate(("a", 1))
    known.invalidate("never there")
    assert known.get_or_load(("a", 1), 60, Source("new")) == "new"
    assert known.get_or_load(("a", 2), 60, Source("new")) == "two"


def test_a_process_does_not_remember_without_end() -> None:
    clock = TestClock()
    known = TTLCache(clock.monotonic)
    for number in range(cache.MAX_CACHE_ENTRIES):
        known.get_or_load(number, 10, Source(number))
    clock.advance(11)
    known.get_or_load("old ones go first", 10, Source("x"))
    assert len(known._known) == 1
    for number in range(cache.MAX_CACHE_ENTRIES + 5):
        known.get_or_load(number, 10, Source(number))
    assert len(known._known) <= cache.MAX_CACHE_ENTRIES
