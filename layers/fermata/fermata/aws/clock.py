"""Provide time and ids. Nothing else reads the system clock or generates ids, so that tests can control both."""

import re
import secrets
import string
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import cached_property
from typing import Protocol, TypeVar

from fermata.aws.reused_threads import process_threads
from fermata.aws.timer_thread import TimerThread

MapArgument = TypeVar("MapArgument")
MapResult = TypeVar("MapResult")

_ALPHANUMERICS = string.ascii_letters + string.digits
_ID_CHARACTERS = _ALPHANUMERICS + "_-"
"""64 characters, so that every byte gives each of them with the same probability."""
_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}")


def iso_from_epoch(seconds: float) -> str:
    """Convert epoch seconds to an ISO 8601 instant in UTC with milliseconds, the form the API uses."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_id(size: int = 21) -> str:
    """Return a random id of `size` characters from `A-Za-z0-9_-`; 21 of them hold nearly 126 random bits.

    The first character is a letter or a digit, so that no command line mistakes an id for an option.
    """
    characters = [_ID_CHARACTERS[byte % len(_ID_CHARACTERS)] for byte in secrets.token_bytes(size - 1)]
    return secrets.choice(_ALPHANUMERICS) + "".join(characters)


def is_valid_id(text: str) -> bool:
    """Return whether `text` has the form of an id. Anything else needs no lookup, and could exceed DynamoDB's keys."""
    return _ID_PATTERN.fullmatch(text) is not None


class JoinableThread(Protocol):
    """A started thread."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the thread, at most `timeout` seconds."""


class CancellableTimer(Protocol):
    """A started timer."""

    def cancel(self) -> None:
        """Keep the timer from firing. Does nothing if it has fired."""


class Clock:
    """The clock, the sleep, the threads and the locks of one process.

    All waiting goes through this class, so that a test can simulate time and the order of threads (decision 0130).
    """

    @cached_property
    def _timer_thread(self) -> TimerThread:
        return TimerThread()

    def time(self) -> float:
        """Return the seconds since the epoch. The system clock may jump, so measure durations with `monotonic`."""
        return time.time()

    def monotonic(self) -> float:
        """Return seconds that never run backwards, counted from an arbitrary point in this process."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Block this thread for a number of seconds."""
        time.sleep(seconds)

    def now_iso(self, offset_seconds: float = 0) -> str:
        """Return the current time, shifted by `offset_seconds`, as an ISO instant."""
        return iso_from_epoch(self.time() + offset_seconds)

    def new_lock(self) -> AbstractContextManager[object]:
        """Return a lock that is not reentrant."""
        return threading.Lock()

    def new_event(self) -> threading.Event:
        """Return an event that is not set."""
        return threading.Event()

    def new_condition(self) -> threading.Condition:
        """Return a condition with a lock of its own, which is reentrant."""
        return threading.Condition()

    def start_thread(self, target: Callable[[], object], name: str) -> JoinableThread:
        """Run `target` in a daemon thread, which does not keep the process alive. It may have served others before."""
        return process_threads.start(target, name)

    def start_side_thread(self, target: Callable[[], object], name: str) -> JoinableThread:
        """Start a thread that ends by itself, and for which whoever starts it waits."""
        return self.start_thread(target, name)

    def start_timer(self, seconds: float, act: Callable[[], object]) -> CancellableTimer:
        """Call `act` after `seconds`, unless the timer is cancelled before. All timers share one thread."""
        return self._timer_thread.start_timer(seconds, act)

    def map_in_threads(
        self, function: Callable[[MapArgument], MapResult], arguments: Sequence[MapArgument], max_threads: int
    ) -> list[MapResult]:
        """Call a function for each argument, several at a time.

        Args:
            function: Called once for each argument. What it raises is raised here.
            arguments: At least one.
            max_threads: The greatest number of calls at a time.

        Returns:
            The results, in the order of the arguments.
        """
        with ThreadPoolExecutor(min(max_threads, len(arguments)), thread_name_prefix=function.__name__) as pool:
            return list(pool.map(function, arguments))
