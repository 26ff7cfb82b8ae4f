"""Turn the events of a streamed response into parts, for every protocol (decisions 0070 and 0081)."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelResponse, StreamPart, TokenUsage
from fermata.drivers.protocols.detect_calls_in_text import WRITTEN_CALL_WARNING, is_call_written_as_text
from fermata.drivers.protocols.multi_tool_use import unfold_parallel_calls
from fermata.drivers.protocols.response_events import iter_events
from fermata.drivers.protocols.response_key_redaction import KeyRedactor
from fermata.drivers.protocols.surrogate_joiner import SurrogateJoiner
from fermata.drivers.protocols.unique_call_ids import assign_unique_call_ids
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.stream_decoders import NdjsonDecoder, SseDecoder

if TYPE_CHECKING:
    from fermata.drivers.transport.connection_interface import ProviderResponse

MAX_TOOL_CALLS_PER_RESPONSE = 128
"""They are stored and waited for in one row."""
MAX_WARNING_CHARS = 500


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
        from fermata.drivers.error_mapping import error_from_response  # its patterns are for errors only

        raise error_from_response(label, response.status, response.headers, response.read_error_body(), api_key)
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
        if isinstance(part, ModelResponse) and is_call_written_as_text(part.blocks):
            part = part.model_copy(update={"warning": WRITTEN_CALL_WARNING})
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
    joiner = SurrogateJoiner()
    for event in iter_events(label, response, accumulator, decoder):
        is_late = accumulator.may_end
        for part in accumulator.add_event(event):
            yield from joiner.join(part)
        if accumulator.stream_error is not None and is_late:
            break  # the answer was whole before the error, which is about something else
        if accumulator.stream_error is not None:
            from fermata.drivers.error_mapping import error_from_stream  # its patterns are for errors only

            raise error_from_stream(label, accumulator.stream_error, api_key)
        if accumulator.is_complete:
            break
    if not accumulator.is_complete and not accumulator.may_end:
        raise Failure.SERVER_ERROR.to_error(f"{label} stream error: it ended before the answer was complete")
    yield from joiner.join(_check_response(label, accumulator.build_response(), api_key))


def _check_response(label: str, response: ModelResponse, api_key: str) -> ModelResponse:
    blocks = unfold_parallel_calls(response.blocks)
    calls = sum(block.kind == "toolCall" for block in blocks)
    if calls > MAX_TOOL_CALLS_PER_RESPONSE:
        limit = f"at most {MAX_TOOL_CALLS_PER_RESPONSE} are taken"
        raise Failure.UNUSABLE_RESPONSE.to_error(f"{label} stream error: {calls} tool calls at once; {limit}")
    changes: dict[str, Any] = {} if blocks == response.blocks else {"blocks": assign_unique_call_ids(blocks, b"")}
    if response.refusal or response.warning:
        changes |= _redact_words(response, api_key)
    return response.model_copy(update=changes) if any(changes.values()) else response


def _redact_words(response: ModelResponse, api_key: str) -> dict[str, Any]:
    from fermata.drivers.error_mapping import redact_secrets  # few responses have such words

    return {
        "refusal": response.refusal and redact_secrets(response.refusal, api_key),
        "warning": response.warning and redact_secrets(response.warning, api_key, MAX_WARNING_CHARS),
    }
