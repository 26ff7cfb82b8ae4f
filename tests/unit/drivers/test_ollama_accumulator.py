"""Parts and responses of Ollama's streams. R2 to R6 are the replay scenarios; R1 is in test_chunk_boundaries.py.

PP13 is a silently truncated prompt.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.domain.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.drivers.protocols.ollama_chat.accumulator import OllamaAccumulator
from fermata.drivers.transport.stream_decoders import NdjsonDecoder
from tests.strict.ollama import done_line, encode_ndjson, make_line, text_response, tool_call_line
from tests.unit.drivers import stream_helpers
from tests.unit.drivers.stream_helpers import (
    CHUNK_SPLITTERS,
    ChunkSplitter,
    get_response,
    join_text,
)


def make_accumulator(request: bytes = b"request", expected: int = 0) -> OllamaAccumulator:
    return OllamaAccumulator("ollama", "Ollama", "qwen3", request, expected)


def collect_parts(*chunks: bytes) -> list[StreamPart]:
    return stream_helpers.collect_parts(make_accumulator(), chunks, NdjsonDecoder())


def parse_response(*chunks: bytes) -> ModelResponse:
    return get_response(collect_parts(*chunks))


@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
def test_r2_lines_may_end_with_a_carriage_return_or_not_at_all(cut: ChunkSplitter) -> None:
    for stream in (
        text_response("Hi").replace(b"\n", b"\r\n"),
        text_response("Hi").replace(b"\n", b"\n\n"),
        text_response("Hi")[:-1],
    ):
        assert join_text(collect_parts(*cut(stream))) == "Hi"


@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
def test_r3_an_error_line_is_raised_after_the_parts_before_it(cut: ChunkSplitter) -> None:
    stream = encode_ndjson(make_line("Partial"), {"error": "an error was encountered while running the model"})
    parts, error = stream_helpers.collect_parts_until_error(make_accumulator(), cut(stream), NdjsonDecoder())
    assert parts == [TextDelta(text="Partial")]
    assert (error.code, error.retryable) == ("provider_error", True)
    assert error.message == "Peer stream error: an error was encountered while running the model"


def test_a_stream_without_its_last_line_is_an_error() -> None:
    for stream in (encode_ndjson(make_line("Hello")), text_response("Hello")[:-30]):
        with pytest.raises(ProviderError, match="it ended before the answer was complete"):
            collect_parts(stream)


def test_a_line_that_is_not_json_is_an_error() -> None:
    with pytest.raises(ProviderError, match="not readable"):
        collect_parts(encode_ndjson(make_line("Hel")) + b"{half\n" + encode_ndjson(done_line()))


@pytest.mark.parametrize("arguments", [{}, None, ""], ids=["object", "null", "no text"])
def test_r4_a_call_without_arguments_has_none(arguments: Any) -> None:
    asked = make_line(tool_calls=[{"id": "call_1", "function": {"name": "list_tokens", "arguments": arguments}}])
    only = parse_response(encode_ndjson(asked, done_line()))
    assert only.blocks == (ToolCallBlock(tool_call_id="call_1", tool_name="list_tokens", input={}),)
    assert only.stop is FinishReason.TOOL_CALLS


def test_arguments_written_as_text_are_parsed_or_marked_malformed() -> None:
    asked = [tool_call_line("read", '{"n":1}'), tool_call_line("read", '{"n":')]
    first, second = parse_response(encode_ndjson(*asked, done_line())).blocks
    assert first.model_dump()["input"] == {"n": 1}
    assert second.model_dump()["malformed"] is True


def test_r6_the_limit_is_reported() -> None:
    assert parse_response(encode_ndjson(make_line("Hi"), done_line("length"))).stop is FinishReason.MAX_TOKENS
    assert parse_response(encode_ndjson(tool_call_line("read"), done_line("length"))).stop is FinishReason.MAX_TOKENS


def test_thinking_is_streamed_but_stored_only_with_the_calls_it_led_to() -> None:
    parts = collect_parts(
        encode_ndjson(make_line(thinking="Look "), make_line(thinking="first."), tool_call_line("read"), done_line())
    )
    assert parts[:2] == [ReasoningDelta(text="Look "), ReasoningDelta(text="first.")]
    thought = get_response(parts).blocks[0]
    assert isinstance(thought, ReasoningBlock)
    assert thought.payload == {"thinking": "Look first."}
    assert parse_response(encode_ndjson(make_line(thinking="Hm."), make_line("Yes."), done_line())).blocks == (
        TextBlock(text="Yes."),
    )


def test_several_calls_keep_their_order_and_get_unique_and_stable_ids() -> None:
    stream = encode_ndjson(
        tool_call_line("read", {"n": 1}),
        tool_call_line("read", {"n": 2}),
        tool_call_line("read", {"n": 3}, id="call_9"),
        done_line(),
    )

    def calls(request: bytes) -> list[ToolCallBlock]:
        blocks = get_response(stream_helpers.collect_parts(make_accumulator(request), [stream], NdjsonDecoder())).blocks
        return [block for block in blocks if isinstance(block, ToolCallBlock)]

    assert [call.input["n"] for call in calls(b"one")] == [1, 2, 3]
    ids = [call.tool_call_id for call in calls(b"one")]
    assert len(set(ids)) == 3
    assert ids[2] == "call_9"
    assert ids == [call.tool_call_id for call in calls(b"one")]
    assert ids[0] not in [call.tool_call_id for call in calls(b"two")]


def test_usage_counts_cache_reads_separately() -> None:
    counted = parse_response(
        encode_ndjson(make_line("Hi"), done_line(prompt=900, completion=5, prompt_eval_cached_count=850))
    ).tokens
    assert counted.model_copy(update={"raw": None}) == TokenUsage(
        prompt=900, completion=5, cache_read=850, cached_within=True
    )
    assert counted.context_tokens == 900
    unknown = parse_response(encode_ndjson(make_line("Hi"), done_line(prompt=None, completion=None)))
    assert (unknown.tokens_known, unknown.tokens.prompt) == (False, 0)


@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
def test_pp13_a_silently_truncated_prompt_gives_a_warning(cut: ChunkSplitter) -> None:
    stream = encode_ndjson(make_line("What rules?"), done_line(prompt=2051))
    response = get_response(
        stream_helpers.collect_parts(make_accumulator(expected=15_000), cut(stream), NdjsonDecoder())
    )
    assert response.is_prompt_cut
    assert str(response.warning).startswith("Ollama read only 2051 of about 15000 tokens")


@pytest.mark.parametrize(("prompt", "expected"), [(14_000, 15_000), (9_000, 15_000), (0, 15_000), (300, 1_400)])
def test_pp13_a_complete_or_short_prompt_gives_no_warning(prompt: int, expected: int) -> None:
    stream = encode_ndjson(make_line("Hi"), done_line(prompt=prompt))
    assert (
        get_response(
            stream_helpers.collect_parts(make_accumulator(expected=expected), [stream], NdjsonDecoder())
        ).warning
        is None
    )


@given(st.data())
def test_missing_or_null_members_of_any_line_are_tolerated(data: st.DataObject) -> None:
    lines = [make_line("Hi", thinking="Hm"), tool_call_line("read", {"n": 1})]
    for line in lines:
        message = line["message"]
        for value in (line, message, *message.get("tool_calls", [])):
            for name in data.draw(st.lists(st.sampled_from(sorted(value)), unique=True)):
                value[name] = None
    assert isinstance(parse_response(encode_ndjson(*lines, done_line())), ModelResponse)
