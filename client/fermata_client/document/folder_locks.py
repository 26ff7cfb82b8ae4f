"""Lock folders against other programs that edit the pages in them (decision 0190)."""

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from fermata_client.html.edit_error import EditError

LOCK_TIMEOUT_SECONDS = 10.0
"""A lock is held while a few files are compared and written, which takes milliseconds."""
LOCK_POLL_SECONDS = 0.01


@contextlib.contextmanager
def lock_folders(folders: Iterable[Path]) -> Iterator[None]:
    """Hold the locks of existing folders. Nothing is written to take them, and they end with the process.

    Where the platform or the file system has no such locks, nothing is locked.

    Raises:
        EditError: another program holds one for too long.
    """
    with contextlib.ExitStack() as held:
        for folder in sorted(set(folders)):  # always in one order, so that two programs cannot wait for each other
            held.enter_context(_lock_folder(folder))
        yield


if sys.platform == "win32":

    @contextlib.contextmanager
    def _lock_folder(folder: Path) -> Iterator[None]:
        yield

else:
    import fcntl

    @contextlib.contextmanager
    def _lock_folder(folder: Path) -> Iterator[None]:
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except PermissionError:  # a folder that may be written to but not listed
            yield
            return
        try:
            _wait_for_lock(descriptor, folder)
            yield
        finally:
            os.close(descriptor)

    def _wait_for_lock(descriptor: int, folder: Path) -> None:
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise EditError(
                        f"Another program has locked the folder {folder.name}. Nothing was changed; try again later."
                    ) from None
                time.sleep(LOCK_POLL_SECONDS)
            except OSError:  # some network file systems lock no folders
                return
