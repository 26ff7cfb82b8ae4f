"""Where `make run` keeps its state, who may use it, and how it is forgotten: `python -m local.state`.

Standard library only: forgetting must work before anything is installed.
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
    """Two services on one state would each overwrite what the other knows; and nobody else reads it."""
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("Fermata runs already in this folder. Stop it first (Ctrl-C where it runs).")
        yield


def delete_state(directory: Path) -> None:
    if directory.exists():
        with lock_state(directory):
            shutil.rmtree(directory)


if __name__ == "__main__":
    delete_state(STATE_DIRECTORY)
    print("Forgotten.")
