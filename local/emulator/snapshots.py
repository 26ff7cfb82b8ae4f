"""Save all state at one instant, in a forked copy of the process, and load it with the journal behind it.

A snapshot (`snapshot_files.py`) holds everything before the journal of its number, so it replaces all older snapshots
and journals (decision 0160). A fork sees the memory at one instant and costs the server a few milliseconds, however
long the writing takes. It happens on the event loop between two requests, so no transaction is half done (decision
0033).
"""

import asyncio
import contextlib
import functools
import json
import logging
import os
import shutil
import signal
import time
import traceback
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ministack import app as ministack
from ministack.core import persistence
from ministack.services import lambda_svc

from local.emulator.journal import change_journal, list_journals, read_changes
from local.emulator.patches import dynamodb_streams, journaled_changes
from local.emulator.patches.registry import Function, patch_function, pin_functions
from local.emulator.snapshot_files import (
    MANIFEST_NAME,
    delete_replaced_files,
    delete_unfinished_snapshots,
    find_snapshot,
    is_complete,
    publish_snapshot,
    write_synced_file,
)
from local.emulator.stack_change_status import is_stack_changing, note_saved_stacks, read_stack_statuses
from local.emulator.state_lock import close_inherited_descriptors

INTERVAL_SECONDS = 10.0
"""How often what no journal holds is saved while it changes: logs, metrics, and when schedules were due."""
WRITE_TIMEOUT_SECONDS = 30
STACK_POLL_SECONDS = 0.02
MAX_STACK_SECONDS = 30.0
App = Callable[[Any, Any, Any], Awaitable[None]]

_deferred_deletions: list[Callable[[], None]] = []
"""What the process that writes a snapshot deletes when it is complete."""

logger = logging.getLogger("snapshots")
pin_functions(persistence, _json_default="495d9abe01cb", _state_format_version="049e2cc0f75d")
pin_functions(ministack, _build_persistence_save_dict="9a6393cc953d")


class SnapshotFailedError(RuntimeError):
    """No snapshot could be written. The one before it and the journals behind that are kept."""


