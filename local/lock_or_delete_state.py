"""Lock and delete the state directory of `make run`; `python -m local.lock_or_delete_state` deletes it.

Standard library only: deleting must work before anything is installed.
"""

import contextlib
import fcntl
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

STATE_DIRECTORY = Path(__file__).resolve().parent.parent / ".fermata"


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


def delete_state(directory: Path) -> None:
    """Delete the state directory. Exits when a service uses it."""
    if directory.exists():
        with lock_state(directory):
            shutil.rmtree(directory)


if __name__ == "__main__":
    delete_state(STATE_DIRECTORY)
    print("Forgotten.")
