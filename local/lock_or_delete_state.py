"""Lock and delete the state directory of `make run`; `python -m local.lock_or_delete_state` deletes it.

Standard library only: deleting must work before anything is installed.
"""

import contextlib
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

STATE_DIRECTORY = Path(__file__).resolve().parent.parent / ".fermata"
EMULATOR_STATE = "state"
"""Where the emulator saves its state, in the state directory."""
EMULATOR_LOCK = "emulator.lock"
EMULATOR_END_SECONDS = 60.0
"""The longest wait for an emulator whose parent was killed: a snapshot may take 30 s, and its last one another 30 s."""
POLL_SECONDS = 0.05


@contextlib.contextmanager
def lock_state(directory: Path) -> Iterator[None]:
    """Lock the state directory for one service, and make it readable by its owner only.

    Two services on one state would overwrite each other's data. Exits when another one holds the lock.
    """
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("Fermata runs already in this folder. Stop it first (Ctrl-C where it runs).")
        yield


def lock_emulator_state(state: Path, timeout_seconds: float = EMULATOR_END_SECONDS) -> int:
    """Lock the directory to which an emulator saves its state, and return the descriptor that holds the lock.

    The lock ends with the last process that has the descriptor. An emulator outlives a killed service for a moment, so
    this waits for it (decision 0163). Exits when it does not end in time.
    """
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    deadline = time.monotonic() + timeout_seconds
    is_told = False
    while (descriptor := _try_to_lock(state / EMULATOR_LOCK)) is None:
        if time.monotonic() > deadline:
            sys.exit(f"An emulator still uses {state} after {timeout_seconds:g} s. Stop it first.")
        if not is_told:
            print(f"Waiting for the emulator that still uses {state} ...", file=sys.stderr, flush=True)
            is_told = True
        time.sleep(POLL_SECONDS)
    return descriptor


def _try_to_lock(file: Path) -> int | None:
    """Lock a file; None when another process holds its lock, or has deleted the file meanwhile."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), file.stat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None


def delete_state(directory: Path) -> None:
    """Delete the state directory. Exits when a service uses it, and waits for the emulator of a killed one."""
    if not directory.exists():
        return
    with lock_state(directory):
        descriptor = lock_emulator_state(directory / EMULATOR_STATE)
        shutil.rmtree(directory)
        os.close(descriptor)


if __name__ == "__main__":
    is_there = STATE_DIRECTORY.exists()
    delete_state(STATE_DIRECTORY)
    print(f"Deleted {STATE_DIRECTORY}." if is_there else f"There is no {STATE_DIRECTORY}: nothing to delete.")
