"""Save state while it changes, in a forked copy of the process (decision 0033).

Unpatched MiniStack saves only on a clean stop. A fork sees the memory at one instant and costs the server a few
milliseconds, however long the writing takes. It happens on the event loop between two requests, so no transaction is
half done. A kill loses the changes of `INTERVAL_SECONDS` and of the writing itself.
"""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ministack import app as ministack
from ministack.core import persistence

from local.emulator.patches.registry import pin_functions

INTERVAL_SECONDS = 1.0
WRITE_TIMEOUT_SECONDS = 30
READ_OPERATIONS = ("Get", "BatchGet", "Query", "Scan", "Describe", "List", "Send")
App = Callable[[Any, Any, Any], Awaitable[None]]

pin_functions(persistence, save_all="ea253a04fd05", save_state="58a955110973")
pin_functions(ministack, _build_persistence_save_dict="9a6393cc953d")


class SnapshotWriter:
    """An ASGI app that notices requests that may change state, and writes snapshots."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._changed = False
        self._writing = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)
        if scope["type"] == "http" and not _is_read(scope):
            self._changed = True

    async def save_periodically(self) -> None:
        """Save while the server runs. A slow disk makes snapshots rarer, but not the server slower."""
        pause = INTERVAL_SECONDS
        while True:
            await asyncio.sleep(pause)
            if self._changed:
                started = time.monotonic()
                await self.save()
                pause = max(INTERVAL_SECONDS, 5 * (time.monotonic() - started))

    async def save(self) -> None:
        """Save now. Returns when all changes before the call are on the disk."""
        async with self._writing:
            self._changed = False
            await asyncio.to_thread(os.waitpid, _fork_and_save(), 0)


def _is_read(scope: Any) -> bool:
    target = dict(scope["headers"]).get(b"x-amz-target", b"").decode("latin-1")
    return scope["method"] in ("GET", "HEAD") or target.rpartition(".")[2].startswith(READ_OPERATIONS)


def _fork_and_save() -> int:
    """Fork a process that saves and return its pid.

    A lock that another thread holds at the fork is never released in the copy. Then the alarm ends the copy, and the
    next snapshot tries again.
    """
    child = os.fork()
    if child:
        return child
    signal.alarm(WRITE_TIMEOUT_SECONDS)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.closerange(3, 1 << 16)
    _save(Path(persistence.STATE_DIR))
    os._exit(0)


def _save(directory: Path) -> None:
    """Write the files of all services beside the old ones, then replace them together, so that they are consistent."""
    new_directory = directory / "new"
    persistence.STATE_DIR = str(new_directory)
    persistence.save_all(ministack._build_persistence_save_dict())
    for file in new_directory.iterdir():
        file.replace(directory / file.name)
