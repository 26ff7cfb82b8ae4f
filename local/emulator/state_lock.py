"""Lock the state directory for one emulator, from before it loads the state until it has ended (decision 0163)."""

import contextlib
import fcntl
import logging
import os
import time
from pathlib import Path

LOCK_TIMEOUT_SECONDS = 60.0
"""The longest wait for another emulator. It saves its state before it ends, when its parent has ended."""
POLL_SECONDS = 0.05
LOCK_NAME = "emulator.lock"

logger = logging.getLogger("state_lock")


class StateInUseError(RuntimeError):
    """Another emulator uses the state directory."""


def lock_directory(directory: Path) -> None:
    """Lock a state directory until this process ends. Wait for the emulator that uses it.

    The kernel releases the lock with the process, also after `kill -9`. Processes that this one starts do not hold it.

    Raises:
        StateInUseError: The other emulator has not ended in time.
    """
    descriptor = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    if not _try_to_lock(descriptor):
        logger.warning("%s is in use by another emulator. Waiting for its end.", directory)
        while not _try_to_lock(descriptor):
            if time.monotonic() > deadline:
                raise StateInUseError(f"{directory} is in use by another emulator, which does not end. Stop it first.")
            time.sleep(POLL_SECONDS)


def _try_to_lock(descriptor: int) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
