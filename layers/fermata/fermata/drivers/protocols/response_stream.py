"""Turn the bytes of a streamed response into parts, for every protocol (decisions 0070 and 0081)."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.domain.storable_json import replace_lone_surrogates
from fermata.drivers.error_mapping import error_from_response, error_from_stream, redact_secrets
from fermata.drivers.protocols.response_key_redaction import KeyRedactor
from fermata.drivers.protocols.tool_arguments import is_nested_too_deeply
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.stream_decoders import NdjsonDecoder, SseDecoder

if TYPE_CHECKING:
    from fermata.drivers.transport.connection_interface import ProviderResponse

DONE_MARKER = "[DONE]"
MAX_FRAME_BYTES = 16 * 1024 * 1024
MAX_STREAM_BYTES = 128 * 1024 * 1024
"""Three times the longest answer that any model gives, with a frame for each token."""
MAX_TOOL_CALLS_PER_RESPONSE = 128
"""They are stored and waited for in one row."""
MAX_WARNING_CHARS = 500
_ANSWER_MEMBERS = frozenset({"choices", "delta", "response", "item", "content_block", "usage", "done", "output"})
_CONNECTION_LOST = (Failure.UNREACHABLE.code, Failure.STALLED.code)


class ResponseAccumulator(Protocol):
    """Fold the events of one response: no I/O and no clock, so the same events give the same parts.

    Members that are null, unknown or of an unexpected type never stop it. Text may end inside a surrogate pair.
    """

    is_complete: bool
    """Nothing more is needed."""
    stream_error: Any
    """The error that the provider sent instead of the rest; None if there is none."""

    @property
    def may_end(self) -> bool:
        """Whether everything may have arrived, so that nothing is lost if the stream ends now, however it ends."""

    @property
    def has_usage(self) -> bool:
        """Whether the provider has reported what it used so far."""

    @property
    def tokens(self) -> TokenUsage:
        """The tokens that the provider has reported so far; all 0 before `has_usage`."""

    def add_event(self, event: dict[str, Any]) -> Iterable[StreamPart]:
        """Fold one event, and return what it adds to the visible text."""

    def handle_done(self) -> None:
        """Take note that the stream sent its `[DONE]` marker."""

    def build_response(self) -> ModelResponse: ...


def iter_parts(
    label: str,
    response: "ProviderResponse",
    accumulator: ResponseAccumulator,
    api_key: str,
    decoder: SseDecoder | NdjsonDecoder,
) -> Iterator[StreamPart]:
    """Yield the parts of a response; the last one is the `ModelResponse`. No part holds the API key.

    Raises:
        ProviderError: The provider answered with an error, sent one, or ended the stream too early.
    """
    if response.status != 200:
        raise error_from_response(label, response.status, response.headers, response.read_body(), api_key)
    redactor = KeyRedactor(api_key)
    try:
        for part in _iter_unredacted_parts(label, response, accumulator, api_key, decoder):
            yield from redactor.redact_part(part)
    except ProviderError:
        yield from redactor.flush()
        raise


def require_answer(label: str, parts: Iterable[StreamPart], *, may_call: bool) -> Iterator[StreamPart]:
    """Pass the parts on, unless the response has no answer, and no reason for that (decision 0196).

    Args:
        may_call: Whether calls are an answer. They are none where the model was told to answer in words.

    Raises:
        ProviderError: There is no answer. The request may be repeated.
    """
    for part in parts:
        if isinstance(part, ModelResponse) and _is_without_answer(part, may_call=may_call):
            has_calls = any(block.kind == "toolCall" for block in part.blocks)
            outcome = "asked for tools again instead of answering" if has_calls else "ended its answer without a word"
            raise Failure.NO_ANSWER.to_error(part.warning or f"{label} {outcome}. Ask again.")
        yield part


def _is_without_answer(response: ModelResponse, *, may_call: bool) -> bool:
    is_end = response.stop in (FinishReason.END, FinishReason.TOOL_CALLS)
    kinds = ("text", "toolCall") if may_call else ("text",)
    return is_end and not any(block.kind in kinds for block in response.blocks)


def _iter_unredacted_parts(
    label: str,
    response: "ProviderResponse",
    accumulator: ResponseAccumulator,
    api_key: str,
    decoder: SseDecoder | NdjsonDecoder,
) -> Iterator[StreamPart]:
    joiner = _SurrogateJoiner()
    had_event = False
    for event in _iter_events(label, response, accumulator, decoder):
        had_event = True
        for part in accumulator.add_event(event):
            yield from joiner.join(part)
        if accumulator.stream_error is not None:
            raise error_from_stream(label, accumulator.stream_error, api_key)
        if accumulator.is_complete:
            break
    if not accumulator.is_complete and not accumulator.may_end:
        raise _premature_end_error(label, response, had_event=had_event)
    yield from joiner.join(_check_response(label, accumulator.build_response(), api_key))


def _check_response(label: str, response: ModelResponse, api_key: str) -> ModelResponse:
    calls = sum(block.kind == "toolCall" for block in response.blocks)
    if calls > MAX_TOOL_CALLS_PER_RESPONSE:
        limit = f"at most {MAX_TOOL_CALLS_PER_RESPONSE} are taken"
        raise Failure.UNUSABLE_RESPONSE.to_error(f"{label} stream error: {calls} tool calls at once; {limit}")
    words = {
        "refusal": response.refusal and redact_secrets(response.refusal, api_key),
        "warning": response.warning and redact_secrets(response.warning, api_key, MAX_WARNING_CHARS),
    }
    return response.model_copy(update=words) if response.refusal or response.warning else response


def _premature_end_error(label: str, response: "ProviderResponse", *, had_event: bool) -> ProviderError:
    if not had_event and response.headers.get("content-type", "").startswith("text/html"):
        message = f"{label} answered with a web page. Check its address in /admin/ai/providers."
        return Failure.BAD_REQUEST.to_error(message)
    return Failure.SERVER_ERROR.to_error(f"{label} stream error: it ended before the answer was complete")


class _SurrogateJoiner:
    """Join surrogate pairs that two deltas share: half a pair waits for the next delta of its kind."""

    def __init__(self) -> None:
        self._half: TextDelta | ReasoningDelta | None = None

    def join(self, part: StreamPart) -> Iterator[StreamPart]:
        half, self._half = self._half, None
        if half is not None and type(half) is not type(part):
            yield type(half)(text=replace_lone_surrogates(half.text))
            half = None
        if isinstance(part, ModelResponse) or (half is None and part.text.isascii()):
            yield part
            return
        text = half.text + part.text if half else part.text
        if "\ud800" <= text[-1:] <= "\udbff":
            self._half = type(part)(text=text[-1])
            text = text[:-1]
        if text:
            yield type(part)(text=replace_lone_surrogates(text))


def _iter_events(
    label: str,
    response: "ProviderResponse",
    accumulator: ResponseAccumulator,
    decoder: SseDecoder | NdjsonDecoder,
) -> Iterator[dict[str, Any]]:
    if response.headers.get("content-type", "").startswith("application/json"):
        # Not streamed, although that was asked for.
        yield _parse_event(label, response.read_body(MAX_FRAME_BYTES).decode("utf-8", "replace"))
        return
    for chunk in _limit_size(label, _iter_chunks(response, accumulator), decoder):
        for data in decoder.feed(chunk):
            if data.strip() == DONE_MARKER:
                accumulator.handle_done()
                return
            if _is_heartbeat(data):
                continue
            yield _parse_event(label, data)
    for data in decoder.flush():
        if (event := _try_parse_event(data)) is not None:
            yield event


def _iter_chunks(response: "ProviderResponse", accumulator: ResponseAccumulator) -> Iterator[bytes]:
    """Yield the chunks. A connection that is lost after everything may have arrived is a normal end."""
    try:
        for chunk in response.chunks:  # noqa: UP028 - `yield from` would close them when the reader has enough
            yield chunk
    except ProviderError as error:
        if not accumulator.may_end or error.code not in _CONNECTION_LOST:
            raise


def _limit_size(label: str, chunks: Iterable[bytes], decoder: SseDecoder | NdjsonDecoder) -> Iterator[bytes]:
    """Pass chunks on up to a limit. A customer's server may send without end, and this process serves others too."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MAX_STREAM_BYTES or decoder.buffered_bytes > MAX_FRAME_BYTES:
            raise Failure.UNUSABLE_RESPONSE.to_error(f"{label} stream error: the answer is too long")
        yield chunk


