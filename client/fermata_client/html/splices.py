"""Replace byte ranges of a source, and leave every other byte as it is."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Splice:
    """Replace the bytes from `start` to `end` with `text`."""

    start: int
    end: int
    text: bytes


def apply_splices(source: bytes, splices: Iterable[Splice]) -> bytes:
    """Apply splices, whose positions all refer to `source`.

    Raises:
        ValueError: they overlap.
    """
    pieces: list[bytes] = []
    position = 0
    for splice in sorted(splices, key=lambda splice: (splice.start, splice.end)):
        if splice.start < position:
            raise ValueError("Splices overlap.")
        pieces += [source[position : splice.start], splice.text]
        position = splice.end
    return b"".join([*pieces, source[position:]])
