"""A turn's reader is present while its process says so, and has departed when it has left or the process is gone."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from fermata.turns.read.abandonment import AbandonmentWatcher
from fermata.turns.read.reader_presence import (
    PRESENCE_RENEWAL_SECONDS,
    PRESENCE_SECONDS,
    has_reader_departed,
)
from tests.unit.turns.stage import Stage
from tests.waiting import wait_until


def test_a_departure_that_is_written_after_the_return_is_not_the_last_word(
    staged: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = staged(fermata_stage="local", abandoned_seconds=3600)
    late_threads: list[Callable[[], Any]] = []
    monkeypatch.setattr(stage.resources.clock, "start_thread", lambda target, name: late_threads.append(target))
    turn = stage.start_turn(dialect="instatic")
    watcher = AbandonmentWatcher(stage.resources)
    watcher.add_reader(turn)
    watcher.remove_reader(turn, is_broken_off=True)
    stage.pass_time(0.1)
    watcher.add_reader(turn, is_returning=True)
    stage.pass_time(0.1)
    for write_departure in late_threads:
        write_departure()
    assert not has_reader_departed(stage.resources, turn)
    watcher.remove_reader(turn, is_broken_off=True)
    late_threads[-1]()
    assert has_reader_departed(stage.resources, turn)
    watcher.add_reader(turn)
    watcher.remove_reader(turn, is_broken_off=False, has_seen_end=True)  # so that no timer outlives the test


@pytest.fixture
def ring(staged: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch) -> tuple[Stage, list[Callable[[], Any]]]:
    """A local stage, and what its timers will do."""
    stage = staged(fermata_stage="local", abandoned_seconds=3600)
    timers: list[Callable[[], Any]] = []

    def start_timer(_seconds: float, act: Callable[[], Any]) -> Any:
        timers.append(act)
        return threading.Timer(0, act)  # never started

    monkeypatch.setattr(stage.resources.clock, "start_timer", start_timer)
    return stage, timers


def test_a_reader_stays_present_for_as_long_as_its_process_says_so(ring: tuple[Stage, list[Callable[[], Any]]]) -> None:
    stage, timers = ring
    turn = stage.start_turn(dialect="instatic")
    AbandonmentWatcher(stage.resources).add_reader(turn)
    for _ in range(6):
        stage.pass_time(PRESENCE_RENEWAL_SECONDS)
        timers.pop()()
        assert not has_reader_departed(stage.resources, turn)
    assert len(timers) == 1


@pytest.mark.parametrize("renewals", [0, 1])
def test_a_reader_whose_process_was_killed_has_departed(
    ring: tuple[Stage, list[Callable[[], Any]]], renewals: int
) -> None:
    stage, timers = ring
    turn = stage.start_turn(dialect="instatic")
    AbandonmentWatcher(stage.resources).add_reader(turn)
    for _ in range(renewals):
        stage.pass_time(PRESENCE_RENEWAL_SECONDS)
        timers.pop()()
    stage.pass_time(PRESENCE_SECONDS)
    assert not has_reader_departed(stage.resources, turn)
    stage.pass_time(1)
    assert has_reader_departed(stage.resources, turn)


def test_a_first_reader_that_comes_late_is_present_at_once(ring: tuple[Stage, list[Callable[[], Any]]]) -> None:
    """The function that has started the turn stood still, or its client read the answer as JSON first."""
    stage, _ = ring
    turn = stage.start_turn(dialect="instatic")
    stage.pass_time(PRESENCE_SECONDS - 1)
    AbandonmentWatcher(stage.resources).add_reader(turn)
    stage.pass_time(2)
    assert not has_reader_departed(stage.resources, turn)


def test_a_reader_that_has_left_is_not_renewed(ring: tuple[Stage, list[Callable[[], Any]]]) -> None:
    stage, timers = ring
    turn = stage.start_turn(dialect="instatic")
    watcher = AbandonmentWatcher(stage.resources)
    watcher.add_reader(turn)
    (renew,) = timers
    watcher.remove_reader(turn, is_broken_off=False)
    wait_until(lambda: has_reader_departed(stage.resources, turn), "the departure is written")
    renew()
    assert has_reader_departed(stage.resources, turn)
    assert timers == [renew]
