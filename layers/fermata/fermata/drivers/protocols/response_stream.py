"""Turns the bytes of a response into pieces, however they are cut: what all providers' streams have in common."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from fermata.domain.errors import ProviderError
from fermata.domain.model_io import ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.drivers import error_mapping
from fermata.drivers.protocols.key_redaction import KeyRedactor
from fermata.drivers.protocols.tool_arguments import is_nested_too_deeply, replace_lone_surrogates
from fermata.drivers.transport.connection import ProviderResponse
from fermata.drivers.transport.stream_decoders import NdjsonDecoder, SseDecoder

DONE_MARKER = "[DONE]"
MAX_FRAME_BYTES = 16 * 1024 * 1024
MAX_STREAM_BYTES = 128 * 1024 * 1024
"""Bytes of one answer; the longest that any model gives, a frame for each token, come to a third of it."""
MAX_TOOL_CALLS_PER_RESPONSE = 128
"""Of one answer; they are waited for together, in one row."""
_LOST = ("provider_unreachable", "provider_stalled")


class ResponseAccumulator(Protocol):
    """An answer in the making: a pure fold over a provider's events.

    Members that are null, unknown or of another kind never stop it. Text may end in half a character.
    """

    is_complete: bool
    """Nothing more is needed."""
    stream_error: Any
    """The error that came instead of the rest."""

    @property
    def may_end(self) -> bool:
        """Whether everything may have been said: if the stream ends now, however it ends, that is no loss."""

    @property
    def has_usage(self) -> bool:
        """Whether the provider has said what it used so far."""

    @property
    def tokens(self) -> TokenUsage: ...

    def add_event(self, event: dict[str, Any]) -> Iterable[StreamPart]: ...

    def handle_done(self) -> None:
        """The stream said that it is over."""

    def build_response(self) -> ModelResponse: ...


def iter_pieces(
    label: str,
    answer: ProviderResponse,
    draft: ResponseAccumulator,
    secret: str,
    stream: SseDecoder | NdjsonDecoder | None = None,
) -> Iterator[StreamPart]:
    """The last piece is a `Reply`, or it raises `ProviderError`. Nothing of it holds the secret."""
    if answer.status != 200:
        raise error_mapping.error_from_response(label, answer.status, answer.headers, answer.read_body(), secret)
    veil = KeyRedactor(secret)
    try:
        for piece in _iter_unredacted_pieces(label, answer, draft, secret, stream or SseDecoder()):
            yield from veil.redact_piece(piece)
    except ProviderError:
        yield from veil.flush()
        raise


def _iter_unredacted_pieces(
    label: str, answer: ProviderResponse, draft: ResponseAccumulator, secret: str, stream: SseDecoder | NdjsonDecoder
) -> Iterator[StreamPart]:
    voice, heard_any = _SurrogateJoiner(), False
    for event in _iter_events(label, answer, draft, stream):
        heard_any = True
        for piece in draft.add_event(event):
            yield from voice.join(piece)
        if draft.stream_error is not None:
            raise error_mapping.error_from_stream(label, draft.stream_error, secret)
        if draft.is_complete:
            break
    if not draft.is_complete and not draft.may_end:
        raise _premature_end_error(label, answer, heard_any=heard_any)
    yield from voice.join(_check_response(label, draft.build_response(), secret))


def _check_response(label: str, reply: ModelResponse, secret: str) -> ModelResponse:
    calls = sum(block.kind == "toolCall" for block in reply.blocks)
    if calls > MAX_TOOL_CALLS_PER_RESPONSE:
        said = f"{label} stream error: {calls} tool calls at once; at most {MAX_TOOL_CALLS_PER_RESPONSE} are taken"
        raise ProviderError("provider_error", said, retryable=False)
    return (
        reply.model_copy(update={"refusal": error_mapping.redact_secrets(reply.refusal, secret)})
        if reply.refusal
        else reply
    )


def _premature_end_error(label: str, answer: ProviderResponse, *, heard_any: bool) -> ProviderError:
    if not heard_any and answer.headers.get("content-type", "").startswith("text/html"):
        said = f"{label} answered with a web page. Check its address in /admin/ai/providers."
        return ProviderError("provider_request", said, retryable=False)
    return ProviderError("provider_error", f"{label} stream error: it ended before the answer did", retryable=True)


class _SurrogateJoiner:
    """Makes pieces showable: half a character at the end of one waits for the other half, in the next of its kind."""

    def __init__(self) -> None:
        self._half: TextDelta | ReasoningDelta | None = None

    def join(self, piece: StreamPart) -> Iterator[StreamPart]:
        half, self._half = self._half, None
        if half is not None and type(half) is not type(piece):
            yield type(half)(text=replace_lone_surrogates(half.text))
            half = None
        if isinstance(piece, ModelResponse) or (half is None and piece.text.isascii()):
            yield piece
            return
        text = half.text + piece.text if half else piece.text
        if "\ud800" <= text[-1:] <= "\udbff":
            self._half = type(piece)(text=text[-1])
            text = text[:-1]
        if text:
            yield type(piece)(text=replace_lone_surrogates(text))


def _iter_events(
    label: str, answer: ProviderResponse, draft: ResponseAccumulator, stream: SseDecoder | NdjsonDecoder
) -> Iterator[dict[str, Any]]:
    if answer.headers.get("content-type", "").startswith("application/json"):
        yield _parse_event(
            label, answer.read_body(MAX_FRAME_BYTES).decode("utf-8", "replace")
        )  # not streamed after all
        return
    for chunk in _limit_size(label, _iter_chunks(answer, draft), stream):
        for data in stream.feed(chunk):
            if data.strip() == DONE_MARKER:
                draft.handle_done()
                return
            if data.strip():
                yield _parse_event(label, data)
    for data in stream.flush():
        if (event := _try_parse_event(data)) is not None:
            yield event


def _iter_chunks(answer: ProviderResponse, draft: ResponseAccumulator) -> Iterator[bytes]:
    """A connection that is lost after the last word was not lost too early."""
    try:
        for chunk in answer.chunks:  # noqa: UP028 - `yield from` would close them when we have heard enough
            yield chunk
    except ProviderError as error:
        if not draft.may_end or error.code not in _LOST:
            raise


def _limit_size(label: str, chunks: Iterable[bytes], stream: SseDecoder | NdjsonDecoder) -> Iterator[bytes]:
    """A server of somebody's own may send without end; this process serves others too."""
    length = 0
    for chunk in chunks:
        length += len(chunk)
        if length > MAX_STREAM_BYTES or stream.buffered_bytes > MAX_FRAME_BYTES:
            raise ProviderError("provider_error", f"{label} stream error: the answer is too long", retryable=False)
        yield chunk


def _parse_event(label: str, data: str) -> dict[str, Any]:
    event = _try_parse_event(data)
    if event is None:
        raise ProviderError("provider_error", f"{label} stream error: a frame was not readable", retryable=True)
    return event


def _try_parse_event(data: str) -> dict[str, Any] | None:
    """What was left when the stream ended may be whole, or may be half of something."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) and not is_nested_too_deeply(data, event) else None
