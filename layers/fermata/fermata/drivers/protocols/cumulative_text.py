"""Read what is new in deltas that hold all text so far, as some servers send them (decision 0195)."""

from enum import Enum, auto

_MIN_PLAIN_CHARS = 16
"""A whole text that two deltas repeat; a shorter one may be two pieces of the same kind, like line ends."""


class _Mode(Enum):
    UNDECIDED = auto()
    PIECES = auto()
    ALL_SO_FAR = auto()


class CumulativeText:
    """Return the new part of each delta.

    The second delta decides nearly always: it does not begin with the first one, so the deltas are pieces. If it does,
    it waits for the third. Each character is compared once.
    """

    def __init__(self) -> None:
        self._mode = _Mode.UNDECIDED
        self._last = ""
        self._held = ""

    def add(self, delta: str) -> str:
        """Return the text that is new in a delta, as far as it is known."""
        if self._mode is _Mode.PIECES or not delta:
            return delta
        if self._mode is _Mode.ALL_SO_FAR:
            return self._take_new(delta)
        if not self._last:
            self._last = delta
            return delta
        if not self._held:
            if self._may_repeat(delta):
                self._held = delta
                return ""
        elif delta.startswith(self._held):
            self._mode = _Mode.ALL_SO_FAR
            return self._take_new(delta)
        self._mode = _Mode.PIECES
        return self.flush() + delta

    def flush(self) -> str:
        """Return what is held back, when no further text follows."""
        held, self._held = self._held, ""
        is_whole = self._mode is _Mode.UNDECIDED and len(self._last) >= _MIN_PLAIN_CHARS
        return held[len(self._last) :] if is_whole else held

    def _may_repeat(self, delta: str) -> bool:
        if not delta.startswith(self._last) or not any(map(str.isalnum, self._last)):
            return False
        return len(delta) > len(self._last) or (len(delta) >= _MIN_PLAIN_CHARS and " " in delta.strip())

    def _take_new(self, delta: str) -> str:
        self._held = ""
        if not delta.startswith(self._last):
            self._mode = _Mode.PIECES
            return delta
        new, self._last = delta[len(self._last) :], delta
        return new
