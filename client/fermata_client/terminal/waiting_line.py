"""Show that a program waits: a line with the seconds, on a terminal, once nothing has come for a second."""

import os
import threading
import time
from collections.abc import Callable
from typing import TextIO

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FIRST_SECONDS = 1.0
TICK_SECONDS = 0.1

_SAVE_CURSOR, _RESTORE_CURSOR, _ERASE_TO_END = "\x1b7", "\x1b8", "\x1b[K"


class WaitingLine:
    """Draws behind the cursor of a terminal, and erases it before anything else is printed.

    On any other stream it does nothing.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._is_enabled = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._lock = threading.Lock()
        self._is_drawn = False
        self._last_output = clock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        if self._is_enabled:
            self.restart()
            self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        self.restart()

    def restart(self) -> None:
        """Erase the line and count from zero: something is about to be printed."""
        with self._lock:
            if self._is_drawn:
                self._stream.write(_SAVE_CURSOR + _ERASE_TO_END + _RESTORE_CURSOR)
                self._stream.flush()
            self._is_drawn = False
            self._last_output = self._clock()

    def draw(self) -> None:
        """Draw the seconds since the last output, if there is one at least."""
        with self._lock:
            seconds = self._clock() - self._last_output
            if self._is_enabled and seconds >= FIRST_SECONDS:
                frame = FRAMES[int(seconds / TICK_SECONDS) % len(FRAMES)]
                self._stream.write(f"{_SAVE_CURSOR} {frame} {int(seconds)} s{_ERASE_TO_END}{_RESTORE_CURSOR}")
                self._stream.flush()
                self._is_drawn = True

    def _run(self) -> None:
        while not self._stopped.wait(TICK_SECONDS):
            self.draw()
