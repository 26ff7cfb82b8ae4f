"""What a process remembers for a little while."""

from fermata.aws import memory
from fermata.aws.memory import Memory
from tests.desk import TestClock


class Source:
    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked = 0

    def __call__(self) -> object:
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]


def test_an_answer_is_asked_for_once_until_its_time_is_over() -> None:
    clock, source = TestClock(), Source("one", "two")
    known = Memory(clock.monotonic)
    assert [known.recall("key", 60, source) for _ in range(3)] == ["one"] * 3
    clock.go_on(61)
    assert known.recall("key", 60, source) == "two"


def test_what_was_not_found_is_not_remembered() -> None:
    source = Source(None, "there now")
    known = Memory(TestClock().monotonic)
    assert known.recall("key", 60, source) is None
    assert known.recall("key", 60, source) == "there now"


def test_answers_are_kept_apart_by_their_keys_and_forgotten_one_by_one() -> None:
    known = Memory(TestClock().monotonic)
    known.recall(("a", 1), 60, Source("one"))
    known.recall(("a", 2), 60, Source("two"))
    known.forget(("a", 1))
    known.forget("never there")
    assert known.recall(("a", 1), 60, Source("new")) == "new"
    assert known.recall(("a", 2), 60, Source("new")) == "two"


def test_a_process_does_not_remember_without_end() -> None:
    clock = TestClock()
    known = Memory(clock.monotonic)
    for number in range(memory.MOST):
        known.recall(number, 10, Source(number))
    clock.go_on(11)
    known.recall("old ones go first", 10, Source("x"))
    assert len(known._known) == 1
    for number in range(memory.MOST + 5):
        known.recall(number, 10, Source(number))
    assert len(known._known) <= memory.MOST
