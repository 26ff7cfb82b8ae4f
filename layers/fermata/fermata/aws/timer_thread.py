"""Call functions later, all of them in one thread (decision 0299)."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(order=True)
class Timer:
    """A function that is to be called at an instant of the monotonic clock."""

    at: float
    number: int
    """Timers of the same instant are called in the order in which they were started."""
    act: Callable[[], object] = field(compare=False)
    is_cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        """Keep the function from being called. Does nothing if it has been called."""
        self.is_cancelled = True


class TimerThread:
    """A daemon thread that is there while a timer is.

    A function that takes long delays the others. One that raises ends the thread, as it would end a thread of its own,
    and another thread goes on with the other timers.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._timers: list[Timer] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def start_timer(self, seconds: float, act: Callable[[], object]) -> Timer:
        """Call `act` after `seconds`, unless the timer is cancelled before."""
        with self._changed:
            timer = Timer(time.monotonic() + seconds, next(self._numbers), act)
            heapq.heappush(self._timers, timer)
            self._changed.notify()
            self._ensure_thread()
        return timer

    def _ensure_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="timers", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            while timer := self._wait_for_next():
                timer.act()
        finally:
            with self._changed:
                self._thread = None
                if self._timers:
                    self._ensure_thread()

    def _wait_for_next(self) -> Timer | None:
        """Return the next timer when its time has come, or None as soon as there is none."""
        with self._changed:
            while self._timers:
                first = self._timers[0]
                if first.is_cancelled:
                    heapq.heappop(self._timers)
                elif (seconds := first.at - time.monotonic()) > 0:
                    self._changed.wait(seconds)
                else:
                    return heapq.heappop(self._timers)
        return None
