"""The API key is removed from a response that repeats it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.domain.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.drivers.protocols.response_key_redaction import KeyRedactor
from fermata.drivers.protocols.response_stream import ResponseAccumulator, iter_parts
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.drivers.transport.stream_decoders import SseDecoder
from tests.unit.drivers.recorded_streams import RECORDINGS
from tests.unit.drivers.stream_helpers import get_response

KEY = "sk-ant-sk-ant-0123"
HIDDEN = "[redacted]"


def shown_parts(redactor: KeyRedactor, *parts: StreamPart) -> list[StreamPart]:
    return [redacted for part in parts for redacted in redactor.redact_part(part)]


def join_text(parts: list[StreamPart], kind: type[TextDelta | ReasoningDelta] = TextDelta) -> str:
    return "".join(part.text for part in parts if isinstance(part, kind))


def make_response(*blocks: Any) -> ModelResponse:
    return ModelResponse(blocks=blocks, stop=FinishReason.END, tokens=TokenUsage())


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-compatible", "gemini", "ollama"])
@pytest.mark.parametrize("size", [1, 3, 7, 500])
def test_a_repeated_key_is_neither_streamed_nor_stored(provider: str, size: int) -> None:
    recording = RECORDINGS[provider]
    frame = "data: {}\n\n" if recording.make_decoder is SseDecoder else "{}\n"
    stream = "".join(frame.format(json.dumps(event)) for event in recording.events)
    leaking = stream.replace('"Hi"', f'"Hi {KEY}"').replace('"read"', f'"{KEY}"').encode()
    leaking = leaking.replace(b'"call_1"', f'"{KEY}"'.encode()).replace(b'"toolu_1"', f'"{KEY}"'.encode())
    assert leaking.count(KEY.encode()) > 1
    chunks = [leaking[start : start + size] for start in range(0, len(leaking), size)]
    parts = list(
        iter_parts(
            "Peer", ProviderResponse(200, {}, iter(chunks)), recording.make_accumulator(), KEY, recording.make_decoder()
        )
    )
    assert KEY not in repr(parts)
    assert f"Hi {HIDDEN}" in join_text(parts)
    assert [block.text for block in get_response(parts).blocks if block.kind == "text"] == [join_text(parts)]


@pytest.mark.parametrize("mark", ["\\u00", "\\x", "%"])
@pytest.mark.parametrize("is_letter_kept", [False, True])
def test_a_key_that_is_streamed_with_escaped_characters_is_found(mark: str, *, is_letter_kept: bool) -> None:
    """Models write such keys when they repeat an error text that was escaped twice."""
    hex_numbers = [f"{mark}{ord(character):02X}" for character in KEY]
    kept = [character if is_letter_kept and character.isalnum() else "" for character in KEY]
    written = "".join(character or number for character, number in zip(kept, hex_numbers, strict=True))
    text = f"It says {written}, and ends with {mark}"
    redactor = KeyRedactor(KEY)
    parts = shown_parts(
        redactor, *(TextDelta(text=character) for character in text), make_response(TextBlock(text=text))
    )
    assert join_text(parts) == f"It says {HIDDEN}, and ends with {mark}"
    assert [block.text for block in get_response(parts).blocks if block.kind == "text"] == [join_text(parts)]


@pytest.mark.parametrize("kind", [TextDelta, ReasoningDelta])
def test_a_key_split_into_any_number_of_parts_is_found(kind: type[TextDelta | ReasoningDelta]) -> None:
    text = f"Your key is {KEY}{KEY[:7]}{KEY}, keep it."
    parts = shown_parts(KeyRedactor(KEY), *(kind(text=character) for character in text), make_response())
    assert join_text(parts, kind) == f"Your key is {HIDDEN}{KEY[:7]}{HIDDEN}, keep it."


def test_a_part_of_another_kind_in_between_does_not_hide_a_key() -> None:
    first, second = TextDelta(text=f"It is {KEY[:9]}"), TextDelta(text=f"{KEY[9:]}.")
    parts = shown_parts(KeyRedactor(KEY), first, ReasoningDelta(text="Hm."), second, make_response())
    assert (join_text(parts), join_text(parts, ReasoningDelta)) == (f"It is {HIDDEN}.", "Hm.")


def test_only_a_possible_beginning_of_the_key_is_held_back() -> None:
    redactor = KeyRedactor(KEY)
    assert shown_parts(redactor, TextDelta(text="asks")) == [TextDelta(text="ask")]
    assert shown_parts(redactor, TextDelta(text="k-")) == []
    assert shown_parts(redactor, TextDelta(text="ill. ")) == [TextDelta(text="sk-ill. ")]
    assert shown_parts(redactor, TextDelta(text="And s")) == [TextDelta(text="And ")]
    assert shown_parts(redactor, make_response()) == [TextDelta(text="s"), make_response()]


@given(st.lists(st.text("ab", max_size=5), max_size=30))
def test_parts_add_up_to_the_redacted_text(texts: list[str]) -> None:
    secret = "abaababa"
    parts = shown_parts(KeyRedactor(secret), *(TextDelta(text=text) for text in texts), make_response())
    assert join_text(parts) == "".join(texts).replace(secret, HIDDEN)


def test_calls_are_stored_without_the_key_and_with_unique_ids() -> None:
    blocks = [
        ToolCallBlock(tool_call_id=KEY, tool_name=f"read_{KEY}", input={"a": [f"x{KEY}"], KEY: 1}),
        ToolCallBlock(tool_call_id=HIDDEN, tool_name="read", input={"n": 1}),
    ]
    (leaking,) = shown_parts(KeyRedactor(KEY), make_response(*blocks))
    assert isinstance(leaking, ModelResponse)
    assert leaking.blocks == (
        ToolCallBlock(tool_call_id=HIDDEN, tool_name=f"read_{HIDDEN}", input={"a": [f"x{HIDDEN}"], HIDDEN: 1}),
        ToolCallBlock(tool_call_id=f"{HIDDEN}_2", tool_name="read", input={"n": 1}),
    )


def test_thinking_is_stored_unchanged_or_not_at_all() -> None:
    clean, torn = (
        ReasoningBlock(provider="anthropic", model="m", payload={"thinking": text, "signature": "x"})
        for text in ("Hm.", f"Hm, {KEY}.")
    )
    assert shown_parts(KeyRedactor(KEY), make_response(clean, torn, TextBlock(text="Hi"))) == [
        make_response(clean, TextBlock(text="Hi"))
    ]


@pytest.mark.parametrize("secret", ["", "key", "1234567"])
def test_a_short_key_is_not_redacted(secret: str) -> None:
    parts: list[StreamPart] = [TextDelta(text=f"The key is 1234567{secret}."), make_response(TextBlock(text="key"))]
    assert shown_parts(KeyRedactor(secret), *parts) == parts


def test_what_is_held_back_is_flushed_when_the_stream_breaks() -> None:
    recording = RECORDINGS["openai-compatible"]
    accumulator: ResponseAccumulator = recording.make_accumulator()
    stream = b'data: {"choices":[{"index":0,"delta":{"content":"Ask s"}}]}\n\n'
    parts: list[StreamPart] = []
    with pytest.raises(ProviderError):
        parts.extend(iter_parts("Peer", ProviderResponse(200, {}, iter([stream])), accumulator, KEY, SseDecoder()))
    assert join_text(parts) == "Ask s"
