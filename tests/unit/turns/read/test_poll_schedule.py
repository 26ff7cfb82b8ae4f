"""Test how often a reader's log is read: by what is due, and at no more than the polls of a steady rate."""

from typing import Any

import pytest

from fermata.aws.settings import Settings
from fermata.domain.events import Event, RoundStartedEvent, TextEvent, ToolRequestEvent
from fermata.turns.read.poll_schedule import PollSchedule
from fermata.turns.turn_log import LogEntry
from fermata.turns.turn_state_from_log import TurnState

STEADY_POLLS_PER_SECOND = 10
TEXT = TextEvent(text="x")
STARTED = RoundStartedEvent(round=1, epoch="e", owner="o")
REQUESTED = ToolRequestEvent(
    request_id="1.0.n", tool_call_id="c", tool_name="t", input={}, effect_key="k", deadline="2026-01-01T00:00:00Z"
)


@pytest.fixture
def settings() -> Settings:
    names = ("conversations", "bridges", "pricing", "usage", "settings", "content")
    values: dict[str, Any] = {f"{name}_table": name for name in names}
    return Settings(**values, bucket="b", key_id="k", state_machine_arn="a")


def entry(event: Event, at_seconds: float, *, held_until: int = 0) -> LogEntry:
    return LogEntry(1, 1, (event,), TurnState(held_until=held_until), "id", int(at_seconds * 1000))


def follow(schedule: PollSchedule, written: list[tuple[float, Event]], until: float) -> tuple[int, list[float]]:
    """Poll until a time; return the number of polls, and how long after each write its entry was found."""
    polls, delays = 0, []
    pending = list(written)
    while schedule.next_poll_at <= until:
        now = schedule.next_poll_at
        polls += 1
        if pending and pending[0][0] <= now:
            at, event = pending.pop(0)
            delays.append(now - at)
            schedule.add_entry(entry(event, at), now)
        else:
            schedule.add_miss(now)
    return polls, delays


@pytest.mark.parametrize("first_text_at", [0.03, 0.3, 1.5])
def test_a_first_text_is_found_at_once_or_after_an_eighth_of_the_time_it_took(
    settings: Settings, first_text_at: float
) -> None:
    _, (delay,) = follow(PollSchedule(settings, 0.0), [(first_text_at, TEXT)], first_text_at + 1)
    assert delay <= max(0.011, first_text_at / 8)


def test_what_follows_a_first_text_at_once_is_found_at_once(settings: Settings) -> None:
    _, delays = follow(PollSchedule(settings, 0.0), [(0.05, TEXT), (0.06, REQUESTED)], 1)
    assert max(delays) <= 0.025


def test_flowing_text_takes_no_more_polls_than_a_steady_rate(settings: Settings) -> None:
    text = [(0.5 + 0.28 * number, TEXT) for number in range(40)]
    end = text[-1][0]
    polls, delays = follow(PollSchedule(settings, 0.0, entry(STARTED, 0.0)), text, end)
    assert len(delays) >= len(text) - 1
    assert sum(delays) / len(delays) <= 0.03
    assert polls - 30 <= end * STEADY_POLLS_PER_SECOND, polls


def test_a_reader_that_is_behind_catches_up(settings: Settings) -> None:
    text = [(0.25 * number, TEXT) for number in range(1, 40)]
    schedule = PollSchedule(settings, 5.0, entry(STARTED, 0.0))
    _, delays = follow(schedule, text, 10)
    assert len(delays) == len(text)
    assert max(delays[-10:]) <= 0.2


def test_a_browser_that_answers_at_once_is_noticed_soon_and_a_slow_one_costs_little(settings: Settings) -> None:
    _, (delay,) = follow(PollSchedule(settings, 0.0, entry(REQUESTED, 0.0)), [(0.03, TEXT)], 0.1)
    assert delay <= 0.02
    polls, _ = follow(PollSchedule(settings, 0.0, entry(REQUESTED, 0.0)), [], 60)
    assert polls <= 140  # one in half a second, and a few at the beginning


@pytest.mark.parametrize("decided_at", [0.2, 1, 3, 10, 29])
def test_a_decision_is_noticed_soon_and_waiting_for_it_costs_little(settings: Settings, decided_at: float) -> None:
    held = entry(STARTED, 0.0, held_until=90_000)
    _, (delay,) = follow(PollSchedule(settings, 0.0, held), [(decided_at, TEXT)], decided_at + 5)
    assert delay <= min(2, max(0.1, decided_at / 8))
    polls, _ = follow(PollSchedule(settings, 0.0, held), [], 30)
    assert polls <= 42  # one in half a second would be 60


def test_what_a_decision_lets_happen_is_looked_for_often_again(settings: Settings) -> None:
    schedule = PollSchedule(settings, 0.0, entry(STARTED, 0.0, held_until=90_000))
    schedule.add_miss(20.0)
    schedule.add_entry(entry(STARTED, 21.0), 22.0)
    assert schedule.next_poll_at <= 22.02


def test_only_a_step_of_the_service_is_looked_for_with_consistent_reads(settings: Settings) -> None:
    schedule = PollSchedule(settings, 0.0, entry(STARTED, 0.0))
    assert schedule.needs_consistent_read
    schedule.add_entry(entry(TEXT, 0.1), 0.1)
    assert schedule.needs_consistent_read
    schedule.add_entry(entry(TEXT, 0.4), 0.4)
    assert not schedule.needs_consistent_read
    schedule.add_entry(entry(REQUESTED, 0.5), 0.5)
    assert not schedule.needs_consistent_read


def test_a_step_that_takes_long_is_looked_for_at_half_the_price(settings: Settings) -> None:
    schedule = PollSchedule(settings, 0.0, entry(STARTED, 0.0))
    schedule.add_miss(0.05)
    assert schedule.needs_consistent_read
    schedule.add_miss(0.5)
    assert not schedule.needs_consistent_read
    schedule.add_entry(entry(TEXT, 0.55), 0.56)
    assert schedule.needs_consistent_read
