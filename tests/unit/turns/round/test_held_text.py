"""Test that the first text waits for the rest of what has arrived, and for nothing else (decision 0601)."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.domain.events import TextEvent
from fermata.turns.round.stream_writer import MAX_HOLD_SECONDS, StreamWriter
from fermata.turns.turn_log import TurnEnded
from tests.resources import TestClock


class ListedLog:
    """A log that lists the texts of each append."""

    def __init__(self) -> None:
        self.appends: list[list[str]] = []
        self.refusal: Exception | None = None

    def append(self, build_events: Callable[[Any], Any]) -> None:
        if self.refusal:
            raise self.refusal
        self.appends.append([event.text for event in build_events(None)])


class HeldWriter:
    """A writer to such a log, and what it wants called before the response is waited for."""

    def __init__(self, shared_resources: Resources, clock: TestClock, *, knows_waits: bool = True) -> None:
        self.log = ListedLog()
        self.aborts: list[str] = []
        self.before_wait: list[Callable[[], object]] = []

        def hold(action: Callable[[], object]) -> bool:
            self.before_wait.append(action)
            return knows_waits

        log: Any = self.log
        unused: Any = None
        resources = Resources(shared_resources.settings, clock)
        self.writer = StreamWriter(resources, log, unused, lambda: self.aborts.append("aborted"), hold)

    def write(self, *texts: str) -> None:
        for text in texts:
            self.writer.write(TextEvent(text=text))


@pytest.mark.parametrize("seconds", [0, 2])
def test_first_text_is_written_before_the_response_is_waited_for(
    shared_resources: Resources, clock: TestClock, seconds: float
) -> None:
    held = HeldWriter(shared_resources, clock)
    clock.advance(seconds)  # until models begin to answer
    held.write("Let me ", "see.")
    assert held.log.appends == []
    (write_now,) = held.before_wait
    write_now()
    assert held.log.appends == [["Let me see."]]
    held.writer.write_held()
    assert held.log.appends == [["Let me see."]], "nothing is left to write"


def test_text_that_is_held_belongs_to_the_commit(shared_resources: Resources, clock: TestClock) -> None:
    held = HeldWriter(shared_resources, clock)
    held.write("Let me see.")
    assert [event.text for event in held.writer.take_unwritten()] == ["Let me see."]
    held.writer.write_held()
    assert held.log.appends == []


def test_text_is_not_held_for_long(shared_resources: Resources, clock: TestClock) -> None:
    held = HeldWriter(shared_resources, clock)
    held.write("a")
    clock.advance(MAX_HOLD_SECONDS)
    held.write("b")
    assert held.log.appends == [["ab"]]
    held.write("c")
    assert held.log.appends == [["ab"]], "further text is written when it is due"


def test_text_is_written_at_once_where_nobody_knows_of_waits(shared_resources: Resources, clock: TestClock) -> None:
    held = HeldWriter(shared_resources, clock, knows_waits=False)
    held.write("a", "b")
    assert held.log.appends == [["a"]]


def test_what_else_is_appended_follows_the_text(shared_resources: Resources, clock: TestClock) -> None:
    held = HeldWriter(shared_resources, clock)
    held.write("a")
    held.writer.append(lambda: held.log.appends.append(["other"]))
    assert held.log.appends == [["a"], ["other"]]


def test_a_turn_that_ends_meanwhile_aborts_the_request(shared_resources: Resources, clock: TestClock) -> None:
    held = HeldWriter(shared_resources, clock)
    held.write("a")
    held.log.refusal = TurnEnded()
    held.before_wait[0]()
    assert held.aborts == ["aborted"]
    with pytest.raises(TurnEnded):
        held.write("b")


def test_an_error_stays_although_the_watching_thread_finds_the_log_in_order_behind_it(
    shared_resources: Resources, clock: TestClock
) -> None:
    """That thread has waited for the flush. The text would be lost, and the turn end as if somebody had stopped it."""
    held = HeldWriter(shared_resources, clock)
    held.write("a")
    held.log.refusal = TimeoutError("throttled")
    held.before_wait[0]()
    held.log.refusal = None
    ticks = iter([False, True])
    stopped: Any = SimpleNamespace(wait=lambda _seconds: next(ticks))
    held.writer._stopped = stopped
    held.writer._watch()
    with pytest.raises(TimeoutError, match="throttled"):
        held.write("b")
