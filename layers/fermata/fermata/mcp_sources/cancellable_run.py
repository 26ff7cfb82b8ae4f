"""Run an asynchronous function in this thread, so that any other thread can end it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

RunResult = TypeVar("RunResult")


class RunAborted(Exception):
    """The run was ended by another thread."""


class RunTimedOut(Exception):
    """The run took longer than it may."""


class CancellableRun:
    """Runs one function at a time, and ends it after a number of seconds. `abort` may be called from any thread."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._scope: anyio.CancelScope | None = None
        self._is_aborted = False

    def run(self, function: Callable[[], Awaitable[RunResult]]) -> RunResult:
        """Return what the function returns; what it raises is raised here.

        Raises:
            RunAborted: Another thread has ended it.
            RunTimedOut: It took too long.
        """
        return anyio.run(self._run_in_scope, function)

    async def _run_in_scope(self, function: Callable[[], Awaitable[RunResult]]) -> RunResult:
        with anyio.move_on_after(self._seconds) as scope:
            with self._lock:
                if self._is_aborted:
                    raise RunAborted
                self._loop, self._scope = asyncio.get_running_loop(), scope
            try:
                return await function()
            finally:
                with self._lock:
                    self._loop = self._scope = None
        raise RunAborted if self._is_aborted else RunTimedOut

    def abort(self) -> None:
        """End the run under way, or the next one."""
        with self._lock:
            self._is_aborted = True
            if self._loop is not None and self._scope is not None:
                self._loop.call_soon_threadsafe(self._scope.cancel)
