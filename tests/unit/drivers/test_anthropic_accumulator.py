"""Parts and responses of Messages streams. R2 to R10 are the replay scenarios; R1 is in test_chunk_boundaries.py."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from fermata.domain.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.drivers.protocols.anthropic_messages.accumulator import MessagesAccumulator
from fermata.drivers.protocols.response_stream import iter_parts
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.drivers.transport.stream_decoders import SseDecoder
from tests.strict.anthropic import (
    content_block,
    encode_sse,
    make_event,
    message_start,
    message_stop,
    text_block,
    text_response,
    tool_use_block,
)
from tests.unit.drivers.conversation_builders import MODEL
from tests.unit.drivers.stream_helpers import in_single_bytes


def collect_parts(*chunks: bytes) -> list[StreamPart]:
    return list(
        iter_parts(
            "Anthropic",
            ProviderResponse(200, {}, iter(chunks)),
            MessagesAccumulator(MODEL, b"request"),
            "secret-key",
            SseDecoder(),
        )
    )


def get_response(*chunks: bytes) -> ModelResponse:
    last = collect_parts(*chunks)[-1]
    assert isinstance(last, ModelResponse)
    return last


def join_text(parts: Sequence[StreamPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextDelta))


OVERLOADED = make_event("error", error={"type": "overloaded_error", "message": "Overloaded"})


@pytest.mark.parametrize("cut", [lambda stream: [stream], in_single_bytes], ids=["whole", "single bytes"])
def test_r3_an_error_in_the_stream_is_raised_after_the_parts_before_it(cut: Any) -> None:
    stream = encode_sse(message_start(input_tokens=9), text_block(0, "Partial")[:-1], OVERLOADED)
    parts: list[StreamPart] = []
    with pytest.raises(ProviderError) as caught:
        parts.extend(
            iter_parts(
                "Anthropic",
                ProviderResponse(200, {}, iter(cut(stream))),
                MessagesAccumulator(MODEL, b"request"),
                "",
                SseDecoder(),
            )
        )
    assert parts == [TextDelta(text="Partial")]
    assert (caught.value.code, caught.value.retryable) == ("provider_overloaded", True)
    assert caught.value.message == "Anthropic stream error: Overloaded"


def test_r3_an_error_may_be_the_first_event_of_a_stream() -> None:
    with pytest.raises(ProviderError, match="Anthropic stream error: Overloaded"):
        collect_parts(encode_sse(OVERLOADED))


def test_a_stream_that_ends_before_its_stop_reason_is_an_error() -> None:
    stream = text_response("Hello")
    with pytest.raises(ProviderError) as caught:
        collect_parts(stream[: stream.index(b"event: message_delta")])
    assert (caught.value.code, caught.value.retryable) == ("provider_error", True)


def test_a_stream_that_ends_after_its_stop_reason_is_complete() -> None:
    stream = text_response("Hello")
    reply = collect_parts(stream[: stream.index(b"event: message_stop")])[-1]
    assert isinstance(reply, ModelResponse)
    assert (reply.stop, reply.blocks, reply.tokens.completion) == (FinishReason.END, (TextBlock(text="Hello"),), 7)


def test_an_event_that_is_not_json_is_an_error() -> None:
    with pytest.raises(ProviderError, match="not readable"):
        collect_parts(encode_sse(message_start()) + b"data: {half\n\n")


@pytest.mark.parametrize("deltas", [("",), ()], ids=["one empty delta", "no delta"])
def test_r4_a_call_without_argument_text_has_no_arguments(deltas: tuple[str, ...]) -> None:
    stream = encode_sse(
        message_start(),
        make_event("ping"),
        tool_use_block(0, "toolu_1", "list_tokens", *deltas),
        message_stop("tool_use"),
    )
    for chunks in ([stream], in_single_bytes(stream)):
        only = get_response(*chunks)
        assert only.blocks == (ToolCallBlock(tool_call_id="toolu_1", tool_name="list_tokens", input={}),)
        assert only.stop is FinishReason.TOOL_CALLS


@pytest.mark.parametrize(
    "fragment", ['{"file_path":"x"', '{"file_path":"x"}'], ids=["cut off", "reads but may lack more"]
)
def test_r5_a_call_cut_off_by_the_limit_is_marked_malformed(fragment: str) -> None:
    calls = [*tool_use_block(0, "toolu_1", "read", '{"a":1}'), *tool_use_block(1, "toolu_2", "write", fragment)]
    stream = encode_sse(message_start(), calls, message_stop("max_tokens"))
    for chunks in ([stream], in_single_bytes(stream)):
        cut = get_response(*chunks)
        first, second = cut.blocks
        assert cut.stop is FinishReason.MAX_TOKENS
        assert isinstance(first, ToolCallBlock)
        assert first.malformed is None
        assert isinstance(second, ToolCallBlock)
        assert second.malformed is True


@pytest.mark.parametrize("broken", ['{"a": tru', "{'a': 'it's'}", '{"a": NaN}'])
def test_arguments_that_are_not_json_are_marked_malformed_and_left_out(broken: str) -> None:
    only = get_response(
        encode_sse(message_start(), tool_use_block(0, "toolu_1", "read", broken), message_stop("tool_use"))
    ).blocks[0]
    assert isinstance(only, ToolCallBlock)
    assert (only.input, only.malformed) == ({}, True)
    assert broken in (only.problem or "")


def test_arguments_that_are_json_but_no_object_are_left_to_the_validation() -> None:
    only = get_response(
        encode_sse(message_start(), tool_use_block(0, "toolu_1", "read", "[1, 2]"), message_stop("tool_use"))
    ).blocks[0]
    assert only == ToolCallBlock(tool_call_id="toolu_1", tool_name="read", input=[1, 2])


THOUGHT = content_block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "Look "},
    {"type": "thinking_delta", "thinking": "first."},
    {"type": "signature_delta", "signature": "EqQBCgIYAhIk+/=="},
)
REDACTED = content_block(1, {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va+/=="})


def test_r8_a_refusal_may_have_no_text_or_only_thinking() -> None:
    assert get_response(encode_sse(message_start(), message_stop("refusal", output_tokens=2))).blocks == ()
    refused = get_response(encode_sse(message_start(), THOUGHT, message_stop("refusal")))
    assert refused.stop is FinishReason.REFUSAL
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
def test_a_refusal_has_the_providers_reason(details: Any, reason: str | None) -> None:
    stop = make_event("message_delta", delta={"stop_reason": "refusal", "stop_details": details}, usage={})
    assert get_response(encode_sse(message_start(), stop, make_event("message_stop"))).refusal == reason


def test_only_a_refusal_has_a_reason() -> None:
    stop = make_event(
        "message_delta", delta={"stop_reason": "end_turn", "stop_details": {"explanation": "x"}}, usage={}
    )
    assert (
        get_response(encode_sse(message_start(), text_block(0, "Hi"), stop, make_event("message_stop"))).refusal is None
    )


@pytest.mark.parametrize("ids", [("toolu_1", "toolu_1"), ("", ""), (None, None)])
def test_calls_with_the_same_id_or_none_get_unique_and_stable_ids(ids: tuple[Any, Any]) -> None:
    stream = encode_sse(
        message_start(),
        tool_use_block(0, ids[0], "read", "{}"),
        tool_use_block(1, ids[1], "read", "{}"),
        message_stop("tool_use"),
    )
    first, second = (block.model_dump()["tool_call_id"] for block in get_response(stream).blocks)
    assert first
    assert first != second
    assert [block.model_dump()["tool_call_id"] for block in get_response(stream).blocks] == [first, second]


def test_r9_thinking_is_streamed_and_stored_to_the_byte_in_its_place() -> None:
    stream = encode_sse(
        message_start(),
        THOUGHT,
        REDACTED,
        text_block(2, "I read."),
        tool_use_block(3, "toolu_1", "read", "{}"),
        message_stop("tool_use"),
    )
    for chunks in ([stream], in_single_bytes(stream)):
        parts = collect_parts(*chunks)
        assert parts[:2] == [ReasoningDelta(text="Look "), ReasoningDelta(text="first.")]
        thinking, redacted, spoken, called = get_response(*chunks).blocks
        assert isinstance(thinking, ReasoningBlock)
        assert (thinking.provider, thinking.model) == ("anthropic", MODEL)
        assert thinking.payload == {"type": "thinking", "thinking": "Look first.", "signature": "EqQBCgIYAhIk+/=="}
        assert isinstance(redacted, ReasoningBlock)
        assert redacted.payload == {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va+/=="}
        assert [spoken.kind, called.kind] == ["text", "toolCall"]


def test_thinking_that_is_not_shown_still_has_its_signature() -> None:
    hidden = content_block(0, {"type": "thinking", "thinking": "", "signature": ""}, THOUGHT[-2]["delta"])
    parts = collect_parts(encode_sse(message_start(), hidden, text_block(1, "Yes."), message_stop("end_turn")))
    assert [type(part) for part in parts] == [TextDelta, ModelResponse]
    assert json.loads(parts[-1].model_dump_json())["blocks"][0]["payload"]["signature"] == "EqQBCgIYAhIk+/=="


def test_r10_a_text_block_without_text_is_dropped() -> None:
    stream = encode_sse(
        message_start(), text_block(0, ""), tool_use_block(1, "toolu_1", "read", "{}"), message_stop("tool_use")
    )
    for chunks in ([stream], in_single_bytes(stream)):
        assert [block.kind for block in get_response(*chunks).blocks] == ["toolCall"]


def test_blocks_that_only_the_provider_reads_are_stored_unchanged() -> None:
    searching = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    stream = encode_sse(
        message_start(),
        content_block(0, searching, {"type": "input_json_delta", "partial_json": '{"query":"rye"}'}),
        content_block(1, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}),
        message_stop("pause_turn"),
    )
    paused = get_response(stream)
    assert paused.stop is FinishReason.PAUSE
    payloads = [block.payload for block in paused.blocks if isinstance(block, ReasoningBlock)]
    assert payloads[0] == searching | {"input": {"query": "rye"}}
    assert payloads[1]["tool_use_id"] == "srvtoolu_1"


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", FinishReason.END),
        ("stop_sequence", FinishReason.END),
        ("max_tokens", FinishReason.MAX_TOKENS),
        ("model_context_window_exceeded", FinishReason.MAX_TOKENS),
        ("refusal", FinishReason.REFUSAL),
        ("pause_turn", FinishReason.PAUSE),
        ("something_new", FinishReason.END),
        (None, FinishReason.END),
    ],
)
def test_every_stop_reason_is_mapped(reason: str | None, stop: FinishReason) -> None:
    assert get_response(encode_sse(message_start(), text_block(0, "Hi"), message_stop(reason))).stop is stop


def test_calls_count_for_every_stop_reason() -> None:
    assert (
        get_response(encode_sse(message_start(), tool_use_block(0, "t", "read", "{}"), message_stop("end_turn"))).stop
        is FinishReason.TOOL_CALLS
    )
    assert (
        get_response(encode_sse(message_start(), text_block(0, "Hi"), message_stop("tool_use"))).stop
        is FinishReason.END
    )


def test_parallel_calls_come_in_the_order_of_their_index_even_when_interleaved() -> None:
    first, second = tool_use_block(0, "a", "read", "{}"), tool_use_block(1, "b", "read", "{}")
    mixed = [second[0], first[0], second[1], first[1], second[2], first[2]]
    calls = [
        block
        for block in get_response(encode_sse(message_start(), mixed, message_stop("tool_use"))).blocks
        if isinstance(block, ToolCallBlock)
    ]
    assert [block.tool_call_id for block in calls] == ["a", "b"]


def test_the_last_usage_counts_and_its_breakdown_is_stored_raw() -> None:
    breakdown = {"ephemeral_5m_input_tokens": 31490, "ephemeral_1h_input_tokens": 152967}
    opening = message_start(
        input_tokens=4,
        output_tokens=1,
        cache_read_input_tokens=2455,
        cache_creation_input_tokens=184457,
        cache_creation=breakdown,
    )
    ended = get_response(
        encode_sse(opening, text_block(0, "Hi"), message_stop("end_turn", input_tokens=5, output_tokens=23))
    )
    assert ended.tokens == TokenUsage(
        prompt=5, completion=23, cache_read=2455, cache_creation=184457, raw=ended.tokens.raw
    )
    assert ended.tokens.raw is not None
    assert ended.tokens.raw["cache_creation"] == breakdown
    assert ended.tokens_known


def test_null_members_never_stop_an_answer() -> None:
    nothing = {"input_tokens": 7, "cache_read_input_tokens": None, "cache_creation": None, "output_tokens": 1}
    stream = encode_sse(
        make_event("message_start", message={"usage": nothing, "content": None, "stop_reason": None}),
        make_event("content_block_start", index=0, content_block={"type": "text", "text": None, "citations": None}),
        make_event("content_block_delta", index=0, delta=None),
        make_event("content_block_delta", index=0, delta={"type": "text_delta", "text": None}),
        make_event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hi"}),
        make_event("content_block_delta", index=0, delta={"type": "citations_delta", "citation": None}),
        make_event("message_delta", delta=None, usage=None),
        make_event(
            "message_delta", delta={"stop_reason": "end_turn", "stop_details": None}, usage={"output_tokens": 3}
        ),
        make_event("message_delta", delta={"stop_reason": None}, usage={"output_tokens": None}),
        make_event("a_kind_of_tomorrow", anything=None),
        make_event("message_stop"),
    )
    ended = get_response(stream)
    assert ended.blocks == (TextBlock(text="Hi"),)
    assert (ended.tokens.prompt, ended.tokens.completion, ended.tokens.cache_read) == (7, 3, 0)


def test_a_lone_surrogate_is_replaced() -> None:
    raw = (
        encode_sse(message_start())
        + b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\\ud83d"}}\n\n'
    )
    raw += encode_sse(tool_use_block(1, "t", "read", '{"x":"\\ud83d"}'), message_stop("tool_use"))
    ended = collect_parts(raw)[-1]
    assert "a\ufffd" in ended.model_dump_json()
    assert ended.model_dump()["blocks"][1]["input"] == {"x": "\ufffd"}


def test_an_answer_without_usage_says_that_its_tokens_are_unknown() -> None:
    assert not get_response(
        encode_sse(make_event("message_start", message={}), text_block(0, "Hi"), message_stop("end_turn"))
    ).tokens_known
