"""What comes out of streamed chat completions, from servers of every make. R1 to R8 are the replay scenarios."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.drivers.chat.fold import Draft
from fermata.drivers.failures import FILTERED
from fermata.words.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.words.errors import ProviderError
from fermata.words.model import Piece, ReasoningDelta, Reply, Stop, TextDelta, Tokens
from tests.strict.chat import answer, calls, chunk, says, sse, used
from tests.unit.drivers import hearing
from tests.unit.drivers.hearing import CUTS, Cut, around, last, said, singly, whole

MODEL = "some-model"
R1 = sse(says("那个", "你好🦀"), calls(0, "call_1", "weather", '{"city":"杭', '州"}'), chunk({}, "tool_calls"), used())


def draft(request: bytes = b"request", expected: int = 0) -> Draft:
    return Draft("openai-compatible", "Peer", MODEL, request, expected)


def heard(*chunks: bytes) -> list[Piece]:
    return hearing.heard(draft(), chunks)


def reply(*chunks: bytes) -> Reply:
    return last(heard(*chunks))


@pytest.mark.parametrize(
    "chunks",
    [whole(R1), singly(R1), around(R1, "那", 1), around(R1, "🦀", 2), around(R1, "杭", 1)],
    ids=["whole", "single bytes", "E9|82A3", "F09F|A680", "in the arguments"],
)
def test_r1_characters_cut_in_two_arrive_whole(chunks: list[bytes]) -> None:
    pieces = heard(*chunks)
    assert said(pieces) == "那个你好🦀"
    assert pieces == heard(R1)
    assert last(pieces).blocks[1].model_dump()["input"] == {"city": "杭州"}
    assert "\ufffd" not in repr(pieces)


@given(hearing.chunkings(R1))
def test_r1_any_chunking_folds_the_same(chunks: list[bytes]) -> None:
    assert heard(*chunks) == heard(R1)


@pytest.mark.parametrize("end", ["\r\n", "\r"])
@pytest.mark.parametrize("cut", CUTS)
def test_r2_lines_may_end_in_any_way(end: str, cut: Cut) -> None:
    stream = answer("Hi").replace(b"\n", end.encode()).replace(b"data: ", b"data:")
    assert said(heard(*cut(stream))) == "Hi"


@pytest.mark.parametrize("cut", CUTS)
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
def test_r3_an_error_in_the_stream_is_an_error_and_what_was_said_stays_said(
    trouble: dict[str, Any], code: str, retryable: bool, cut: Cut
) -> None:
    pieces, error = hearing.until_it_breaks(draft(), cut(sse(says("Partial"), trouble)))
    assert pieces == [TextDelta(text="Partial")]
    assert (error.code, error.retryable, error.message) == (code, retryable, "Peer stream error: Sorry")


def test_an_error_as_the_reason_to_stop_is_one() -> None:
    _, error = hearing.until_it_breaks(draft(), [sse(says("Partial"), chunk({}, "error"))])
    assert (error.code, error.retryable) == ("provider_error", True)


def test_a_stream_that_ends_without_a_reason_is_an_error() -> None:
    _, error = hearing.until_it_breaks(draft(), [sse(says("Hello"), done=False)])
    assert (error.code, error.retryable) == ("provider_error", True)


@pytest.mark.parametrize("cut", CUTS)
def test_after_a_reason_to_stop_nothing_more_is_needed(cut: Cut) -> None:
    """Some servers forget the last word, the blank line behind it, or to close well."""
    stream = sse(says("Hello"), chunk({}, "stop"), used(7, 3), done=False)
    assert reply(*cut(stream)).tokens.prompt == 7
    assert reply(*cut(stream[:-2])).tokens.prompt == 7


def test_a_connection_lost_after_the_last_word_was_not_lost_too_early() -> None:
    def broken(code: str, *stream: bytes) -> Iterator[bytes]:
        yield from stream
        raise ProviderError(code, "lost", retryable=True)

    finished = sse(says("Hello"), chunk({}, "stop"), done=False)
    assert last(hearing.heard(draft(), broken("provider_unreachable", finished))).blocks == (TextBlock(text="Hello"),)
    for code, stream in (("provider_unreachable", sse(says("Hello"), done=False)), ("provider_closed", finished)):
        _, error = hearing.until_it_breaks(draft(), broken(code, stream))
        assert error.code == code


def test_what_follows_the_last_word_is_ignored() -> None:
    assert said(heard(answer("a") + answer("b"))) == "a"


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("parts", [("",), ()], ids=["one empty delta", "no delta"])
def test_r4_a_call_without_argument_text_has_no_arguments(parts: tuple[str, ...], cut: Cut) -> None:
    only = reply(*cut(sse(calls(0, "call_1", "list_tokens", *parts), chunk({}, "tool_calls"))))
    assert only.blocks == (ToolCallBlock(tool_call_id="call_1", tool_name="list_tokens", input={}),)
    assert only.stop is Stop.TOOL_CALLS


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("fragment", ['{"file_path":"x"', '{"file_path":"x"}'], ids=["cut off", "may lack more"])
def test_r5_and_r6_a_call_the_limit_fell_into_is_marked_and_the_stop_says_why(fragment: str, cut: Cut) -> None:
    asked = [*calls(0, "call_1", "read", '{"a":1}'), *calls(1, "call_2", "write", fragment[:6], fragment[6:])]
    stopped = reply(*cut(sse(asked, chunk({}, "length"))))
    assert stopped.stop is Stop.MAX_TOKENS
    assert [block.model_dump()["malformed"] for block in stopped.blocks] == [None, True]


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", Stop.END),
        ("length", Stop.MAX_TOKENS),
        ("model_length", Stop.MAX_TOKENS),
        ("content_filter", Stop.REFUSAL),
        ("tool_calls", Stop.END),
        ("something_new", Stop.END),
    ],
)
def test_every_reason_to_stop_has_a_meaning(reason: str, stop: Stop) -> None:
    assert reply(sse(says("Hi"), chunk({}, reason))).stop is stop


def test_calls_are_calls_whatever_the_reason_says() -> None:
    assert reply(sse(calls(0, "c", "read", "{}"), chunk({}, "stop"))).stop is Stop.TOOL_CALLS


def test_r8_a_refusal_is_seen() -> None:
    refused = reply(sse(chunk({"refusal": "I can't."}), chunk({}, "stop")))
    assert (refused.stop, refused.blocks) == (Stop.REFUSAL, (TextBlock(text="I can't."),))
    assert refused.refusal == "I can't."
    filtered = reply(sse(chunk({"content": ""}), chunk({}, "content_filter")))
    assert (filtered.stop, filtered.blocks, filtered.refusal) == (Stop.REFUSAL, (), FILTERED)


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_r9_thoughts_are_shown_and_kept_under_the_name_they_came_under(name: str) -> None:
    pieces = heard(sse(chunk({name: "Look "}), chunk({name: "first."}), says("Yes."), chunk({}, "stop")))
    assert pieces[:2] == [ReasoningDelta(text="Look "), ReasoningDelta(text="first.")]
    thought = last(pieces).blocks[0]
    assert isinstance(thought, ReasoningBlock)
    assert (thought.provider, thought.model, thought.payload) == (
        "openai-compatible",
        MODEL,
        {name: "Look first."},
    )


def test_thoughts_that_come_under_two_names_are_shown_once() -> None:
    assert heard(sse(chunk({"reasoning": "Hm", "reasoning_content": "Hm"}), chunk({}, "stop")))[:-1] == [
        ReasoningDelta(text="Hm")
    ]


def test_content_may_be_a_list_of_parts_with_thoughts_among_them() -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Yes."}]
    pieces = heard(sse(chunk({"content": parts}), chunk({"content": ["Al", "so"]}), chunk({}, "stop")))
    assert [piece.text for piece in pieces if not isinstance(piece, Reply)] == ["Hm.", "Yes.", "Al", "so"]


def test_the_signature_of_a_call_stands_in_front_of_it_for_its_provider() -> None:
    signed = {"google": {"thought_signature": "c2ln"}}
    first = {"index": 0, "id": "c1", "extra_content": signed, "function": {"name": "read", "arguments": "{}"}}
    second = {"index": 1, "id": "c2", "function": {"name": "read", "arguments": "{}"}}
    marker, *both = reply(sse(chunk({"tool_calls": [first, second]}), chunk({}, "tool_calls"))).blocks
    assert isinstance(marker, ReasoningBlock)
    assert marker.payload == {"extra_content": signed}
    assert [block.kind for block in both] == ["toolCall", "toolCall"]


def inputs(stream: bytes) -> list[Any]:
    return [block.input for block in reply(stream).blocks if isinstance(block, ToolCallBlock)]


def test_parallel_calls_come_in_the_order_of_their_index_even_when_interleaved() -> None:
    first, second = calls(0, "a", "read", '{"n":', "1}"), calls(1, "b", "read", '{"n":', "2}")
    mixed = [second[0], first[0], second[1], first[1], first[2], second[2]]
    assert inputs(sse(mixed, chunk({}, "tool_calls"))) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("index", [None, 0], ids=["no index", "always the first"])
@pytest.mark.parametrize("ids", [("a", "b"), (None, None)], ids=["ids", "no ids"])
def test_calls_that_share_a_place_are_told_apart(index: int | None, ids: tuple[str | None, str | None]) -> None:
    asked = [*calls(index, ids[0], "read", '{"n":', "1}"), *calls(index, ids[1], "read", '{"n":', "2}")]
    assert inputs(sse(asked, chunk({}, "tool_calls"))) == [{"n": 1}, {"n": 2}]


def test_calls_without_ids_get_ids_that_are_their_own_and_stay_the_same() -> None:
    asked = [*calls(0, None, "read"), *calls(1, None, "read"), *calls(2, "x", "read"), *calls(3, "x", "read")]
    stream = sse(asked, chunk({}, "tool_calls"))

    def ids(request: bytes) -> list[str]:
        blocks = last(hearing.heard(draft(request), [stream])).blocks
        return [block.tool_call_id for block in blocks if isinstance(block, ToolCallBlock)]

    assert len(set(ids(b"one"))) == 4
    assert ids(b"one") == ids(b"one")
    assert set(ids(b"one")) & set(ids(b"two")) == {"x", "x_2"}


def test_an_id_repeated_in_every_piece_begins_no_new_call() -> None:
    asked = [
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": name, "arguments": text}}]})
        for name, text in (("read", '{"n":'), ("read", "1}"))
    ]
    assert inputs(sse(asked, chunk({}, "tool_calls"))) == [{"n": 1}]


def test_arguments_may_be_an_object() -> None:
    call = {"id": "a", "function": {"name": "read", "arguments": {"n": 1}}}
    assert inputs(sse(chunk({"tool_calls": [call]}), chunk({}, "tool_calls"))) == [{"n": 1}]


def test_a_call_that_says_nothing_is_none() -> None:
    assert reply(sse(chunk({"tool_calls": [{}, None]}), chunk({}, "stop"))).blocks == ()


@pytest.mark.parametrize(
    ("told", "tokens"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 400}}, Tokens(prompt=1000, completion=5, cache_read=400)),
        (
            {"prompt_tokens_details": {"cached_tokens": 400, "cache_write_tokens": 100}},
            Tokens(prompt=1000, completion=5, cache_read=400, cache_creation=100),
        ),
        ({"prompt_cache_hit_tokens": 400}, Tokens(prompt=1000, completion=5, cache_read=400)),
        ({"cached_tokens": 400, "prompt_tokens_details": None}, Tokens(prompt=1000, completion=5, cache_read=400)),
        ({"prompt_tokens_details": {"cached_tokens": 2000}}, Tokens(prompt=1000, completion=5, cache_read=2000)),
        ({"prompt_tokens_details": "none"}, Tokens(prompt=1000, completion=5)),
    ],
)
def test_usage_counts_what_the_cache_has_read_and_written_apart(told: dict[str, Any], tokens: Tokens) -> None:
    counted = reply(sse(says("Hi"), chunk({}, "stop"), used(1000, 5, **told))).tokens
    assert counted.model_copy(update={"raw": None}) == tokens.model_copy(
        update={"cached_within": tokens.cache_read > 0}
    )


def test_usage_that_is_repeated_counts_once_and_usage_that_is_missing_is_unknown() -> None:
    running = [chunk({"content": "a"}, usage={"prompt_tokens": 9, "completion_tokens": at}) for at in range(3)]
    assert reply(sse(running, chunk({}, "stop"))).tokens.completion == 2
    assert not reply(sse(says("Hi"), chunk({}, "stop"))).tokens_known


def test_a_prompt_that_was_cut_without_a_word_is_warned_of() -> None:
    stream = sse(says("Hi"), chunk({}, "stop"), used(2051, 5))
    warned = last(hearing.heard(draft(expected=15_000), [stream])).warning
    assert warned is not None
    assert "2051 of about 15000 tokens" in warned
    assert last(hearing.heard(draft(expected=2500), [stream])).warning is None


def test_other_choices_and_null_members_never_stop_an_answer() -> None:
    stream = sse(
        {"id": None, "choices": None, "usage": None, "error": None},
        {"choices": [None, {"index": None, "delta": None, "finish_reason": None, "logprobs": None}]},
        chunk({"content": None, "tool_calls": None, "refusal": None, "role": None, "reasoning": None}),
        chunk({"tool_calls": [{"index": None, "id": None, "type": None, "function": None}]}),
        chunk({"content": "Hi"}),
        {"choices": [{"index": 1, "delta": {"content": "other"}}]},
        chunk(None, "stop"),
    )
    assert reply(stream).blocks == (TextBlock(text="Hi"),)


@given(st.data())
def test_any_chunk_with_members_missing_or_null_is_survived(data: st.DataObject) -> None:
    chunks = [*says("Hi"), *calls(0, "c", "read", "{}"), chunk({"reasoning": "Hm"})]
    for one in chunks:
        choice = one["choices"][0]
        for value in (choice, choice["delta"], *choice["delta"].get("tool_calls", [])):
            for name in data.draw(st.lists(st.sampled_from(sorted(value)), unique=True)) if value else []:
                value[name] = None
    assert isinstance(reply(sse(chunks, chunk({}, "stop"))), Reply)
