"""A program for tests of copies: says its variables and one descriptor, logs a line, and waits until it is stopped."""

import os
import signal
import sys

from local.parent_watch import announce_ready


def main() -> None:
    if "FAILS" in os.environ:
        sys.exit("The program does not want to.")
    received = os.read(int(os.environ["PIPE"]), 100).decode()
    announce_ready(f"{os.environ['GREETING']} {received} {'PATH' in os.environ}")
    print("A line of the log.", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
