"""Stream an answer in a provider's protocol, with the delays and faults of a script."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from local.demo_model.model_answer import ModelAnswer, insert_pause, iter_content_events
from local.demo_model.protocols.protocol import ResponseEncoder
from local.demo_model.request_records import RequestRecord
from local.demo_model.scripted_answers import ScriptStep

FILE_POLL_SECONDS = 0.01
LIFE_SIGN_SECONDS = 1.0
LIFE_SIGN = b"\n"
"""An empty line, which says nothing in any protocol."""


@dataclass(frozen=True)
class ResponsePace:
    """Delays before the first byte and between chunks of text. `chunks` is their number; 0 sends word by word."""

    first_ms: float = 0
    chunk_ms: float = 0
    chunks: int = 0

    def with_step(self, step: ScriptStep) -> "ResponsePace":
        """Apply what a script's step says about the pace."""
        return ResponsePace(
            first_ms=self.first_ms if step.first_ms is None else step.first_ms,
            chunk_ms=self.chunk_ms if step.chunk_ms is None else step.chunk_ms,
            chunks=self.chunks if step.chunks is None else step.chunks,
        )


class ConnectionCutError(Exception):
    """Raised out of a response, so that the server drops the connection."""


async def stream_response(
    encoder: ResponseEncoder, answer: ModelAnswer, pace: ResponsePace, step: ScriptStep, record: RequestRecord
) -> AsyncIterator[bytes]:
    """Iterate over the bytes of a response, and record when its first and last bytes are sent.

    Raises:
        ConnectionCutError: when the step says so.
    """
    try:
        await asyncio.sleep(pace.first_ms / 1000)
        record.first_byte_ns = time.monotonic_ns()
        async for frame in _iter_frames(encoder, answer, pace, step):
            record.last_byte_ns = time.monotonic_ns()
            for chunk in _split_bytes(frame) if step.single_bytes else [frame]:
                yield chunk
    except (asyncio.CancelledError, GeneratorExit):
        record.closed_by_peer_ns = time.monotonic_ns()
        raise


async def _iter_frames(
    encoder: ResponseEncoder, answer: ModelAnswer, pace: ResponsePace, step: ScriptStep
) -> AsyncIterator[bytes]:
    for frame in encoder.encode_opening():
        yield frame
    clock = _TextClock(pace.chunk_ms / 1000)
    for event in insert_pause(iter_content_events(answer, pace.chunks), step.after):
        if event is None:
            await asyncio.sleep(step.stall)
            async for sign in _hold_until_file(step.hold_until_file):
                yield sign
            if step.cut:
                raise ConnectionCutError
            if step.error:
                yield encoder.encode_error(step.error.type, step.error.message)
                return
            clock.restart()
            continue
        if event.get("delta", {}).get("type") == "text_delta":
            await clock.wait_for_next()
        for frame in encoder.encode_event(event):
            yield frame
    for frame in encoder.encode_closing():
        yield frame


class _TextClock:
    """Says when chunks of text are due: one interval after the one before was due, however busy this machine is.

    A real model's server does not write more slowly because its clients are busy.
    """

    def __init__(self, interval_seconds: float) -> None:
        self._interval_seconds = interval_seconds
        self._due_at: float | None = None

    def restart(self) -> None:
        """Let the next chunk follow at once, after a pause."""
        self._due_at = None

    async def wait_for_next(self) -> None:
        now = time.monotonic()
        due_at = now if self._due_at is None else self._due_at
        await asyncio.sleep(max(0.0, due_at - now))
        self._due_at = due_at + self._interval_seconds


async def _hold_until_file(path: str | None) -> AsyncIterator[bytes]:
    """Wait for a file, with signs of life: only what stalls is silent, however long a busy machine takes."""
    sign_at = time.monotonic() + LIFE_SIGN_SECONDS
    while path is not None and not Path(path).exists():
        await asyncio.sleep(FILE_POLL_SECONDS)
        if time.monotonic() >= sign_at:
            sign_at = time.monotonic() + LIFE_SIGN_SECONDS
            yield LIFE_SIGN


def _split_bytes(data: bytes) -> Iterator[bytes]:
    return (data[index : index + 1] for index in range(len(data)))
