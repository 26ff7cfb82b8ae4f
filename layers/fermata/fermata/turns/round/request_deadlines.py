"""End a model request whose step, run or next part takes longer than its agent allows (decision 0364).

A run is the work from a prompt or an answer until the turn ends or waits: nothing counts while a person or an editor
acts.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from fermata.aws.clock import CancellableTimer, Clock
from fermata.domain.errors import ProviderError
from fermata.domain.run_settings import RunTimeLimits

TIMEOUT_CODE = "timeout"


class RequestDeadlines:
    """The limits of one step. `note_part` starts the wait for the next part anew."""

    def __init__(
        self, clock: Clock, limits: RunTimeLimits | None, run_started_at: float, abort: Callable[[], object]
    ) -> None:
        """
        Args:
            limits: None for none.
            run_started_at: When the run began, on the monotonic clock.
            abort: Ends the request.
        """
        self._clock = clock
        self._limits = limits or RunTimeLimits()
        self._run_started_at = run_started_at
        self._abort = abort
        self._timers: list[CancellableTimer] = []
        self._chunk_timer: CancellableTimer | None = None
        self._exceeded = ""

    @contextmanager
    def watch(self) -> Iterator[Self]:
        """Enclose the requests of the step."""
        limits = self._limits
        if limits.total_ms is not None:
            passed = self._clock.monotonic() - self._run_started_at
            self._start(limits.total_ms / 1000 - passed, f"The turn did not end within {limits.total_ms} ms.")
        if limits.step_ms is not None:
            self._start(limits.step_ms / 1000, f"A step did not end within {limits.step_ms} ms.")
        self.note_part()
        try:
            yield self
        finally:
            for timer in (*self._timers, self._chunk_timer):
                if timer is not None:
                    timer.cancel()

    def note_part(self) -> None:
        """Note that a part of the response has come."""
        if self._limits.chunk_ms is None:
            return
        if self._chunk_timer is not None:
            self._chunk_timer.cancel()
        message = f"The model sent nothing for {self._limits.chunk_ms} ms."
        self._chunk_timer = self._clock.start_timer(self._limits.chunk_ms / 1000, lambda: self._exceed(message))

    @property
    def error(self) -> ProviderError | None:
        """The limit that was exceeded, as the error of the request."""
        return ProviderError(TIMEOUT_CODE, self._exceeded, retryable=False) if self._exceeded else None

    def check(self) -> None:
        """Raise the error if a limit is exceeded.

        Raises:
            ProviderError: With the code `timeout`.
        """
        if error := self.error:
            raise error

    def _start(self, seconds: float, message: str) -> None:
        if seconds <= 0:
            self._exceeded = self._exceeded or message
        else:
            self._timers.append(self._clock.start_timer(seconds, lambda: self._exceed(message)))

    def _exceed(self, message: str) -> None:
        self._exceeded = self._exceeded or message
        self._abort()
