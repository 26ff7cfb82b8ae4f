"""What comes out of a streamed answer. Named inputs are the replay scenarios R1 to R10."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.drivers.anthropic.fold import Draft
from fermata.drivers.hearing import pieces_of
from fermata.drivers.line import Answer
from fermata.words.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.words.errors import ProviderError
from fermata.words.model import Piece, ReasoningDelta, Reply, Stop, TextDelta, Tokens
from tests.strict.anthropic import answer, block, event, sse, started, stopped, text, tool
from tests.unit.drivers.asks import MODEL

R1 = sse(
    started(input_tokens=3, output_tokens=1),
    text(0, "那个", "你好🦀"),
    tool(1, "toolu_1", "weather", '{"city":"杭', '州"}'),
    stopped("tool_use", output_tokens=20),
)


def heard(*chunks: bytes) -> list[Piece]:
    return list(pieces_of("Anthropic", Answer(200, {}, iter(chunks)), Draft(MODEL, b"request"), "secret-key"))


def reply(*chunks: bytes) -> Reply:
    last = heard(*chunks)[-1]
    assert isinstance(last, Reply)
    return last


def said(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))


def singly(stream: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in stream]


def around(stream: bytes, character: str, at: int) -> list[bytes]:
    """Cut inside the first occurrence of a character."""
    cut = stream.index(character.encode()) + at
    return [stream[:cut], stream[cut:]]


@pytest.mark.parametrize(
    "chunks",
    [[R1], singly(R1), around(R1, "那", 1), around(R1, "🦀", 2), around(R1, "杭", 1)],
    ids=["whole", "single bytes", "E9|82A3", "F09F|A680", "in the arguments"],
)
def test_r1_characters_cut_in_two_arrive_whole(chunks: list[bytes]) -> None:
    pieces = heard(*chunks)
    assert said(pieces) == "那个你好🦀"
    assert pieces == heard(R1)
    assert pieces[-1].model_dump()["blocks"][1]["input"] == {"city": "杭州"}
    assert "\ufffd" not in repr(pieces)


@given(st.data())
def test_r1_any_chunking_folds_the_same(data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(R1)), max_size=40)))
    assert heard(*(R1[start:end] for start, end in zip([0, *cuts], [*cuts, len(R1)], strict=True))) == heard(R1)


OVERLOADED = event("error", error={"type": "overloaded_error", "message": "Overloaded"})


@pytest.mark.parametrize("cut", [lambda stream: [stream], singly], ids=["whole", "single bytes"])
def test_r3_an_error_in_the_stream_is_an_error_and_what_was_said_stays_said(cut: Any) -> None:
    stream = sse(started(input_tokens=9), text(0, "Partial")[:-1], OVERLOADED)
    pieces: list[Piece] = []
    with pytest.raises(ProviderError) as caught:
        pieces.extend(pieces_of("Anthropic", Answer(200, {}, iter(cut(stream))), Draft(MODEL, b"request"), ""))
    assert pieces == [TextDelta(text="Partial")]
    assert (caught.value.code, caught.value.retryable) == ("provider_overloaded", True)
    assert caught.value.message == "Anthropic stream error: Overloaded"


def test_r3_an_error_may_be_the_first_thing_in_a_stream() -> None:
    with pytest.raises(ProviderError, match="Anthropic stream error: Overloaded"):
        heard(sse(OVERLOADED))


def test_a_stream_that_ends_before_its_reason_to_stop_is_an_error() -> None:
    whole = answer("Hello")
    with pytest.raises(ProviderError) as caught:
        heard(whole[: whole.index(b"event: message_delta")])
    assert (caught.value.code, caught.value.retryable) == ("provider_error", True)


def test_a_stream_that_ends_after_its_reason_to_stop_has_lost_nothing() -> None:
    whole = answer("Hello")
    reply = heard(whole[: whole.index(b"event: message_stop")])[-1]
    assert isinstance(reply, Reply)
    assert (reply.stop, reply.blocks, reply.tokens.completion) == (Stop.END, (TextBlock(text="Hello"),), 7)


def test_a_frame_that_is_no_json_is_an_error_not_a_gap() -> None:
    with pytest.raises(ProviderError, match="not readable"):
        heard(sse(started()) + b"data: {half\n\n")


@pytest.mark.parametrize("parts", [("",), ()], ids=["one empty delta", "no delta"])
def test_r4_a_call_without_argument_text_has_no_arguments(parts: tuple[str, ...]) -> None:
    stream = sse(started(), event("ping"), tool(0, "toolu_1", "list_tokens", *parts), stopped("tool_use"))
    for chunks in ([stream], singly(stream)):
        only = reply(*chunks)
        assert only.blocks == (ToolCallBlock(tool_call_id="toolu_1", tool_name="list_tokens", input={}),)
        assert only.stop is Stop.TOOL_CALLS


@pytest.mark.parametrize(
    "fragment", ['{"file_path":"x"', '{"file_path":"x"}'], ids=["cut off", "reads but may lack more"]
)
def test_r5_a_call_the_limit_fell_into_is_marked_and_the_stop_says_why(fragment: str) -> None:
    calls = [*tool(0, "toolu_1", "read", '{"a":1}'), *tool(1, "toolu_2", "write", fragment)]
    stream = sse(started(), calls, stopped("max_tokens"))
    for chunks in ([stream], singly(stream)):
        cut = reply(*chunks)
        first, second = cut.blocks
        assert cut.stop is Stop.MAX_TOKENS
        assert isinstance(first, ToolCallBlock)
        assert first.malformed is None
        assert isinstance(second, ToolCallBlock)
        assert second.malformed is True


@pytest.mark.parametrize("broken", ['{"a": tru', "{'a': 1}", '{"a": NaN}'])
def test_arguments_that_are_no_json_are_marked_and_replaced_by_none(broken: str) -> None:
    only = reply(sse(started(), tool(0, "toolu_1", "read", broken), stopped("tool_use"))).blocks[0]
    assert only == ToolCallBlock(tool_call_id="toolu_1", tool_name="read", input={}, malformed=True)


def test_arguments_that_are_json_but_no_object_are_kept_for_validation_to_refuse() -> None:
    only = reply(sse(started(), tool(0, "toolu_1", "read", "[1, 2]"), stopped("tool_use"))).blocks[0]
    assert only == ToolCallBlock(tool_call_id="toolu_1", tool_name="read", input=[1, 2])


THOUGHT = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "Look "},
    {"type": "thinking_delta", "thinking": "first."},
    {"type": "signature_delta", "signature": "EqQBCgIYAhIk+/=="},
)
REDACTED = block(1, {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va+/=="})


def test_r8_a_refusal_may_be_empty_or_only_thought() -> None:
    assert reply(sse(started(), stopped("refusal", output_tokens=2))).blocks == ()
    refused = reply(sse(started(), THOUGHT, stopped("refusal")))
    assert refused.stop is Stop.REFUSAL
    assert [block.kind for block in refused.blocks] == ["reasoning"]


@pytest.mark.parametrize(
    ("details", "reason"),
    [
        (
            {"type": "refusal", "category": "cyber", "explanation": "This asks for an exploit."},
            "This asks for an exploit.",
        ),
        ({"type": "refusal", "category": "frontier_llm", "explanation": None}, "it touches the policy on frontier llm"),
        ({"type": "refusal", "category": None, "explanation": None}, None),
        (None, None),
    ],
)
def test_a_refusal_says_why_as_far_as_the_provider_does(details: Any, reason: str | None) -> None:
    stop = event("message_delta", delta={"stop_reason": "refusal", "stop_details": details}, usage={})
    assert reply(sse(started(), stop, event("message_stop"))).refusal == reason


def test_only_a_refusal_has_a_reason() -> None:
    stop = event("message_delta", delta={"stop_reason": "end_turn", "stop_details": {"explanation": "x"}}, usage={})
    assert reply(sse(started(), text(0, "Hi"), stop, event("message_stop"))).refusal is None


@pytest.mark.parametrize("ids", [("toolu_1", "toolu_1"), ("", ""), (None, None)])
def test_calls_with_the_same_id_or_none_are_told_apart_and_named_the_same_again(ids: tuple[Any, Any]) -> None:
    stream = sse(started(), tool(0, ids[0], "read", "{}"), tool(1, ids[1], "read", "{}"), stopped("tool_use"))
    first, second = (block.model_dump()["tool_call_id"] for block in reply(stream).blocks)
    assert first
    assert first != second
    assert [block.model_dump()["tool_call_id"] for block in reply(stream).blocks] == [first, second]


def test_r9_thinking_is_shown_as_it_comes_and_kept_to_the_byte_in_its_place() -> None:
    stream = sse(
        started(), THOUGHT, REDACTED, text(2, "I read."), tool(3, "toolu_1", "read", "{}"), stopped("tool_use")
    )
    for chunks in ([stream], singly(stream)):
        pieces = heard(*chunks)
        assert pieces[:2] == [ReasoningDelta(text="Look "), ReasoningDelta(text="first.")]
        thinking, redacted, spoken, called = reply(*chunks).blocks
        assert isinstance(thinking, ReasoningBlock)
        assert (thinking.provider, thinking.model) == ("anthropic", MODEL)
        assert thinking.payload == {"type": "thinking", "thinking": "Look first.", "signature": "EqQBCgIYAhIk+/=="}
        assert isinstance(redacted, ReasoningBlock)
        assert redacted.payload == {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va+/=="}
        assert [spoken.kind, called.kind] == ["text", "toolCall"]


def test_thinking_that_is_not_shown_still_has_its_signature() -> None:
    hidden = block(0, {"type": "thinking", "thinking": "", "signature": ""}, THOUGHT[-2]["delta"])
    pieces = heard(sse(started(), hidden, text(1, "Yes."), stopped("end_turn")))
    assert [type(piece) for piece in pieces] == [TextDelta, Reply]
    assert json.loads(pieces[-1].model_dump_json())["blocks"][0]["payload"]["signature"] == "EqQBCgIYAhIk+/=="


def test_r10_a_text_block_without_text_is_not_kept() -> None:
    stream = sse(started(), text(0, ""), tool(1, "toolu_1", "read", "{}"), stopped("tool_use"))
    for chunks in ([stream], singly(stream)):
        assert [one.kind for one in reply(*chunks).blocks] == ["toolCall"]


def test_blocks_only_the_provider_reads_are_kept_whole() -> None:
    searching = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    stream = sse(
        started(),
        block(0, searching, {"type": "input_json_delta", "partial_json": '{"query":"rye"}'}),
        block(1, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
        stopped("pause_turn"),
    )
    paused = reply(stream)
    assert paused.stop is Stop.PAUSE
    payloads = [one.payload for one in paused.blocks if isinstance(one, ReasoningBlock)]
    assert payloads[0] == searching | {"input": {"query": "rye"}}
    assert payloads[1]["tool_use_id"] == "srvtoolu_1"


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", Stop.END),
        ("stop_sequence", Stop.END),
        ("max_tokens", Stop.MAX_TOKENS),
        ("model_context_window_exceeded", Stop.MAX_TOKENS),
        ("refusal", Stop.REFUSAL),
        ("pause_turn", Stop.PAUSE),
        ("something_new", Stop.END),
        (None, Stop.END),
    ],
)
def test_every_reason_to_stop_has_a_meaning(reason: str | None, stop: Stop) -> None:
    assert reply(sse(started(), text(0, "Hi"), stopped(reason))).stop is stop


def test_calls_are_calls_whatever_the_reason_says() -> None:
    assert reply(sse(started(), tool(0, "t", "read", "{}"), stopped("end_turn"))).stop is Stop.TOOL_CALLS
    assert reply(sse(started(), text(0, "Hi"), stopped("tool_use"))).stop is Stop.END


def test_parallel_calls_come_in_the_order_of_their_index_even_when_interleaved() -> None:
    first, second = tool(0, "a", "read", "{}"), tool(1, "b", "read", "{}")
    mixed = [second[0], first[0], second[1], first[1], second[2], first[2]]
    calls = [one for one in reply(sse(started(), mixed, stopped("tool_use"))).blocks if isinstance(one, ToolCallBlock)]
    assert [one.tool_call_id for one in calls] == ["a", "b"]


def test_usage_is_what_was_said_last_and_its_breakdown_is_kept_raw() -> None:
    breakdown = {"ephemeral_5m_input_tokens": 31490, "ephemeral_1h_input_tokens": 152967}
    opening = started(
        input_tokens=4,
        output_tokens=1,
        cache_read_input_tokens=2455,
        cache_creation_input_tokens=184457,
        cache_creation=breakdown,
    )
    ended = reply(sse(opening, text(0, "Hi"), stopped("end_turn", input_tokens=5, output_tokens=23)))
    assert ended.tokens == Tokens(prompt=5, completion=23, cache_read=2455, cache_creation=184457, raw=ended.tokens.raw)
    assert ended.tokens.raw is not None
    assert ended.tokens.raw["cache_creation"] == breakdown
    assert ended.tokens_known


def test_null_members_never_stop_an_answer() -> None:
    nothing = {"input_tokens": 7, "cache_read_input_tokens": None, "cache_creation": None, "output_tokens": 1}
    stream = sse(
        event("message_start", message={"usage": nothing, "content": None, "stop_reason": None}),
        event("content_block_start", index=0, content_block={"type": "text", "text": None, "citations": None}),
        event("content_block_delta", index=0, delta=None),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": None}),
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hi"}),
        event("content_block_delta", index=0, delta={"type": "citations_delta", "citation": None}),
        event("message_delta", delta=None, usage=None),
        event("message_delta", delta={"stop_reason": "end_turn", "stop_details": None}, usage={"output_tokens": 3}),
        event("message_delta", delta={"stop_reason": None}, usage={"output_tokens": None}),
        event("a_kind_of_tomorrow", anything=None),
        event("message_stop"),
    )
    ended = reply(stream)
    assert ended.blocks == (TextBlock(text="Hi"),)
    assert (ended.tokens.prompt, ended.tokens.completion, ended.tokens.cache_read) == (7, 3, 0)


def test_half_a_surrogate_pair_becomes_a_character_that_can_be_stored() -> None:
    raw = (
        sse(started())
        + b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\\ud83d"}}\n\n'
    )
    raw += sse(tool(1, "t", "read", '{"x":"\\ud83d"}'), stopped("tool_use"))
    ended = heard(raw)[-1]
    assert "a\ufffd" in ended.model_dump_json()
    assert ended.model_dump()["blocks"][1]["input"] == {"x": "\ufffd"}


def test_an_answer_without_usage_says_that_its_tokens_are_unknown() -> None:
    assert not reply(sse(event("message_start", message={}), text(0, "Hi"), stopped("end_turn"))).tokens_known
