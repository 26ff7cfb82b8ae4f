"""Turn the bytes of a streamed response into the JSON events that an accumulator folds, for every protocol."""

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from fermata.domain.errors import ProviderError
from fermata.domain.lenient_json import has_too_many_members
from fermata.drivers.protocols.error_frames import name_unnamed_error
from fermata.drivers.protocols.tool_arguments import is_nested_too_deeply
from fermata.drivers.protocols.wrapped_events import unwrap_event
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.stream_decoders import NdjsonDecoder, SseDecoder

if TYPE_CHECKING:
    from fermata.drivers.protocols.response_stream import ResponseAccumulator
    from fermata.drivers.transport.connection_interface import ProviderResponse
DONE_MARKER = "[DONE]"
MAX_FRAME_BYTES = 16 * 1024 * 1024
MAX_STREAM_BYTES = 128 * 1024 * 1024
"""Three times the longest answer that any model gives, with a frame for each token."""
_AROUND_MARKER = ' \t\r\n"'
"""Some servers send the marker as JSON."""
BLANK_BYTES = b" \t\r\n\xef\xbb\xbf"
"""Blanks, and the bytes of a byte order mark."""
_GLUE = re.compile(r"\s*(?:data:\s*)?")
_VALUE_DECODER = json.JSONDecoder(strict=False)
_CONNECTION_LOST = (Failure.UNREACHABLE.code, Failure.STALLED.code)


def iter_events(
    label: str,
    response: "ProviderResponse",
    accumulator: "ResponseAccumulator",
    decoder: SseDecoder | NdjsonDecoder,
) -> Iterator[dict[str, Any]]:
    """Yield the events of a response, until it ends or says that it is done; the accumulator is told of that.

    Raises:
        ProviderError: The response is no stream of events, is too long, or is lost before its answer is complete.
    """
    chunks = _limit_size(label, _iter_chunks(response, accumulator), decoder)
    first = next((chunk for chunk in chunks if chunk.strip(BLANK_BYTES)), b"")
    if first.lstrip(BLANK_BYTES).startswith(b"<"):
        raise Failure.BAD_REQUEST.to_error(
            f"{label} answered with a web page. Check its address in /admin/ai/providers."
        )
    if _is_json_body(first, response, decoder):  # not streamed, although that was asked for
        body = _join_body(label, first, chunks).decode("utf-8-sig", "replace")
        stream: Iterable[str] = _split_values(body.strip())
    else:
        stream = _iter_data(itertools.chain([first], chunks), decoder)
    for data in stream:
        if data.startswith("{"):  # nearly always
            yield from _parse_events(label, data)
        elif data.strip(_AROUND_MARKER) == DONE_MARKER:
            accumulator.handle_done()
            return
        elif not _is_heartbeat(data):
            yield from _parse_events(label, data)
    for data in itertools.chain.from_iterable(map(_split_values, decoder.flush())):
        yield from _try_parse_events(data) or ()


def _is_json_body(first: bytes, response: "ProviderResponse", decoder: SseDecoder | NdjsonDecoder) -> bool:
    """Return whether the body is one JSON value. Its beginning decides: servers name the wrong media type."""
    if isinstance(decoder, SseDecoder):
        return first.lstrip(BLANK_BYTES)[:1] in (b"{", b"[")
    return response.headers.get("content-type", "").startswith("application/json")


def _join_body(label: str, first: bytes, chunks: Iterable[bytes]) -> bytes:
    body = bytearray(first)
    for chunk in chunks:
        body += chunk
        if len(body) > MAX_FRAME_BYTES:
            raise Failure.UNUSABLE_RESPONSE.to_error(f"{label} stream error: the answer is too long")
    return bytes(body)


def _iter_data(chunks: Iterable[bytes], decoder: SseDecoder | NdjsonDecoder) -> Iterator[str]:
    """Yield the data of each event; some servers lose the line end between two."""
    for chunk in chunks:
        for data in decoder.feed(chunk):
            if "}data:" in data or "}{" in data or DONE_MARKER in data:
                yield from _split_values(data)
            else:
                yield data


def _split_values(data: str) -> Iterator[str]:
    """Yield the values that follow each other in the data, as text; all of it if it is anything else."""
    if has_too_many_members(data):  # refused as one frame, before its values take their memory
        yield data
        return
    values: list[str] = []
    start = 0
    while start < len(data):
        if data.startswith(DONE_MARKER, start):
            values.append(DONE_MARKER)
            break
        try:
            _, end = _VALUE_DECODER.raw_decode(data, start)
        except (ValueError, RecursionError):
            values = [data]
            break
        values.append(data[start:end])
        glue = _GLUE.match(data, end)
        start = glue.end() if glue else end
    yield from values


def _iter_chunks(response: "ProviderResponse", accumulator: "ResponseAccumulator") -> Iterator[bytes]:
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


def _parse_events(label: str, data: str) -> list[dict[str, Any]]:
    events = _try_parse_events(data)
    if events is None:
        raise Failure.SERVER_ERROR.to_error(f"{label} stream error: a frame was not readable")
    return events


def _try_parse_events(data: str) -> list[dict[str, Any]] | None:
    """Return the event, or those of a list, as Google sends errors and whole streams.

    Returns:
        None for data that is no event. At the end of a stream it may be half of one.
    """
    if has_too_many_members(data):
        return None
    try:
        value = _decode_value(data)
    except (ValueError, RecursionError):
        return None
    if is_nested_too_deeply(data, value):
        return None
    if isinstance(value, dict):  # nearly always
        return [name_unnamed_error(event) for event in unwrap_event(value)]
    events = [member for member in value if isinstance(member, dict)] if isinstance(value, list) else []
    return [name_unnamed_error(unwrapped) for event in events for unwrapped in unwrap_event(event)] or None


def _decode_value(data: str) -> Any:
    """Decode a JSON text. One without blanks around it takes half as long, because nobody looks for them."""
    if data.startswith("{"):
        value, end = _VALUE_DECODER.raw_decode(data)
        if end == len(data):
            return value
    return _VALUE_DECODER.decode(data)
