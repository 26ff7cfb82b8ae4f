"""Measure how processor time grows with the input (decision 0234).

Processor time, unlike wall-clock time, means the same on a busy machine. What disturbs it makes a measurement longer,
never shorter, so the least of several counts.
"""

import contextlib
import gc
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

MAX_GROWTH = 2.5
"""How many times as long twice the input may take. Linear work takes 2 times, quadratic work 4 times."""
NOTICEABLE_SECONDS = 0.001
"""What takes less at the largest size is not measured: it does no harm, and the clock would measure itself."""
_STEPS = 2
"""Doublings between the two sizes that are compared."""
MAX_SECONDS = 1.0
_MAX_ATTEMPTS = 4
_CERTAIN_GROWTH = 3.3
"""Growth that two measurements agree on is not the clock's."""

Prepare = Callable[[int], Callable[[], object]]
"""Builds an input of a size, and returns the work on it. Only the work is measured."""


class TooSlow(Exception):
    """Work was stopped after some time: it may be exponential."""


def measure_growth(
    prepare: Prepare,
    smallest: int,
    largest: int,
    *,
    noticeable_seconds: float = NOTICEABLE_SECONDS,
    max_seconds: float = MAX_SECONDS,
) -> float:
    """Return how many times as long twice the input takes; 0 if no size takes a noticeable time.

    The first size from `smallest` on that takes a noticeable time is compared with a fourth of it.

    Raises:
        TooSlow: The work takes more than `max_seconds`.
    """
    size = smallest
    while (longer := _measure(prepare(size), max_seconds)) < noticeable_seconds:
        size *= 2
        if size > largest:
            return 0.0
    short_work, long_work = prepare(size >> _STEPS), prepare(size)
    shorter = growth = float("inf")
    for attempt in range(_MAX_ATTEMPTS):
        shorter = min(shorter, _measure(short_work, max_seconds))
        growth = (longer / shorter) ** (1 / _STEPS)
        if growth <= MAX_GROWTH or (attempt and growth > _CERTAIN_GROWTH):
            break
        longer = min(longer, _measure(long_work, max_seconds))
    return growth


def _measure(work: Callable[[], object], max_seconds: float) -> float:
    with _stop_after(max_seconds):
        begin = time.thread_time()
        work()
        return max(time.thread_time() - begin, 1e-6)


@contextlib.contextmanager
def _stop_after(seconds: float) -> Iterator[None]:
    """Raise TooSlow in the work after some seconds of processor time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"it takes more than {seconds:g} s of processor time")

    former = signal.signal(signal.SIGPROF, stop)
    gc_was_enabled = gc.isenabled()
    gc.disable()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)
        if gc_was_enabled:
            gc.enable()
