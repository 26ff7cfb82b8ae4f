"""Check what the streams of all protocols share: surrogates, size limits and errors."""

import json
from typing import Any

import pytest

from fermata.domain.blocks import Block
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.drivers.protocols import response_events, response_stream
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.drivers.transport.stream_decoders import SseDecoder
from tests.unit.drivers.conversation_builders import tool_call
from tests.unit.drivers.recorded_streams import RECORDINGS
from tests.unit.drivers.stream_helpers import collect_parts, collect_parts_until_error, get_response


class PlainAccumulator:
    """A protocol of two members: text and reasoning."""

    has_usage = False
    stream_error: Any = None
    may_end = False
    is_complete = False

    def __init__(self, refusal: str | None = None, blocks: tuple[Block, ...] = ()) -> None:
        self._refusal, self._blocks = refusal, blocks

    @property
    def tokens(self) -> TokenUsage:
        return TokenUsage()

    def add_event(self, event: dict[str, Any]) -> list[StreamPart]:
        self.is_complete = event.get("over") is True
        self.stream_error = event.get("error")
        kinds: dict[str, type[TextDelta | ReasoningDelta]] = {"text": TextDelta, "thought": ReasoningDelta}
        return [kinds[name](text=text) for name, text in event.items() if name in kinds]

    def handle_done(self) -> None:
        self.may_end = True

    def build_response(self) -> ModelResponse:
        return ModelResponse(blocks=self._blocks, stop=FinishReason.END, tokens=self.tokens, refusal=self._refusal)


def sse(*events: Any) -> bytes:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


def shown_parts(*events: Any) -> list[StreamPart]:
    return collect_parts(PlainAccumulator(), [sse(*events, {"over": True})])[:-1]


def test_a_surrogate_pair_split_between_deltas_is_joined() -> None:
    assert shown_parts({"text": "crab \ud83e"}, {"text": "\udd80!"}) == [
        TextDelta(text="crab "),
        TextDelta(text="🦀!"),
    ]
    assert shown_parts({"thought": "\ud83e"}, {"thought": "\udd80"}) == [ReasoningDelta(text="🦀")]


def test_a_surrogate_whose_other_half_never_comes_is_replaced() -> None:
    assert shown_parts({"text": "a\ud83e"}) == [TextDelta(text="a"), TextDelta(text="\ufffd")]
    assert shown_parts({"text": "\ud83e"}, {"text": "b"}) == [TextDelta(text="\ufffdb")]
    assert shown_parts({"text": "\ud83e"}, {"thought": "hm"}) == [TextDelta(text="\ufffd"), ReasoningDelta(text="hm")]


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-compatible", "gemini", "ollama"])
def test_the_streamed_text_is_the_stored_text_however_characters_are_split(provider: str) -> None:
    recording = RECORDINGS[provider]
    frame = "data: {}\n\n" if recording.make_decoder is SseDecoder else "{}\n"
    text = "".join(frame.format(json.dumps(event)) for event in recording.events)
    cut = text.replace('"Hi"', '"Hi \\ud83e"', 1).replace('" there"', '"\\udd80 there"', 1)
    assert cut != text
    parts = collect_parts(recording.make_accumulator(), [cut.encode()], recording.make_decoder())
    shown = "".join(part.text for part in parts if isinstance(part, TextDelta))
    stored = "".join(block.text for block in get_response(parts).blocks if block.kind == "text")
    assert shown == stored


def test_an_event_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_events, "MAX_FRAME_BYTES", 1000)
    read: list[bytes] = []

    def chunks() -> Any:
        while True:
            read.append(b"data: " + b"x" * 100)
            yield read[-1]

    _, error = collect_parts_until_error(PlainAccumulator(), chunks())
    assert (error.code, error.retryable) == ("provider_error", False)
    assert len(read) < 20