class SnapshotWriter:
    """Writes snapshots of this process, one at a time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._changed = False
        self._wanted = asyncio.Event()
        self._lock = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._begun_count = 0
        self._saved_count = 0
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="snapshots")

    def note_change(self) -> None:
        """Note that something may have changed that no journal holds."""
        self._changed = True

    def request_save(self) -> None:
        """Let `save_periodically` save soon."""
        self._wanted.set()

    async def save_periodically(self) -> None:
        """Save while the server runs. A slow disk makes snapshots rarer, but not the server slower."""
        pause = INTERVAL_SECONDS
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), pause)
            if self._changed or self._wanted.is_set():
                started = time.monotonic()
                try:
                    await self.save()
                except SnapshotFailedError:
                    await asyncio.sleep(INTERVAL_SECONDS)
                pause = max(INTERVAL_SECONDS, 5 * (time.monotonic() - started))

    async def save(self) -> None:
        """Save all changes before the call. Calls that wait for the same snapshot share it.

        Raises:
            SnapshotFailedError
        """
        needed_count = self._begun_count + 1
        async with self._lock:
            if self._saved_count < needed_count:
                await _wait_for_stacks()
                await asyncio.shield(asyncio.create_task(self._save_now()))

    async def save_at_stop(self) -> None:
        """Wait for a save that is under way, though nobody may wait for it any more, and save once more.

        Raises:
            SnapshotFailedError
        """
        async with self._writing:
            pass
        if not is_stack_changing():
            await self.save()

    async def _save_now(self) -> None:
        """Save in a process. This is never cancelled: that process would go on beside the next one (decision 0163)."""
        async with self._writing:
            await self._write_and_replace()

    async def _write_and_replace(self) -> None:
        self._wanted.clear()
        self._changed = False
        self._begun_count += 1
        statuses, byte_count = read_stack_statuses(), change_journal.byte_count
        number = change_journal.start_next_file()
        child = _fork_and_save(self._directory, number)
        loop = asyncio.get_running_loop()
        if not await loop.run_in_executor(self._executor, _finish_save, self._directory, number, child):
            self._changed = True
            raise SnapshotFailedError
        self._saved_count = self._begun_count
        change_journal.forget_bytes(byte_count)
        note_saved_stacks(statuses)


async def _wait_for_stacks() -> None:
    """Wait until no stack is being changed, which takes a second; not longer than for a stack that hangs."""
    deadline = time.monotonic() + MAX_STACK_SECONDS
    while is_stack_changing() and time.monotonic() < deadline:
        await asyncio.sleep(STACK_POLL_SECONDS)


def _fork_and_save(directory: Path, number: int) -> int:
    """Fork a process that saves and return its pid.

    A lock that another thread holds at the fork is never released in the copy. Then the alarm ends the copy.
    """
    child = os.fork()
    if child:
        return child
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(WRITE_TIMEOUT_SECONDS)
    close_inherited_descriptors()
    try:
        _write_snapshot(directory, number)
    except BaseException:  # noqa: BLE001  the copy must end here, whatever happens
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _write_snapshot(directory: Path, number: int) -> None:
    """Write the files of all services to a directory that gets its name when it is complete.

    A service that has nothing to say, for example because it was not used, keeps its file of the snapshot before.
    """
    previous = find_snapshot(directory)
    unfinished = directory / f"unfinished-{number}"
    unfinished.mkdir(mode=0o700)
    sizes = {}
    for service, get_state in ministack._build_persistence_save_dict().items():
        state = get_state()
        if state is not None:
            content = {"__ministack_format__": persistence._state_format_version(service), "payload": state}
            encoded = json.dumps(content, default=persistence._json_default).encode()
            write_synced_file(unfinished / f"{service}.json", encoded)
            sizes[f"{service}.json"] = len(encoded)
    for kept in previous.directory.glob("*.json"):
        if kept.name != MANIFEST_NAME and kept.name not in sizes:
            os.link(kept, unfinished / kept.name)
            sizes[kept.name] = kept.stat().st_size
    publish_snapshot(unfinished, sizes, directory / f"snapshot-{number}")
    for delete in _deferred_deletions:
        delete()


def _finish_save(directory: Path, number: int, child: int) -> bool:
    """Wait for the process that saves, and delete what its snapshot replaces. False when it has failed."""
    _, status = os.waitpid(child, 0)
    if status != 0 or not is_complete(directory / f"snapshot-{number}"):
        logger.error("A snapshot could not be written (wait status %d). The state before it is kept.", status)
        shutil.rmtree(directory / f"unfinished-{number}", ignore_errors=True)
        return False
    delete_replaced_files(directory, number)
    return True


@patch_function(ministack, "save_all", "ea253a04fd05")
def save_at_stop(original: Function, services: Any) -> None:
    """Save nothing here: `open_app` writes a last snapshot."""


@patch_function(lambda_svc, "_prune_orphan_code_blobs", "9663ac4e986d")
def prune_code_later(original: Function, referenced: set[str]) -> None:
    """Delete the code that no function has any more when the snapshot is complete: the one before may refer to it."""
    _deferred_deletions.append(functools.partial(original, referenced))


@patch_function(ministack, "_load_persisted_state", "03de3b870e8f")
def load_state(original: Function) -> None:
    """Load the newest snapshot, make the changes of the journals behind it again, and open the next journal."""
    directory = Path(persistence.STATE_DIR)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    delete_unfinished_snapshots(directory)
    snapshot = find_snapshot(directory)
    persistence.STATE_DIR = str(snapshot.directory)
    original()
    for number, file in list_journals(directory):
        if number >= snapshot.number:
            for change in read_changes(file):
                journaled_changes.apply_change(change)
    dynamodb_streams.continue_numbering()
    journaled_changes.fail_running_executions()
    note_saved_stacks(read_stack_statuses())
    change_journal.open(directory, asyncio.get_running_loop())