def _is_heartbeat(data: str) -> bool:
    """Return whether the data is no object: servers keep a line open with `ping`, `null`, `[]` or nothing."""
    text = data.strip()
    return not text.startswith("{") and not (text.startswith("[") and "{" in text)


def _parse_event(label: str, data: str) -> dict[str, Any]:
    event = _try_parse_event(data)
    if event is None:
        raise Failure.SERVER_ERROR.to_error(f"{label} stream error: a frame was not readable")
    return event


def _try_parse_event(data: str) -> dict[str, Any] | None:
    """Return None for data that is no event; at the end of a stream it may be half of one."""
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if isinstance(event, list):  # Google sends its errors so
        event = next((member for member in event if isinstance(member, dict)), None)
    if not isinstance(event, dict) or is_nested_too_deeply(data, event):
        return None
    return _name_unnamed_error(event)


def _name_unnamed_error(event: dict[str, Any]) -> dict[str, Any]:
    """Put an error without the member `error` under that name (decision 0195).

    No event of any protocol has words as its `message` or `detail`, and none of the members of an answer.
    """
    if event.get("error"):
        return {"type": "error", **event}
    if not _ANSWER_MEMBERS.isdisjoint(event):
        return event
    words = event.get("message") or event.get("detail")
    is_error = event.get("object") == "error" or (bool(words) and isinstance(words, str))
    return {"type": "error", "error": {**event, "message": words or event.get("msg")}} if is_error else event
