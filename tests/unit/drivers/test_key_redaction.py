"""A server that repeats the key it was sent is not helped to spread it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.domain.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.drivers.protocols.key_redaction import KeyRedactor
from fermata.drivers.protocols.response_stream import ResponseAccumulator, iter_parts
from fermata.drivers.transport.connection import ProviderResponse
from fermata.drivers.transport.stream_decoders import SseDecoder
from tests.unit.drivers.recorded_streams import RECORDINGS
from tests.unit.drivers.stream_helpers import get_response

KEY = "sk-ant-sk-ant-0123"
HIDDEN = "[redacted]"


def shown_pieces(veil: KeyRedactor, *pieces: StreamPart) -> list[StreamPart]:
    return [piece for given in pieces for piece in veil.redact_part(given)]


def join_text(pieces: list[StreamPart], kind: type[TextDelta | ReasoningDelta] = TextDelta) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, kind))


def make_response(*blocks: Any) -> ModelResponse:
    return ModelResponse(blocks=blocks, stop=FinishReason.END, tokens=TokenUsage())


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-compatible", "ollama"])
@pytest.mark.parametrize("size", [1, 3, 7, 500])
def test_no_provider_can_have_its_key_shown_or_kept(provider: str, size: int) -> None:
    recording = RECORDINGS[provider]
    frame = "data: {}\n\n" if recording.make_decoder is SseDecoder else "{}\n"
    stream = "".join(frame.format(json.dumps(event)) for event in recording.events)
    told = stream.replace('"Hi"', f'"Hi {KEY}"').replace('"read"', f'"{KEY}"').encode()
    told = told.replace(b'"call_1"', f'"{KEY}"'.encode()).replace(b'"toolu_1"', f'"{KEY}"'.encode())
    assert told.count(KEY.encode()) > 1
    chunks = [told[start : start + size] for start in range(0, len(told), size)]
    pieces = list(
        iter_parts(
            "Peer", ProviderResponse(200, {}, iter(chunks)), recording.make_accumulator(), KEY, recording.make_decoder()
        )
    )
    assert KEY not in repr(pieces)
    assert f"Hi {HIDDEN}" in join_text(pieces)
    assert [block.text for block in get_response(pieces).blocks if block.kind == "text"] == [join_text(pieces)]


@pytest.mark.parametrize("kind", [TextDelta, ReasoningDelta])
def test_a_key_in_any_number_of_pieces_is_found(kind: type[TextDelta | ReasoningDelta]) -> None:
    said = f"Your key is {KEY}{KEY[:7]}{KEY}, keep it."
    pieces = shown_pieces(KeyRedactor(KEY), *(kind(text=one) for one in said), make_response())
    assert join_text(pieces, kind) == f"Your key is {HIDDEN}{KEY[:7]}{HIDDEN}, keep it."


def test_what_comes_between_does_not_hide_a_key() -> None:
    first, second = TextDelta(text=f"It is {KEY[:9]}"), TextDelta(text=f"{KEY[9:]}.")
    pieces = shown_pieces(KeyRedactor(KEY), first, ReasoningDelta(text="Hm."), second, make_response())
    assert (join_text(pieces), join_text(pieces, ReasoningDelta)) == (f"It is {HIDDEN}.", "Hm.")


def test_only_what_may_be_its_beginning_waits() -> None:
    veil = KeyRedactor(KEY)
    assert shown_pieces(veil, TextDelta(text="asks")) == [TextDelta(text="ask")]
    assert shown_pieces(veil, TextDelta(text="k-")) == []
    assert shown_pieces(veil, TextDelta(text="ill. ")) == [TextDelta(text="sk-ill. ")]
    assert shown_pieces(veil, TextDelta(text="And s")) == [TextDelta(text="And ")]
    assert shown_pieces(veil, make_response()) == [TextDelta(text="s"), make_response()]


@given(st.lists(st.text("ab", max_size=5), max_size=30))
def test_pieces_show_what_the_whole_text_shows(parts: list[str]) -> None:
    secret = "abaababa"
    pieces = shown_pieces(KeyRedactor(secret), *(TextDelta(text=part) for part in parts), make_response())
    assert join_text(pieces) == "".join(parts).replace(secret, HIDDEN)


def test_calls_are_kept_without_it_and_apart() -> None:
    blocks = [
        ToolCallBlock(tool_call_id=KEY, tool_name=f"read_{KEY}", input={"a": [f"x{KEY}"], KEY: 1}),
        ToolCallBlock(tool_call_id=HIDDEN, tool_name="read", input={"n": 1}),
    ]
    (told,) = shown_pieces(KeyRedactor(KEY), make_response(*blocks))
    assert isinstance(told, ModelResponse)
    assert told.blocks == (
        ToolCallBlock(tool_call_id=HIDDEN, tool_name=f"read_{HIDDEN}", input={"a": [f"x{HIDDEN}"], HIDDEN: 1}),
        ToolCallBlock(tool_call_id=f"{HIDDEN}_2", tool_name="read", input={"n": 1}),
    )


def test_thinking_is_kept_as_it_is_or_not_at_all() -> None:
    clean, torn = (
        ReasoningBlock(provider="anthropic", model="m", payload={"thinking": text, "signature": "x"})
        for text in ("Hm.", f"Hm, {KEY}.")
    )
    assert shown_pieces(KeyRedactor(KEY), make_response(clean, torn, TextBlock(text="Hi"))) == [
        make_response(clean, TextBlock(text="Hi"))
    ]


@pytest.mark.parametrize("secret", ["", "key", "1234567"])
def test_a_short_key_is_a_word_like_any_other(secret: str) -> None:
    pieces = [TextDelta(text=f"The key is 1234567{secret}."), make_response(TextBlock(text="key"))]
    assert shown_pieces(KeyRedactor(secret), *pieces) == pieces


def test_what_waits_is_shown_when_the_stream_breaks() -> None:
    recording = RECORDINGS["openai-compatible"]
    draft: ResponseAccumulator = recording.make_accumulator()
    stream = b'data: {"choices":[{"index":0,"delta":{"content":"Ask s"}}]}\n\n'
    pieces: list[StreamPart] = []
    with pytest.raises(ProviderError):
        pieces.extend(iter_parts("Peer", ProviderResponse(200, {}, iter([stream])), draft, KEY, SseDecoder()))
    assert join_text(pieces) == "Ask s"
