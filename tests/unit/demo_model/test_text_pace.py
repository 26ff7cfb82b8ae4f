"""The demo model writes its text at the pace of the script, however late a busy machine wakes it."""

import asyncio
from types import SimpleNamespace

import pytest

from local.demo_model import response_stream

INTERVAL = 0.025
LATENESS = 0.003


class LateClock:
    """A clock whose sleeps all end late."""

    def __init__(self) -> None:
        self.now = 100.0

    async def sleep(self, seconds: float) -> None:
        self.now += seconds + LATENESS


@pytest.fixture
def late_clock(monkeypatch: pytest.MonkeyPatch) -> LateClock:
    clock = LateClock()
    monkeypatch.setattr(response_stream, "asyncio", SimpleNamespace(sleep=clock.sleep))
    monkeypatch.setattr(response_stream, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


async def wait_for_chunks(clock: LateClock, *pauses: float) -> list[float]:
    """Return when each chunk was written. Before each there may be a pause."""
    pace = response_stream._TextClock(INTERVAL)
    written: list[float] = []
    for pause in pauses:
        if pause:
            clock.now += pause
            pace.restart()
        await pace.wait_for_next()
        written.append(clock.now - 100)
    return written


def test_a_hundred_late_chunks_are_late_once(late_clock: LateClock) -> None:
    *_, last = asyncio.run(wait_for_chunks(late_clock, *[0.0] * 101))
    assert last == pytest.approx(100 * INTERVAL + LATENESS, abs=0.001)


def test_after_a_pause_nothing_is_made_up_for(late_clock: LateClock) -> None:
    _, before, after, last = asyncio.run(wait_for_chunks(late_clock, 0, 0, 1, 0))
    assert after - before == pytest.approx(1 + LATENESS, abs=0.001)
    assert last - after == pytest.approx(INTERVAL, abs=0.004)
