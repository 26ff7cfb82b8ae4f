"""End what a test has left waiting: in a later test its tables are gone, and it would reach for the network."""

from collections.abc import Callable, Iterator

import pytest

from fermata.aws.timer_thread import Timer, TimerThread

_started: list[Timer] = []
_start_timer = TimerThread.start_timer


def _start_and_note(thread: TimerThread, seconds: float, act: Callable[[], object]) -> Timer:
    timer = _start_timer(thread, seconds, act)
    _started.append(timer)
    return timer


def install_timer_guard() -> None:
    """Note the timers of this process from now on."""
    TimerThread.start_timer = _start_and_note  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Cancel the timers that a test has started."""
    try:
        return (yield)
    finally:
        while _started:
            _started.pop().cancel()
