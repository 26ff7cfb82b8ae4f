"""Streams cut in every way: whole, byte by byte, and wherever a test wants it."""

from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import strategies as st

from fermata.drivers.hearing import Draft, pieces_of
from fermata.drivers.line import Answer
from fermata.drivers.sse import Frames, Lines
from fermata.words.errors import ProviderError
from fermata.words.model import Piece, Reply, TextDelta

Cut = Callable[[bytes], list[bytes]]


def whole(stream: bytes) -> list[bytes]:
    return [stream]


def singly(stream: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in stream]


CUTS = (whole, singly)


def around(stream: bytes, character: str, at: int) -> list[bytes]:
    """Cut inside the first occurrence of a character."""
    cut = stream.index(character.encode()) + at
    return [stream[:cut], stream[cut:]]


def heard(draft: Draft, chunks: Iterable[bytes], stream: Frames | Lines | None = None) -> list[Piece]:
    return list(pieces_of("Peer", Answer(200, {}, iter(chunks)), draft, "secret-key", stream))


def until_it_breaks(
    draft: Draft, chunks: Iterable[bytes], stream: Frames | Lines | None = None
) -> tuple[list[Piece], ProviderError]:
    """What was heard before the error, and the error."""
    pieces: list[Piece] = []
    with pytest.raises(ProviderError) as caught:
        pieces.extend(pieces_of("Peer", Answer(200, {}, iter(chunks)), draft, "secret-key", stream))
    return pieces, caught.value


def last(pieces: Sequence[Piece]) -> Reply:
    found = pieces[-1]
    assert isinstance(found, Reply)
    return found


def said(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))


@st.composite
def chunkings(draw: st.DrawFn, stream: bytes) -> list[bytes]:
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=40)))
    return [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
