"""A server that repeats the key it was sent is not helped to spread it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.drivers.hearing import Draft, pieces_of
from fermata.drivers.line import Answer
from fermata.drivers.redacting import Veil
from fermata.drivers.sse import Frames
from fermata.words.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.words.errors import ProviderError
from fermata.words.model import Piece, ReasoningDelta, Reply, Stop, TextDelta, Tokens
from tests.unit.drivers.hearing import last
from tests.unit.drivers.recordings import RECORDINGS

KEY = "sk-ant-sk-ant-0123"
HIDDEN = "[redacted]"


def shown(veil: Veil, *pieces: Piece) -> list[Piece]:
    return [piece for given in pieces for piece in veil.show(given)]


def text_of(pieces: list[Piece], kind: type[TextDelta | ReasoningDelta] = TextDelta) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, kind))


def reply(*blocks: Any) -> Reply:
    return Reply(blocks=blocks, stop=Stop.END, tokens=Tokens())


@pytest.mark.parametrize("provider", ["anthropic", "openai", "openai-compatible", "ollama"])
@pytest.mark.parametrize("size", [1, 3, 7, 500])
def test_no_provider_can_have_its_key_shown_or_kept(provider: str, size: int) -> None:
    recording = RECORDINGS[provider]
    frame = "data: {}\n\n" if recording.stream is Frames else "{}\n"
    stream = "".join(frame.format(json.dumps(event)) for event in recording.events)
    told = stream.replace('"Hi"', f'"Hi {KEY}"').replace('"read"', f'"{KEY}"').encode()
    told = told.replace(b'"call_1"', f'"{KEY}"'.encode()).replace(b'"toolu_1"', f'"{KEY}"'.encode())
    assert told.count(KEY.encode()) > 1
    chunks = [told[start : start + size] for start in range(0, len(told), size)]
    pieces = list(pieces_of("Peer", Answer(200, {}, iter(chunks)), recording.draft(), KEY, recording.stream()))
    assert KEY not in repr(pieces)
    assert f"Hi {HIDDEN}" in text_of(pieces)
    assert [block.text for block in last(pieces).blocks if block.kind == "text"] == [text_of(pieces)]


@pytest.mark.parametrize("kind", [TextDelta, ReasoningDelta])
def test_a_key_in_any_number_of_pieces_is_found(kind: type[TextDelta | ReasoningDelta]) -> None:
    said = f"Your key is {KEY}{KEY[:7]}{KEY}, keep it."
    pieces = shown(Veil(KEY), *(kind(text=one) for one in said), reply())
    assert text_of(pieces, kind) == f"Your key is {HIDDEN}{KEY[:7]}{HIDDEN}, keep it."


def test_what_comes_between_does_not_hide_a_key() -> None:
    first, second = TextDelta(text=f"It is {KEY[:9]}"), TextDelta(text=f"{KEY[9:]}.")
    pieces = shown(Veil(KEY), first, ReasoningDelta(text="Hm."), second, reply())
    assert (text_of(pieces), text_of(pieces, ReasoningDelta)) == (f"It is {HIDDEN}.", "Hm.")


def test_only_what_may_be_its_beginning_waits() -> None:
    veil = Veil(KEY)
    assert shown(veil, TextDelta(text="asks")) == [TextDelta(text="ask")]
    assert shown(veil, TextDelta(text="k-")) == []
    assert shown(veil, TextDelta(text="ill. ")) == [TextDelta(text="sk-ill. ")]
    assert shown(veil, TextDelta(text="And s")) == [TextDelta(text="And ")]
    assert shown(veil, reply()) == [TextDelta(text="s"), reply()]


@given(st.lists(st.text("ab", max_size=5), max_size=30))
def test_pieces_show_what_the_whole_text_shows(parts: list[str]) -> None:
    secret = "abaababa"
    pieces = shown(Veil(secret), *(TextDelta(text=part) for part in parts), reply())
    assert text_of(pieces) == "".join(parts).replace(secret, HIDDEN)


def test_calls_are_kept_without_it_and_apart() -> None:
    blocks = [
        ToolCallBlock(tool_call_id=KEY, tool_name=f"read_{KEY}", input={"a": [f"x{KEY}"], KEY: 1}),
        ToolCallBlock(tool_call_id=HIDDEN, tool_name="read", input={"n": 1}),
    ]
    (told,) = shown(Veil(KEY), reply(*blocks))
    assert isinstance(told, Reply)
    assert told.blocks == (
        ToolCallBlock(tool_call_id=HIDDEN, tool_name=f"read_{HIDDEN}", input={"a": [f"x{HIDDEN}"], HIDDEN: 1}),
        ToolCallBlock(tool_call_id=f"{HIDDEN}_2", tool_name="read", input={"n": 1}),
    )


def test_thinking_is_kept_as_it_is_or_not_at_all() -> None:
    clean, torn = (
        ReasoningBlock(provider="anthropic", model="m", payload={"thinking": text, "signature": "x"})
        for text in ("Hm.", f"Hm, {KEY}.")
    )
    assert shown(Veil(KEY), reply(clean, torn, TextBlock(text="Hi"))) == [reply(clean, TextBlock(text="Hi"))]


@pytest.mark.parametrize("secret", ["", "key", "1234567"])
def test_a_short_key_is_a_word_like_any_other(secret: str) -> None:
    pieces = [TextDelta(text=f"The key is 1234567{secret}."), reply(TextBlock(text="key"))]
    assert shown(Veil(secret), *pieces) == pieces


def test_what_waits_is_shown_when_the_stream_breaks() -> None:
    recording = RECORDINGS["openai-compatible"]
    draft: Draft = recording.draft()
    stream = b'data: {"choices":[{"index":0,"delta":{"content":"Ask s"}}]}\n\n'
    pieces: list[Piece] = []
    with pytest.raises(ProviderError):
        pieces.extend(pieces_of("Peer", Answer(200, {}, iter([stream])), draft, KEY))
    assert text_of(pieces) == "Ask s"
