"""What comes out of Ollama's lines. R1 to R6 are the replay scenarios; PP13 is a prompt cut without a word."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.drivers.ollama.fold import Draft
from fermata.drivers.sse import Lines
from fermata.words.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.words.errors import ProviderError
from fermata.words.model import Piece, ReasoningDelta, Reply, Stop, TextDelta, Tokens
from tests.strict.ollama import answer, call, done, line, ndjson
from tests.unit.drivers import hearing
from tests.unit.drivers.hearing import CUTS, Cut, around, last, said, singly, whole

R1 = ndjson(line("那个"), line("你好🦀"), call("weather", {"city": "杭州"}), done())


def draft(request: bytes = b"request", expected: int = 0) -> Draft:
    return Draft("qwen3", request, expected)


def heard(*chunks: bytes) -> list[Piece]:
    return hearing.heard(draft(), chunks, Lines())


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


@pytest.mark.parametrize("cut", CUTS)
def test_r2_lines_may_end_with_a_carriage_return_or_not_at_all(cut: Cut) -> None:
    for stream in (answer("Hi").replace(b"\n", b"\r\n"), answer("Hi").replace(b"\n", b"\n\n"), answer("Hi")[:-1]):
        assert said(heard(*cut(stream))) == "Hi"


@pytest.mark.parametrize("cut", CUTS)
def test_r3_an_error_line_is_an_error_and_what_was_said_stays_said(cut: Cut) -> None:
    stream = ndjson(line("Partial"), {"error": "an error was encountered while running the model"})
    pieces, error = hearing.until_it_breaks(draft(), cut(stream), Lines())
    assert pieces == [TextDelta(text="Partial")]
    assert (error.code, error.retryable) == ("provider_error", True)
    assert error.message == "Peer stream error: an error was encountered while running the model"


def test_lines_that_end_before_the_last_one_are_an_error() -> None:
    for stream in (ndjson(line("Hello")), answer("Hello")[:-30]):
        with pytest.raises(ProviderError, match="it ended before the answer did"):
            heard(stream)


def test_a_line_that_is_no_json_is_an_error_not_a_gap() -> None:
    with pytest.raises(ProviderError, match="not readable"):
        heard(ndjson(line("Hel")) + b"{half\n" + ndjson(done()))


@pytest.mark.parametrize("arguments", [{}, None, ""], ids=["object", "null", "no text"])
def test_r4_a_call_without_arguments_has_none(arguments: Any) -> None:
    asked = line(tool_calls=[{"id": "call_1", "function": {"name": "list_tokens", "arguments": arguments}}])
    only = reply(ndjson(asked, done()))
    assert only.blocks == (ToolCallBlock(tool_call_id="call_1", tool_name="list_tokens", input={}),)
    assert only.stop is Stop.TOOL_CALLS


def test_arguments_written_as_text_are_read_and_marked_when_they_cannot_be() -> None:
    asked = [call("read", '{"n":1}'), call("read", '{"n":')]
    first, second = reply(ndjson(*asked, done())).blocks
    assert first.model_dump()["input"] == {"n": 1}
    assert second.model_dump()["malformed"] is True


def test_r6_the_limit_is_told() -> None:
    assert reply(ndjson(line("Hi"), done("length"))).stop is Stop.MAX_TOKENS
    assert reply(ndjson(call("read"), done("length"))).stop is Stop.MAX_TOKENS


def test_thoughts_are_shown_and_kept_only_with_the_calls_they_led_to() -> None:
    pieces = heard(ndjson(line(thinking="Look "), line(thinking="first."), call("read"), done()))
    assert pieces[:2] == [ReasoningDelta(text="Look "), ReasoningDelta(text="first.")]
    thought = last(pieces).blocks[0]
    assert isinstance(thought, ReasoningBlock)
    assert thought.payload == {"thinking": "Look first."}
    assert reply(ndjson(line(thinking="Hm."), line("Yes."), done())).blocks == (TextBlock(text="Yes."),)


def test_several_calls_come_in_order_with_ids_that_are_their_own_and_stay_the_same() -> None:
    stream = ndjson(call("read", {"n": 1}), call("read", {"n": 2}), call("read", {"n": 3}, id="call_9"), done())

    def calls(request: bytes) -> list[ToolCallBlock]:
        blocks = last(hearing.heard(draft(request), [stream], Lines())).blocks
        return [block for block in blocks if isinstance(block, ToolCallBlock)]

    assert [one.input["n"] for one in calls(b"one")] == [1, 2, 3]
    ids = [one.tool_call_id for one in calls(b"one")]
    assert len(set(ids)) == 3
    assert ids[2] == "call_9"
    assert ids == [one.tool_call_id for one in calls(b"one")]
    assert ids[0] not in [one.tool_call_id for one in calls(b"two")]


def test_usage_counts_what_the_cache_has_read_apart() -> None:
    counted = reply(ndjson(line("Hi"), done(prompt=900, completion=5, prompt_eval_cached_count=850))).tokens
    assert counted.model_copy(update={"raw": None}) == Tokens(
        prompt=900, completion=5, cache_read=850, cached_within=True
    )
    assert counted.context == 900
    unknown = reply(ndjson(line("Hi"), done(prompt=None, completion=None)))
    assert (unknown.tokens_known, unknown.tokens.prompt) == (False, 0)


@pytest.mark.parametrize("cut", CUTS)
def test_pp13_a_prompt_that_was_cut_without_a_word_is_warned_of(cut: Cut) -> None:
    stream = ndjson(line("What rules?"), done(prompt=2051))
    warned = last(hearing.heard(draft(expected=15_000), cut(stream), Lines())).warning
    assert warned is not None
    assert warned.startswith("Ollama read only 2051 of about 15000 tokens")


@pytest.mark.parametrize(("prompt", "expected"), [(14_000, 15_000), (9_000, 15_000), (0, 15_000), (300, 1_400)])
def test_pp13_nothing_is_said_of_a_prompt_that_was_read_or_is_too_short_to_judge(prompt: int, expected: int) -> None:
    stream = ndjson(line("Hi"), done(prompt=prompt))
    assert last(hearing.heard(draft(expected=expected), [stream], Lines())).warning is None


@given(st.data())
def test_any_line_with_members_missing_or_null_is_survived(data: st.DataObject) -> None:
    lines = [line("Hi", thinking="Hm"), call("read", {"n": 1})]
    for one in lines:
        message = one["message"]
        for value in (one, message, *message.get("tool_calls", [])):
            for name in data.draw(st.lists(st.sampled_from(sorted(value)), unique=True)):
                value[name] = None
    assert isinstance(reply(ndjson(*lines, done())), Reply)
