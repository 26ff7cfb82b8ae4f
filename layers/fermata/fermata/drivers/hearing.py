"""Turns the bytes of a response into pieces, however they are cut: what all providers' streams have in common."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from fermata.drivers import failures
from fermata.drivers.line import Answer
from fermata.drivers.sse import Frames, Lines
from fermata.words.errors import ProviderError
from fermata.words.model import Piece, Reply, Tokens

END = "[DONE]"
LONGEST_ANSWER = 16 * 1024 * 1024
_LOST = ("provider_unreachable", "provider_stalled")


class Draft(Protocol):
    """An answer in the making: a pure fold over a provider's events. Null and unknown members never stop it."""

    complete: bool
    """Nothing more is needed."""
    failure: Mapping[str, Any] | None
    """The error that came instead of the rest."""

    @property
    def finished(self) -> bool:
        """Whether everything may have been said: if the stream ends now, however it ends, that is no loss."""

    @property
    def counted(self) -> bool:
        """Whether the provider has said what it used so far."""

    @property
    def tokens(self) -> Tokens: ...

    def take(self, event: dict[str, Any]) -> Iterable[Piece]: ...

    def close(self) -> None:
        """The stream said that it is over."""

    def reply(self) -> Reply: ...


def pieces_of(
    label: str, answer: Answer, draft: Draft, secret: str, stream: Frames | Lines | None = None
) -> Iterator[Piece]:
    """The last piece is a `Reply`, or it raises `ProviderError`."""
    if answer.status != 200:
        raise failures.refused(label, answer.status, answer.headers, answer.read(), secret)
    for event in _events(label, answer, draft, stream or Frames()):
        yield from draft.take(event)
        if draft.failure is not None:
            raise failures.broke_off(label, draft.failure, secret)
        if draft.complete:
            break
    if not draft.complete and not draft.finished:
        raise ProviderError("provider_error", f"{label} stream error: it ended before the answer did", retryable=True)
    yield draft.reply()


def _events(label: str, answer: Answer, draft: Draft, stream: Frames | Lines) -> Iterator[dict[str, Any]]:
    if answer.headers.get("content-type", "").startswith("application/json"):
        yield _event(label, answer.read(LONGEST_ANSWER).decode("utf-8", "replace"))  # not streamed after all
        return
    for chunk in _chunks(answer, draft):
        for data in stream.feed(chunk):
            if data.strip() == END:
                draft.close()
                return
            if data.strip():
                yield _event(label, data)
    for data in stream.rest():
        if (event := _half_event(data)) is not None:
            yield event


def _chunks(answer: Answer, draft: Draft) -> Iterator[bytes]:
    """A connection that is lost after the last word was not lost too early."""
    try:
        for chunk in answer.chunks:  # noqa: UP028 - `yield from` would close them when we have heard enough
            yield chunk
    except ProviderError as error:
        if not draft.finished or error.code not in _LOST:
            raise


def _event(label: str, data: str) -> dict[str, Any]:
    event = _half_event(data)
    if event is None:
        raise ProviderError("provider_error", f"{label} stream error: a frame was not readable", retryable=True)
    return event


def _half_event(data: str) -> dict[str, Any] | None:
    """What was left when the stream ended may be whole, or may be half of something."""
    try:
        event = json.loads(data)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None
