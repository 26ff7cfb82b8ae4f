"""Run a module until standard input ends: `python -m local.parent_watch MODULE [ARGUMENTS]` (decision 0034).

The parent process holds the other end of the pipe, so the module never outlives its parent.
"""

import os
import runpy
import signal
import sys
import threading

from local.development_libraries import hide_development_libraries

GRACE_SECONDS = 5.0


def main() -> None:
    threading.Thread(target=_end_with_input, daemon=True).start()
    hide_development_libraries()
    module = sys.argv[1]
    del sys.argv[1]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def announce_ready(line: str) -> None:
    """Print the line that says the process is ready. Everything printed later goes to the log, like standard error."""
    print(line, flush=True)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())


def _end_with_input() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(GRACE_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
