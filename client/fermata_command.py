"""Start the command `fermata`: load the command line, and end quietly if Ctrl-C comes meanwhile.

It is a module of its own, because the package `fermata_client` is what takes time to load.
"""

import os
import signal
from types import FrameType

EXIT_CODE_INTERRUPTED = 130


def main() -> None:
    exit_quietly_on_ctrl_c()
    from fermata_client import cli

    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


def exit_quietly_on_ctrl_c() -> None:
    """End the process without a word at SIGINT, unless it is ignored as for a job in the background."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


def _exit(number: int, frame: FrameType | None) -> None:
    os._exit(EXIT_CODE_INTERRUPTED)


if __name__ == "__main__":
    main()
