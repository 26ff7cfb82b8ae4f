"""Parts and responses of Responses streams. R2 to R10 are the replay scenarios; R1 is in test_chunk_boundaries.py."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.domain.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import FinishReason, ModelResponse, ReasoningDelta, StreamPart, TextDelta, TokenUsage
from fermata.drivers.protocols.finish_reasons import CONTENT_FILTER_REASON
from fermata.drivers.protocols.openai_responses.accumulator import ResponsesAccumulator
from tests.strict.openai import (
    encode_sse,
    function_call_events,
    make_event,
    make_usage,
    message_events,
    reasoning_events,
    response_created,
    response_ended,
    text_response,
)
from tests.unit.drivers import stream_helpers
from tests.unit.drivers.stream_helpers import (
    CHUNK_SPLITTERS,
    ChunkSplitter,
    get_response,
    in_single_bytes,
    join_text,
)

MODEL = "gpt-5.2"


def make_accumulator(request: bytes = b"request") -> ResponsesAccumulator:
    return ResponsesAccumulator("openai", MODEL, request)


def collect_parts(*chunks: bytes) -> list[StreamPart]:
    return stream_helpers.collect_parts(make_accumulator(), chunks)


def parse_response(*chunks: bytes) -> ModelResponse:
    return get_response(collect_parts(*chunks))


@pytest.mark.parametrize(
    "chunks",
    [
        [b'data: {"type":"response.completed",\r', b'\ndata: "response":{"status":"completed"}}\r\n\r\n'],
        [b'data:{"type":"response.completed","response":{"status":"completed"}}\n\n'],
        [b'data: {"type":"response.completed","response":{"status":"completed"}}\r\r'],
    ],
    ids=["CR and LF apart", "no blank after the colon", "bare CR"],
)
@pytest.mark.parametrize("cut", [lambda stream: stream, in_single_bytes], ids=["as named", "single bytes"])
def test_r2_one_completed_event_however_its_lines_end(chunks: list[bytes], cut: Any) -> None:
    chunks = [part for chunk in chunks for part in ([chunk] if cut is not in_single_bytes else in_single_bytes(chunk))]
    assert collect_parts(*chunks) == [
        ModelResponse(blocks=(), stop=FinishReason.END, tokens=TokenUsage(), tokens_known=False)
    ]


FAILED = {"code": "server_error", "message": "Sorry"}
OVERLOADED = {"type": "service_unavailable_error", "code": "server_is_overloaded", "message": "Sorry"}


@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
@pytest.mark.parametrize(
    ("trouble", "code", "retryable"),
    [
        (make_event("error", code="server_error", message="Sorry", param=None), "provider_error", True),
        (make_event("error", error=OVERLOADED), "provider_overloaded", True),
        (response_ended("failed", error=FAILED, usage=None), "provider_error", True),
        (response_ended("failed", error={"code": "rate_limit_exceeded", "message": "Sorry"}), "provider_quota", True),
        (
            response_ended("failed", error={"code": "context_length_exceeded", "message": "Sorry"}),
            "provider_overflow",
            False,
        ),
        (make_event("error", code=502, message="Sorry"), "provider_error", True),
    ],
)
def test_r3_an_error_in_the_stream_is_raised_after_the_parts_before_it(
    trouble: dict[str, Any], code: str, retryable: bool, cut: ChunkSplitter
) -> None:
    stream = encode_sse(response_created(), message_events(0, "Partial")[:-1], trouble)
    parts, error = stream_helpers.collect_parts_until_error(make_accumulator(), cut(stream))
    assert parts == [TextDelta(text="Partial")]
    assert (error.code, error.retryable, error.message) == (code, retryable, "Peer stream error: Sorry")


def test_a_failure_without_a_reason_is_still_a_failure() -> None:
    for trouble in (response_ended("failed", error=None, usage=None), response_ended("cancelled"), make_event("error")):
        with pytest.raises(ProviderError, match="stream error: "):
            collect_parts(encode_sse(response_created(), trouble))


def test_a_stream_that_ends_before_its_last_event_is_an_error_even_when_it_says_done() -> None:
    stream = encode_sse(response_created(), message_events(0, "Hello"))
    for end in (b"", b"data: [DONE]\n\n"):
        with pytest.raises(ProviderError) as caught:
            collect_parts(stream + end)
        assert (caught.value.code, caught.value.retryable) == ("provider_error", True)


@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
@pytest.mark.parametrize("deltas", [("",), ()], ids=["one empty delta", "no delta"])
def test_r4_a_call_without_argument_text_has_no_arguments(deltas: tuple[str, ...], cut: ChunkSplitter) -> None:
    only = parse_response(
        *cut(
            encode_sse(response_created(), function_call_events(0, "call_1", "list_tokens", *deltas), response_ended())
        )
    )
    assert only.blocks == (ToolCallBlock(tool_call_id="call_1", tool_name="list_tokens", input={}),)
    assert only.stop is FinishReason.TOOL_CALLS


INCOMPLETE = {"reason": "max_output_tokens"}


@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
@pytest.mark.parametrize("fragment", ['{"file_path":"x"', '{"file_path":"x"}'], ids=["cut off", "may lack more"])
def test_r5_and_r6_a_call_cut_off_by_the_limit_is_marked_malformed(fragment: str, cut: ChunkSplitter) -> None:
    first, second = fragment[:6], fragment[6:]
    calls = [
        *function_call_events(0, "call_1", "read", '{"a":1}'),
        *function_call_events(1, "call_2", "write", first, second, done=False),
    ]
    stopped = parse_response(
        *cut(encode_sse(response_created(), calls, response_ended("incomplete", incomplete_details=INCOMPLETE)))
    )
    whole_one, cut_one = stopped.blocks
    assert stopped.stop is FinishReason.MAX_TOKENS
    assert isinstance(whole_one, ToolCallBlock)
    assert isinstance(cut_one, ToolCallBlock)
    assert (whole_one.malformed, cut_one.malformed) == (None, True)


def test_an_item_with_status_incomplete_is_not_done() -> None:
    *beginning, finished = function_call_events(0, "call_1", "write", '{"a":1}')
    finished = finished | {"item": finished["item"] | {"status": "incomplete"}}
    stopped = parse_response(
        encode_sse(
            response_created(),
            beginning,
            finished,
            function_call_events(1, "call_2", "read"),
            response_ended("incomplete"),
        )
    )
    assert [block.model_dump()["malformed"] for block in stopped.blocks] == [True, True]


@pytest.mark.parametrize("broken", ['{"a": tru', "{'a': 'it's'}", '{"a": NaN}'])
def test_arguments_that_are_not_json_are_marked_malformed_and_left_out(broken: str) -> None:
    only = parse_response(
        encode_sse(response_created(), function_call_events(0, "call_1", "read", broken), response_ended())
    ).blocks[0]
    assert isinstance(only, ToolCallBlock)
    assert (only.input, only.malformed) == ({}, True)
    assert broken in (only.problem or "")


@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
def test_r8_a_refusal_is_recognized_with_and_without_text(cut: ChunkSplitter) -> None:
    spoken = [
        make_event("response.output_item.added", output_index=0, item={"type": "message", "content": []}),
        make_event("response.refusal.delta", output_index=0, delta="I can't."),
        make_event(
            "response.output_item.done",
            output_index=0,
            item={"type": "message", "content": [{"type": "refusal", "refusal": "I can't."}]},
        ),
    ]
    refused = parse_response(*cut(encode_sse(response_created(), spoken, response_ended())))
    assert (refused.stop, refused.blocks) == (FinishReason.REFUSAL, (TextBlock(text="I can't."),))
    assert refused.refusal == "I can't."
    filtered = parse_response(
        *cut(
            encode_sse(
                response_created(), response_ended("incomplete", incomplete_details={"reason": "content_filter"})
            )
        )
    )
    assert (filtered.stop, filtered.blocks) == (FinishReason.REFUSAL, ())
    assert filtered.refusal == CONTENT_FILTER_REASON


@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
def test_r9_reasoning_is_streamed_and_stored_as_its_completed_item(cut: ChunkSplitter) -> None:
    stream = encode_sse(
        response_created(),
        reasoning_events(0, "Look ", "first."),
        message_events(1, "I read."),
        function_call_events(2, "c", "read"),
        response_ended(),
    )
    parts = collect_parts(*cut(stream))
    assert parts[:2] == [ReasoningDelta(text="Look "), ReasoningDelta(text="\n\nfirst.")]
    thought, spoken, called = get_response(parts).blocks
    assert isinstance(thought, ReasoningBlock)
    assert (thought.provider, thought.model) == ("openai", MODEL)
    assert thought.payload == {
        "id": "rs_0",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Look "}, {"type": "summary_text", "text": "first."}],
        "encrypted_content": "gAAAA",
    }
    assert [spoken.kind, called.kind] == ["text", "toolCall"]


def test_incomplete_or_empty_reasoning_is_dropped() -> None:
    half = reasoning_events(0, "Look")[:-1]
    empty = reasoning_events(1, sealed="")
    assert parse_response(
        encode_sse(response_created(), half, empty, message_events(2, "Yes."), response_ended())
    ).blocks == (TextBlock(text="Yes."),)


def test_plain_reasoning_text_is_streamed_too() -> None:
    delta = make_event("response.reasoning_text.delta", output_index=0, content_index=0, delta="Hm.")
    assert collect_parts(encode_sse(response_created(), delta, message_events(1, "Yes."), response_ended()))[
        0
    ] == ReasoningDelta(text="Hm.")


def test_the_phase_of_a_message_is_stored() -> None:
    marker, spoken = parse_response(
        encode_sse(response_created(), message_events(0, "Let me look.", phase="commentary"), response_ended())
    ).blocks
    assert isinstance(marker, ReasoningBlock)
    assert marker.payload == {"type": "message", "phase": "commentary"}
    assert spoken == TextBlock(text="Let me look.")


@pytest.mark.parametrize("cut", CHUNK_SPLITTERS)
def test_r10_a_message_without_text_is_dropped(cut: ChunkSplitter) -> None:
    stream = encode_sse(
        response_created(), message_events(0, ""), function_call_events(1, "call_1", "read"), response_ended()
    )
    assert [block.kind for block in parse_response(*cut(stream)).blocks] == ["toolCall"]


def test_text_that_no_delta_brought_is_streamed_when_its_item_is_done() -> None:
    *_, finished = message_events(0, "All of it.")
    assert join_text(collect_parts(encode_sse(response_created(), finished, response_ended()))) == "All of it."
    began, first, *_ = message_events(0, "All ", "of it.")
    parts = collect_parts(encode_sse(response_created(), began, first, finished, response_ended()))
    assert [part.text for part in parts if isinstance(part, TextDelta)] == ["All ", "of it."]


def test_items_that_only_the_last_event_has_are_not_lost() -> None:
    output = [
        {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}], "status": "completed"},
        {"type": "function_call", "id": "f", "call_id": "call_1", "name": "read", "arguments": '{"a":1}'},
    ]
    parts = collect_parts(encode_sse(response_created(), response_ended(output=output)))
    assert join_text(parts) == "Hi"
    assert get_response(parts).stop is FinishReason.TOOL_CALLS
    assert get_response(parts).blocks[1] == ToolCallBlock(tool_call_id="call_1", tool_name="read", input={"a": 1})


def test_the_last_event_repeats_nothing() -> None:
    output = [
        item["item"] for item in (message_events(0, "Hi")[-1], function_call_events(1, "call_1", "read", '{"a":1}')[-1])
    ]
    stream = encode_sse(
        response_created(),
        message_events(0, "Hi"),
        function_call_events(1, "call_1", "read", '{"a":1}'),
        response_ended(output=output),
    )
    parts = collect_parts(stream)
    assert join_text(parts) == "Hi"
    assert len(get_response(parts).blocks) == 2


def test_items_without_an_index_are_distinguished_by_their_ids() -> None:
    def placeless(events: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
        return [event | {"output_index": None, "item_id": name} for event in events]

    first = placeless(function_call_events(0, "a", "read", '{"n":', "1}"), "fc_a")
    second = placeless(function_call_events(0, "b", "read", '{"n":', "2}"), "fc_b")
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    inputs = [
        block.model_dump()["input"]
        for block in parse_response(encode_sse(response_created(), mixed, response_ended())).blocks
    ]
    assert inputs == [{"n": 1}, {"n": 2}]


def test_interleaved_parallel_calls_are_distinguished() -> None:
    first, second = (
        function_call_events(0, "call_a", "read", '{"a"', ":1}"),
        function_call_events(1, "call_b", "read", '{"b"', ":2}"),
    )
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    blocks = parse_response(encode_sse(response_created(), mixed, response_ended())).blocks
    assert [(block.tool_call_id, block.input) for block in blocks if isinstance(block, ToolCallBlock)] == [
        ("call_a", {"a": 1}),
        ("call_b", {"b": 2}),
    ]


def test_calls_without_ids_get_unique_and_stable_ids() -> None:
    nameless = [
        *function_call_events(0, None, "read"),
        *function_call_events(1, None, "read"),
        *function_call_events(2, "x", "read"),
        *function_call_events(3, "x", "read"),
    ]
    for one in nameless:
        if "item" in one:
            one["item"].pop("id")
    stream = encode_sse(response_created(), nameless, response_ended())
    ids = [block.model_dump()["tool_call_id"] for block in parse_response(stream).blocks]
    assert len(set(ids)) == 4
    assert ids[2:] == ["x", "x_2"]
    assert ids == [block.model_dump()["tool_call_id"] for block in parse_response(stream).blocks]
    other = stream_helpers.collect_parts(make_accumulator(b"another request"), [stream])
    assert {block.model_dump()["tool_call_id"] for block in get_response(other).blocks} & set(ids) == {"x", "x_2"}


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (make_usage(1000, 20, 400), TokenUsage(prompt=1000, completion=20, cache_read=400)),
        (
            make_usage(3438, 9, 3423, input_tokens_details={"cached_tokens": 3423, "cache_write_tokens": 12}),
            (3438, 9, 3423, 12),
        ),
        (make_usage(100, 20, 900), TokenUsage(prompt=100, completion=20, cache_read=900)),
        ({"input_tokens": 7, "output_tokens": None, "input_tokens_details": None}, TokenUsage(prompt=7)),
        ({"input_tokens": "7", "output_tokens": True}, TokenUsage()),
    ],
)
def test_usage_counts_cache_reads_and_writes_separately(usage: dict[str, Any], tokens: Any) -> None:
    counted = parse_response(
        encode_sse(response_created(), message_events(0, "Hi"), response_ended(usage=usage))
    ).tokens
    if isinstance(tokens, tuple):
        tokens = TokenUsage(prompt=tokens[0], completion=tokens[1], cache_read=tokens[2], cache_creation=tokens[3])
    assert counted.model_copy(update={"raw": None}) == tokens.model_copy(
        update={"cached_within": 0 < tokens.cache_read <= tokens.prompt}
    )
    assert counted.context_tokens == tokens.prompt + (tokens.cache_read if tokens.cache_read > tokens.prompt else 0)


def test_an_answer_without_usage_says_that_its_tokens_are_unknown() -> None:
    assert not parse_response(
        encode_sse(response_created(), message_events(0, "Hi"), response_ended(usage=None))
    ).tokens_known
    assert parse_response(text_response()).tokens_known


def test_null_members_never_stop_an_answer() -> None:
    stream = encode_sse(
        make_event("response.created", response=None),
        make_event("response.output_item.added", output_index=0, item=None),
        make_event("response.output_item.added", output_index=0, item={"type": None, "content": None, "id": None}),
        make_event("response.content_part.added", part=None),
        make_event("response.output_text.delta", output_index=None, content_index=None, delta=None, logprobs=None),
        make_event("response.output_text.delta", output_index=0, delta="Hi"),
        make_event("response.output_text.annotation.added", annotation=None),
        make_event("response.function_call_arguments.delta", output_index=1, delta=None),
        make_event("response.reasoning_summary_text.delta", output_index=2, summary_index=None, delta=None),
        make_event("a_kind_of_tomorrow", anything=None),
        {"type": None},
        make_event(
            "response.completed", response={"usage": None, "output": None, "incomplete_details": None, "error": None}
        ),
    )
    assert TextBlock(text="Hi") in parse_response(stream).blocks


def test_a_lone_surrogate_is_replaced() -> None:
    delta = b'data: {"type":"response.output_text.delta","output_index":0,"delta":"a\\ud83d"}\n\n'
    arguments = json.dumps(function_call_events(1, "c", "read", '{"x":"\\ud83d"}')[-1])
    stream = encode_sse(response_created()) + delta + f"data: {arguments}\n\n".encode() + encode_sse(response_ended())
    ended_well = get_response(collect_parts(stream))
    assert "a\ufffd" in ended_well.model_dump_json()
    assert ended_well.blocks[1].model_dump()["input"] == {"x": "\ufffd"}


@given(st.data())
def test_missing_or_null_members_of_any_event_are_tolerated(data: st.DataObject) -> None:
    """Gateways leave members out; the fold goes on and ends."""
    events = [
        response_created(),
        *message_events(0, "Hi"),
        *reasoning_events(1, "Hm"),
        *function_call_events(2, "c", "read", "{}"),
    ]
    hurt = []
    for one in events:
        names = sorted(name for name in one if name != "type")
        lost = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
        hurt.append({name: None if name in lost else value for name, value in one.items()})
    assert isinstance(parse_response(encode_sse(*hurt, response_ended())), ModelResponse)