def test_a_response_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_events, "MAX_STREAM_BYTES", 1000)

    def chunks() -> Any:
        while True:
            yield sse({"text": "more"})

    parts, error = collect_parts_until_error(PlainAccumulator(), chunks())
    assert parts
    assert "too long" in error.message


def test_a_long_event_in_many_chunks_is_joined_once() -> None:
    """Joining it at each chunk would take a minute for a long response in one event."""
    frames, chunk = SseDecoder(), b"x" * 100
    frames.feed(b"data: ")
    for _ in range(100_000):
        assert frames.feed(chunk) == []
    (event,) = frames.feed(b"\n\n")
    assert len(event) == 10_000_000


@pytest.mark.parametrize("depth", [200, 100_000])
def test_an_event_nested_too_deeply_is_an_error(depth: int) -> None:
    _, error = collect_parts_until_error(PlainAccumulator(), [b'data: {"a":' + b"[" * depth + b"]" * depth + b"}\n\n"])
    assert "not readable" in error.message


def test_too_many_calls_are_an_error() -> None:
    calls = [tool_call(f"call_{number}") for number in range(129)]
    assert get_response(
        collect_parts(PlainAccumulator(blocks=tuple(calls[1:])), [sse({"over": True})])
    ).blocks == tuple(calls[1:])
    _, error = collect_parts_until_error(PlainAccumulator(blocks=tuple(calls)), [sse({"over": True})])
    assert (error.message, error.retryable) == (
        "Peer stream error: 129 tool calls at once; at most 128 are taken",
        False,
    )


@pytest.mark.parametrize("provider", RECORDINGS)
def test_overlong_names_and_ids_are_cut(provider: str) -> None:
    recording = RECORDINGS[provider]
    frame = "data: {}\n\n" if recording.make_decoder is SseDecoder else "{}\n"
    text = "".join(frame.format(json.dumps(event)) for event in recording.events)
    for name in ('"read"', '"toolu_1"', '"call_1"'):
        text = text.replace(name, f'"{"x" * 500_000}"')
    (called,) = [
        block
        for block in get_response(
            collect_parts(recording.make_accumulator(), [text.encode()], recording.make_decoder())
        ).blocks
        if block.kind == "toolCall"
    ]
    assert len(called.tool_name) == 256
    assert len(called.tool_call_id) <= 256


def test_a_web_page_instead_of_a_stream_points_at_the_address() -> None:
    page = ProviderResponse(
        200, {"content-type": "text/html; charset=utf-8"}, iter([b"<!doctype html>\n<p>Welcome</p>"])
    )
    with pytest.raises(ProviderError, match=r"Peer answered with a web page\. Check its address") as caught:
        list(response_stream.iter_parts("Peer", page, PlainAccumulator(), "", SseDecoder()))
    assert (caught.value.code, caught.value.retryable) == ("provider_request", False)


def test_a_stream_with_the_type_of_a_web_page_is_read() -> None:
    stream = ProviderResponse(200, {"content-type": "text/html"}, iter([sse({"text": "Hi"}, {"over": True})]))
    assert next(response_stream.iter_parts("Peer", stream, PlainAccumulator(), "", SseDecoder())) == TextDelta(
        text="Hi"
    )


@pytest.mark.parametrize("failure", ["Overloaded", {"message": "Overloaded"}, ["Overloaded"], True])
def test_an_error_in_the_stream_may_have_any_type(failure: Any) -> None:
    _, error = collect_parts_until_error(PlainAccumulator(), [sse({"error": failure})])
    assert error.message.startswith("Peer stream error: ")


def test_a_reason_is_shown_on_one_line_without_the_key() -> None:
    parts = collect_parts(PlainAccumulator("No,\nnot with\u202e secret-key\x1b[31m."), [sse({"over": True})])
    assert get_response(parts).refusal == "No, not with [redacted] [31m."
    assert isinstance(collect_parts_until_error(PlainAccumulator(), [b""])[1], ProviderError)
