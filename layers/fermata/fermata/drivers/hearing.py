"""Turns the bytes of a response into pieces, however they are cut: what all providers' streams have in common."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from fermata.drivers import failures
from fermata.drivers.arguments import is_too_deep, whole
from fermata.drivers.line import Answer
from fermata.drivers.redacting import Veil
from fermata.drivers.sse import Frames, Lines
from fermata.words.errors import ProviderError
from fermata.words.model import Piece, ReasoningDelta, Reply, TextDelta, Tokens

END = "[DONE]"
LONGEST_FRAME = 16 * 1024 * 1024
LONGEST_STREAM = 128 * 1024 * 1024
"""Bytes of one answer; the longest that any model gives, a frame for each token, come to a third of it."""
MOST_CALLS = 128
"""Of one answer; they are waited for together, in one row."""
_LOST = ("provider_unreachable", "provider_stalled")


class Draft(Protocol):
    """An answer in the making: a pure fold over a provider's events.

    Members that are null, unknown or of another kind never stop it. Text may end in half a character.
    """

    complete: bool
    """Nothing more is needed."""
    failure: Any
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
    """The last piece is a `Reply`, or it raises `ProviderError`. Nothing of it holds the secret."""
    if answer.status != 200:
        raise failures.refused(label, answer.status, answer.headers, answer.read(), secret)
    veil = Veil(secret)
    try:
        for piece in _heard(label, answer, draft, secret, stream or Frames()):
            yield from veil.show(piece)
    except ProviderError:
        yield from veil.rest()
        raise


def _heard(label: str, answer: Answer, draft: Draft, secret: str, stream: Frames | Lines) -> Iterator[Piece]:
    voice, heard_any = _Voice(), False
    for event in _events(label, answer, draft, stream):
        heard_any = True
        for piece in draft.take(event):
            yield from voice.say(piece)
        if draft.failure is not None:
            raise failures.broke_off(label, draft.failure, secret)
        if draft.complete:
            break
    if not draft.complete and not draft.finished:
        raise _too_early(label, answer, heard_any=heard_any)
    yield from voice.say(_checked(label, draft.reply(), secret))


def _checked(label: str, reply: Reply, secret: str) -> Reply:
    calls = sum(block.kind == "toolCall" for block in reply.blocks)
    if calls > MOST_CALLS:
        said = f"{label} stream error: {calls} tool calls at once; at most {MOST_CALLS} are taken"
        raise ProviderError("provider_error", said, retryable=False)
    return reply.model_copy(update={"refusal": failures.redact(reply.refusal, secret)}) if reply.refusal else reply


def _too_early(label: str, answer: Answer, *, heard_any: bool) -> ProviderError:
    if not heard_any and answer.headers.get("content-type", "").startswith("text/html"):
        said = f"{label} answered with a web page. Check its address in /admin/ai/providers."
        return ProviderError("provider_request", said, retryable=False)
    return ProviderError("provider_error", f"{label} stream error: it ended before the answer did", retryable=True)


class _Voice:
    """Makes pieces showable: half a character at the end of one waits for the other half, in the next of its kind."""

    def __init__(self) -> None:
        self._half: TextDelta | ReasoningDelta | None = None

    def say(self, piece: Piece) -> Iterator[Piece]:
        half, self._half = self._half, None
        if half is not None and type(half) is not type(piece):
            yield type(half)(text=whole(half.text))
            half = None
        if isinstance(piece, Reply) or (half is None and piece.text.isascii()):
            yield piece
            return
        text = half.text + piece.text if half else piece.text
        if "\ud800" <= text[-1:] <= "\udbff":
            self._half = type(piece)(text=text[-1])
            text = text[:-1]
        if text:
            yield type(piece)(text=whole(text))


def _events(label: str, answer: Answer, draft: Draft, stream: Frames | Lines) -> Iterator[dict[str, Any]]:
    if answer.headers.get("content-type", "").startswith("application/json"):
        yield _event(label, answer.read(LONGEST_FRAME).decode("utf-8", "replace"))  # not streamed after all
        return
    for chunk in _bounded(label, _chunks(answer, draft), stream):
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


def _bounded(label: str, chunks: Iterable[bytes], stream: Frames | Lines) -> Iterator[bytes]:
    """A server of somebody's own may send without end; this process serves others too."""
    length = 0
    for chunk in chunks:
        length += len(chunk)
        if length > LONGEST_STREAM or stream.waiting > LONGEST_FRAME:
            raise ProviderError("provider_error", f"{label} stream error: the answer is too long", retryable=False)
        yield chunk


def _event(label: str, data: str) -> dict[str, Any]:
    event = _half_event(data)
    if event is None:
        raise ProviderError("provider_error", f"{label} stream error: a frame was not readable", retryable=True)
    return event


def _half_event(data: str) -> dict[str, Any] | None:
    """What was left when the stream ended may be whole, or may be half of something."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and not is_too_deep(data, event) else None
