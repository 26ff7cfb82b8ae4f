"""State that survives a kill: while things change, a forked copy of the process writes them down.

Stock MiniStack saves on a clean stop only. A fork sees one instant of the memory and costs the service a few
milliseconds, however long the writing takes; it happens on the event loop, between two requests, so that no
transaction is caught half done. What a kill loses is at most `INTERVAL_SECONDS` and the writing itself.
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
    """Watches requests for changes and writes a snapshot when there were any."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._changed = False
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app(scope, receive, send)
        if scope["type"] == "http" and not _only_reads(scope):
            self._changed = True

    async def save_periodically(self) -> None:
        """Runs as long as the server does. A slow disk makes the snapshots rarer, not the service slower."""
        pause = INTERVAL_SECONDS
        while True:
            await asyncio.sleep(pause)
            if self._changed:
                started = time.monotonic()
                await self.save()
                pause = max(INTERVAL_SECONDS, 5 * (time.monotonic() - started))

    async def save(self) -> None:
        """Returns when everything up to its call is on the disk."""
        async with self._one_at_a_time:
            self._changed = False
            await asyncio.to_thread(os.waitpid, _fork_and_save(), 0)


def _only_reads(scope: Any) -> bool:
    target = dict(scope["headers"]).get(b"x-amz-target", b"").decode("latin-1")
    return scope["method"] in ("GET", "HEAD") or target.rpartition(".")[2].startswith(READ_OPERATIONS)


def _fork_and_save() -> int:
    """A lock that another thread held at the fork stays shut in the copy: then the alarm ends it, and we try again."""
    child = os.fork()
    if child:
        return child
    signal.alarm(WRITE_TIMEOUT_SECONDS)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.closerange(3, 1 << 16)
    _save(Path(persistence.STATE_DIR))
    os._exit(0)


def _save(directory: Path) -> None:
    """All services are written beside the old state, then put in its place together, so that they fit each other."""
    beside = directory / "new"
    persistence.STATE_DIR = str(beside)
    persistence.save_all(ministack._build_persistence_save_dict())
    for file in beside.iterdir():
        file.replace(directory / file.name)
