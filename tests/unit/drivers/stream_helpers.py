"""Split streams into chunks, and collect the parts they decode to."""

from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import strategies as st

from fermata.domain.errors import ProviderError
from fermata.domain.model_io import ModelResponse, StreamPart, TextDelta
from fermata.drivers.protocols.response_stream import ResponseAccumulator, iter_parts
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.drivers.transport.stream_decoders import NdjsonDecoder, SseDecoder

ChunkSplitter = Callable[[bytes], list[bytes]]


def in_one_chunk(stream: bytes) -> list[bytes]:
    return [stream]


def in_single_bytes(stream: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in stream]


CHUNK_SPLITTERS = (in_one_chunk, in_single_bytes)


def split_inside_character(stream: bytes, character: str, at: int) -> list[bytes]:
    """Split inside the first occurrence of a character."""
    cut = stream.index(character.encode()) + at
    return [stream[:cut], stream[cut:]]


def collect_parts(
    accumulator: ResponseAccumulator, chunks: Iterable[bytes], decoder: SseDecoder | NdjsonDecoder | None = None
) -> list[StreamPart]:
    return list(
        iter_parts("Peer", ProviderResponse(200, {}, iter(chunks)), accumulator, "secret-key", decoder or SseDecoder())
    )


def collect_parts_until_error(
    accumulator: ResponseAccumulator, chunks: Iterable[bytes], decoder: SseDecoder | NdjsonDecoder | None = None
) -> tuple[list[StreamPart], ProviderError]:
    """Return the parts before the error, and the error."""
    parts: list[StreamPart] = []
    with pytest.raises(ProviderError) as caught:
        parts.extend(
            iter_parts(
                "Peer", ProviderResponse(200, {}, iter(chunks)), accumulator, "secret-key", decoder or SseDecoder()
            )
        )
    return parts, caught.value


def get_response(parts: Sequence[StreamPart]) -> ModelResponse:
    last = parts[-1]
    assert isinstance(last, ModelResponse)
    return last


def join_text(parts: Iterable[StreamPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextDelta))


@st.composite
def chunkings(draw: st.DrawFn, stream: bytes) -> list[bytes]:
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=40)))
    return [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
