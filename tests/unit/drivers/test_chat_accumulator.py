"""Parts and responses of chat-completions streams. R2 to R8 are the replay scenarios (R1: test_chunk_boundaries.py)."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.domain.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.drivers.protocols.chat_completions.accumulator import ChatAccumulator
from fermata.drivers.protocols.finish_reasons import CONTENT_FILTER_REASON
from tests.strict.chat import encode_sse, make_chunk, text_chunks, text_response, tool_call_chunks, usage_chunk
from tests.unit.drivers import stream_helpers
from tests.unit.drivers.stream_helpers import (
    CHUNK_SPLITTERS,
    ChunkSplitter,
    get_response,
    join_text,
)

MODEL = "some-model"


def make_accumulator(request: bytes = b"request", expected: int = 0) -> ChatAccumulator:
    return ChatAccumulator("openai-compatible", "Peer", MODEL, request, expected)


def collect_parts(*chunks: bytes) -> list[StreamPart]:
    return stream_helpers.collect_parts(make_accumulator(), chunks)


def parse_response(*chunks: bytes) -> ModelResponse:
    return get_response(collect_parts(*chunks))


@pytest.mark.parametrize("end", ["\r\n", "\r"])
@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
def test_r2_lines_may_end_in_any_way(end: str, cut: ChunkSplitter) -> None:
    stream = text_response("Hi").replace(b"\n", end.encode()).replace(b"data: ", b"data:")
    assert join_text(collect_parts(*cut(stream))) == "Hi"


@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
@pytest.mark.parametrize(
    ("trouble", "code", "retryable"),
    [
        ({"error": {"message": "Sorry", "code": 502}, "choices": []}, "provider_error", True),
        ({"error": {"message": "Sorry", "code": "429"}}, "provider_quota", True),
        ({"error": {"message": "Sorry", "type": "overloaded_error"}}, "provider_overloaded", True),
        ({"error": {"message": "Sorry", "code": 401}}, "provider_auth", False),
        ({"error": "Sorry"}, "provider_error", False),
    ],
)
def test_r3_an_error_in_the_stream_is_raised_after_the_parts_before_it(
    trouble: dict[str, Any], code: str, retryable: bool, cut: ChunkSplitter
) -> None:
    parts, error = stream_helpers.collect_parts_until_error(
        make_accumulator(), cut(encode_sse(text_chunks("Partial"), trouble))
    )
    assert parts == [TextDelta(text="Partial")]
    assert (error.code, error.retryable, error.message) == (code, retryable, "Peer stream error: Sorry")


def test_an_error_as_the_finish_reason_is_an_error() -> None:
    _, error = stream_helpers.collect_parts_until_error(
        make_accumulator(), [encode_sse(text_chunks("Partial"), make_chunk({}, "error"))]
    )
    assert (error.code, error.retryable) == ("provider_error", True)


def test_a_stream_that_ends_without_a_reason_is_an_error() -> None:
    _, error = stream_helpers.collect_parts_until_error(
        make_accumulator(), [encode_sse(text_chunks("Hello"), done=False)]
    )
    assert (error.code, error.retryable) == ("provider_error", True)


@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
def test_a_stream_may_end_after_its_finish_reason(cut: ChunkSplitter) -> None:
    """Some servers forget the done marker or its blank line, or cut the connection."""
    stream = encode_sse(text_chunks("Hello"), make_chunk({}, "stop"), usage_chunk(7, 3), done=False)
    assert parse_response(*cut(stream)).tokens.prompt == 7
    assert parse_response(*cut(stream[:-2])).tokens.prompt == 7


def test_a_connection_lost_after_the_finish_reason_is_a_normal_end() -> None:
    def broken(code: str, *stream: bytes) -> Iterator[bytes]:
        yield from stream
        raise ProviderError(code, "lost", retryable=True)

    finished = encode_sse(text_chunks("Hello"), make_chunk({}, "stop"), done=False)
    assert get_response(
        stream_helpers.collect_parts(make_accumulator(), broken("provider_unreachable", finished))
    ).blocks == (TextBlock(text="Hello"),)
    for code, stream in (
        ("provider_unreachable", encode_sse(text_chunks("Hello"), done=False)),
        ("provider_closed", finished),
    ):
        _, error = stream_helpers.collect_parts_until_error(make_accumulator(), broken(code, stream))
        assert error.code == code


def test_what_follows_the_done_marker_is_ignored() -> None:
    assert join_text(collect_parts(text_response("a") + text_response("b"))) == "a"


@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
@pytest.mark.parametrize("deltas", [("",), ()], ids=["one empty delta", "no delta"])
def test_r4_a_call_without_argument_text_has_no_arguments(deltas: tuple[str, ...], cut: ChunkSplitter) -> None:
    only = parse_response(
        *cut(encode_sse(tool_call_chunks(0, "call_1", "list_tokens", *deltas), make_chunk({}, "tool_calls")))
    )
    assert only.blocks == (ToolCallBlock(tool_call_id="call_1", tool_name="list_tokens", input={}),)
    assert only.stop is FinishReason.TOOL_CALLS


@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
@pytest.mark.parametrize("fragment", ['{"file_path":"x"', '{"file_path":"x"}'], ids=["cut off", "may lack more"])
def test_r5_and_r6_a_call_cut_off_by_the_limit_is_marked_malformed(fragment: str, cut: ChunkSplitter) -> None:
    asked = [
        *tool_call_chunks(0, "call_1", "read", '{"a":1}'),
        *tool_call_chunks(1, "call_2", "write", fragment[:6], fragment[6:]),
    ]
    stopped = parse_response(*cut(encode_sse(asked, make_chunk({}, "length"))))
    assert stopped.stop is FinishReason.MAX_TOKENS
    assert [block.model_dump()["malformed"] for block in stopped.blocks] == [None, True]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", FinishReason.END),
        ("length", FinishReason.MAX_TOKENS),
        ("model_length", FinishReason.MAX_TOKENS),
        ("content_filter", FinishReason.REFUSAL),
        ("tool_calls", FinishReason.END),
        ("something_new", FinishReason.END),
    ],
)
def test_every_stop_reason_is_mapped(reason: str, stop: FinishReason) -> None:
    assert parse_response(encode_sse(text_chunks("Hi"), make_chunk({}, reason))).stop is stop


def test_calls_count_for_every_stop_reason() -> None:
    assert (
        parse_response(encode_sse(tool_call_chunks(0, "c", "read", "{}"), make_chunk({}, "stop"))).stop
        is FinishReason.TOOL_CALLS
    )


def test_r8_a_refusal_is_recognized() -> None:
    refused = parse_response(encode_sse(make_chunk({"refusal": "I can't."}), make_chunk({}, "stop")))
    assert (refused.stop, refused.blocks) == (FinishReason.REFUSAL, (TextBlock(text="I can't."),))
    assert refused.refusal == "I can't."
    filtered = parse_response(encode_sse(make_chunk({"content": ""}), make_chunk({}, "content_filter")))
    assert (filtered.stop, filtered.blocks, filtered.refusal) == (FinishReason.REFUSAL, (), CONTENT_FILTER_REASON)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_r9_reasoning_is_streamed_and_stored_in_the_field_it_came_in(name: str) -> None:
    parts = collect_parts(
        encode_sse(
            make_chunk({name: "Look "}), make_chunk({name: "first."}), text_chunks("Yes."), make_chunk({}, "stop")
        )
    )
    assert parts[:2] == [ReasoningDelta(text="Look "), ReasoningDelta(text="first.")]
    thought = get_response(parts).blocks[0]
    assert isinstance(thought, ReasoningBlock)
    assert (thought.provider, thought.model, thought.payload) == (
        "openai-compatible",
        MODEL,
        {name: "Look first."},
    )


def test_reasoning_that_comes_in_two_fields_is_streamed_once() -> None:
    assert collect_parts(
        encode_sse(make_chunk({"reasoning": "Hm", "reasoning_content": "Hm"}), make_chunk({}, "stop"))
    )[:-1] == [ReasoningDelta(text="Hm")]


def test_content_may_be_a_list_with_reasoning_in_it() -> None:
    content = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Yes."}]
    parts = collect_parts(
        encode_sse(make_chunk({"content": content}), make_chunk({"content": ["Al", "so"]}), make_chunk({}, "stop"))
    )
    assert [part.text for part in parts if not isinstance(part, ModelResponse)] == ["Hm.", "Yes.", "Al", "so"]


def test_the_signature_of_a_call_is_stored_before_it() -> None:
    signed = {"google": {"thought_signature": "c2ln"}}
    first = {"index": 0, "id": "c1", "extra_content": signed, "function": {"name": "read", "arguments": "{}"}}
    second = {"index": 1, "id": "c2", "function": {"name": "read", "arguments": "{}"}}
    marker, *both = parse_response(
        encode_sse(make_chunk({"tool_calls": [first, second]}), make_chunk({}, "tool_calls"))
    ).blocks
    assert isinstance(marker, ReasoningBlock)
    assert marker.payload == {"extra_content": signed}
    assert [block.kind for block in both] == ["toolCall", "toolCall"]


def call_inputs(stream: bytes) -> list[Any]:
    return [block.input for block in parse_response(stream).blocks if isinstance(block, ToolCallBlock)]


def test_parallel_calls_come_in_the_order_of_their_index_even_when_interleaved() -> None:
    first, second = tool_call_chunks(0, "a", "read", '{"n":', "1}"), tool_call_chunks(1, "b", "read", '{"n":', "2}")
    mixed = [second[0], first[0], second[1], first[1], first[2], second[2]]
    assert call_inputs(encode_sse(mixed, make_chunk({}, "tool_calls"))) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("index", [None, 0], ids=["no index", "always the first"])
@pytest.mark.parametrize("ids", [("a", "b"), (None, None)], ids=["ids", "no ids"])
def test_calls_that_share_an_index_are_distinguished(index: int | None, ids: tuple[str | None, str | None]) -> None:
    asked = [
        *tool_call_chunks(index, ids[0], "read", '{"n":', "1}"),
        *tool_call_chunks(index, ids[1], "read", '{"n":', "2}"),
    ]
    assert call_inputs(encode_sse(asked, make_chunk({}, "tool_calls"))) == [{"n": 1}, {"n": 2}]


def test_calls_without_ids_get_unique_and_stable_ids() -> None:
    asked = [
        *tool_call_chunks(0, None, "read"),
        *tool_call_chunks(1, None, "read"),
        *tool_call_chunks(2, "x", "read"),
        *tool_call_chunks(3, "x", "read"),
    ]
    stream = encode_sse(asked, make_chunk({}, "tool_calls"))

    def ids(request: bytes) -> list[str]:
        blocks = get_response(stream_helpers.collect_parts(make_accumulator(request), [stream])).blocks
        return [block.tool_call_id for block in blocks if isinstance(block, ToolCallBlock)]

    assert len(set(ids(b"one"))) == 4
    assert ids(b"one") == ids(b"one")
    assert set(ids(b"one")) & set(ids(b"two")) == {"x", "x_2"}


def test_an_id_repeated_in_every_chunk_begins_no_new_call() -> None:
    asked = [
        make_chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": name, "arguments": text}}]})
        for name, text in (("read", '{"n":'), ("read", "1}"))
    ]
    assert call_inputs(encode_sse(asked, make_chunk({}, "tool_calls"))) == [{"n": 1}]


def test_arguments_may_be_an_object() -> None:
    call = {"id": "a", "function": {"name": "read", "arguments": {"n": 1}}}
    assert call_inputs(encode_sse(make_chunk({"tool_calls": [call]}), make_chunk({}, "tool_calls"))) == [{"n": 1}]


def test_an_empty_call_is_dropped() -> None:
    assert parse_response(encode_sse(make_chunk({"tool_calls": [{}, None]}), make_chunk({}, "stop"))).blocks == ()


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 400}}, TokenUsage(prompt=1000, completion=5, cache_read=400)),
        (
            {"prompt_tokens_details": {"cached_tokens": 400, "cache_write_tokens": 100}},
            TokenUsage(prompt=1000, completion=5, cache_read=400, cache_creation=100),
        ),
        ({"prompt_cache_hit_tokens": 400}, TokenUsage(prompt=1000, completion=5, cache_read=400)),
        ({"cached_tokens": 400, "prompt_tokens_details": None}, TokenUsage(prompt=1000, completion=5, cache_read=400)),
        ({"prompt_tokens_details": {"cached_tokens": 2000}}, TokenUsage(prompt=1000, completion=5, cache_read=2000)),
        ({"prompt_tokens_details": "none"}, TokenUsage(prompt=1000, completion=5)),
    ],
)
def test_usage_counts_cache_reads_and_writes_separately(usage: dict[str, Any], tokens: TokenUsage) -> None:
    counted = parse_response(
        encode_sse(text_chunks("Hi"), make_chunk({}, "stop"), usage_chunk(1000, 5, **usage))
    ).tokens
    assert counted.model_copy(update={"raw": None}) == tokens.model_copy(
        update={"cached_within": 0 < tokens.cache_read <= tokens.prompt}
    )


def test_repeated_usage_counts_once_and_missing_usage_is_unknown() -> None:
    running = [make_chunk({"content": "a"}, usage={"prompt_tokens": 9, "completion_tokens": at}) for at in range(3)]
    assert parse_response(encode_sse(running, make_chunk({}, "stop"))).tokens.completion == 2
    assert not parse_response(encode_sse(text_chunks("Hi"), make_chunk({}, "stop"))).tokens_known


def test_a_silently_truncated_prompt_gives_a_warning() -> None:
    stream = encode_sse(text_chunks("Hi"), make_chunk({}, "stop"), usage_chunk(2051, 5))
    warned = get_response(stream_helpers.collect_parts(make_accumulator(expected=15_000), [stream])).warning
    assert warned is not None
    assert "2051 of about 15000 tokens" in warned
    assert get_response(stream_helpers.collect_parts(make_accumulator(expected=2500), [stream])).warning is None


def test_other_choices_and_null_members_never_stop_an_answer() -> None:
    stream = encode_sse(
        {"id": None, "choices": None, "usage": None, "error": None},
        {"choices": [None, {"index": None, "delta": None, "finish_reason": None, "logprobs": None}]},
        make_chunk({"content": None, "tool_calls": None, "refusal": None, "role": None, "reasoning": None}),
        make_chunk({"tool_calls": [{"index": None, "id": None, "type": None, "function": None}]}),
        make_chunk({"content": "Hi"}),
        {"choices": [{"index": 1, "delta": {"content": "other"}}]},
        make_chunk(None, "stop"),
    )
    assert parse_response(stream).blocks == (TextBlock(text="Hi"),)


@given(st.data())
def test_missing_or_null_members_of_any_chunk_are_tolerated(data: st.DataObject) -> None:
    chunks = [*text_chunks("Hi"), *tool_call_chunks(0, "c", "read", "{}"), make_chunk({"reasoning": "Hm"})]
    for chunk in chunks:
        choice = chunk["choices"][0]
        for value in (choice, choice["delta"], *choice["delta"].get("tool_calls", [])):
            for name in data.draw(st.lists(st.sampled_from(sorted(value)), unique=True)) if value else []:
                value[name] = None
    assert isinstance(parse_response(encode_sse(chunks, make_chunk({}, "stop"))), ModelResponse)
