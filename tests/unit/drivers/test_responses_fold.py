"""What comes out of a streamed response. Named inputs are the replay scenarios R1 to R10, as Responses say them."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata.drivers.failures import FILTERED
from fermata.drivers.responses.fold import Draft
from fermata.words.blocks import ReasoningBlock, TextBlock, ToolCallBlock
from fermata.words.errors import ProviderError
from fermata.words.model import Piece, ReasoningDelta, Reply, Stop, TextDelta, Tokens
from tests.strict.openai import answer, call, created, ended, event, message, reasoning, sse, usage
from tests.unit.drivers import hearing
from tests.unit.drivers.hearing import CUTS, Cut, around, last, said, singly, whole

MODEL = "gpt-5.2"
R1 = sse(
    created(),
    message(0, "那个", "你好🦀"),
    call(1, "call_1", "weather", '{"city":"杭', '州"}'),
    ended(usage=usage(30, 12)),
)


def draft(request: bytes = b"request") -> Draft:
    return Draft("openai", MODEL, request)


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


@pytest.mark.parametrize(
    "chunks",
    [
        [b'data: {"type":"response.completed",\r', b'\ndata: "response":{"status":"completed"}}\r\n\r\n'],
        [b'data:{"type":"response.completed","response":{"status":"completed"}}\n\n'],
        [b'data: {"type":"response.completed","response":{"status":"completed"}}\r\r'],
    ],
    ids=["CR and LF apart", "no blank after the colon", "bare CR"],
)
@pytest.mark.parametrize("cut", [lambda stream: stream, singly], ids=["as named", "single bytes"])
def test_r2_one_completed_event_however_its_lines_end(chunks: list[bytes], cut: Any) -> None:
    chunks = [piece for chunk in chunks for piece in ([chunk] if cut is not singly else singly(chunk))]
    assert heard(*chunks) == [Reply(blocks=(), stop=Stop.END, tokens=Tokens(), tokens_known=False)]


FAILED = {"code": "server_error", "message": "Sorry"}
OVERLOADED = {"type": "service_unavailable_error", "code": "server_is_overloaded", "message": "Sorry"}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(
    ("trouble", "code", "retryable"),
    [
        (event("error", code="server_error", message="Sorry", param=None), "provider_error", True),
        (event("error", error=OVERLOADED), "provider_overloaded", True),
        (ended("failed", error=FAILED, usage=None), "provider_error", True),
        (ended("failed", error={"code": "rate_limit_exceeded", "message": "Sorry"}), "provider_quota", True),
        (ended("failed", error={"code": "insufficient_quota", "message": "Sorry"}), "provider_quota", False),
        (ended("failed", error={"code": "context_length_exceeded", "message": "Sorry"}), "provider_overflow", False),
        (event("error", code=502, message="Sorry"), "provider_error", True),
    ],
)
def test_r3_an_error_in_the_stream_is_an_error_and_what_was_said_stays_said(
    trouble: dict[str, Any], code: str, retryable: bool, cut: Cut
) -> None:
    stream = sse(created(), message(0, "Partial")[:-1], trouble)
    pieces, error = hearing.until_it_breaks(draft(), cut(stream))
    assert pieces == [TextDelta(text="Partial")]
    assert (error.code, error.retryable, error.message) == (code, retryable, "Peer stream error: Sorry")


def test_a_failure_without_a_reason_is_still_a_failure() -> None:
    for trouble in (ended("failed", error=None, usage=None), ended("cancelled"), event("error")):
        with pytest.raises(ProviderError, match="stream error: "):
            heard(sse(created(), trouble))


def test_a_stream_that_ends_before_its_last_event_is_an_error_even_when_it_says_done() -> None:
    stream = sse(created(), message(0, "Hello"))
    for end in (b"", b"data: [DONE]\n\n"):
        with pytest.raises(ProviderError) as caught:
            heard(stream + end)
        assert (caught.value.code, caught.value.retryable) == ("provider_error", True)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("parts", [("",), ()], ids=["one empty delta", "no delta"])
def test_r4_a_call_without_argument_text_has_no_arguments(parts: tuple[str, ...], cut: Cut) -> None:
    only = reply(*cut(sse(created(), call(0, "call_1", "list_tokens", *parts), ended())))
    assert only.blocks == (ToolCallBlock(tool_call_id="call_1", tool_name="list_tokens", input={}),)
    assert only.stop is Stop.TOOL_CALLS


INCOMPLETE = {"reason": "max_output_tokens"}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("fragment", ['{"file_path":"x"', '{"file_path":"x"}'], ids=["cut off", "may lack more"])
def test_r5_and_r6_a_call_the_limit_fell_into_is_marked_and_the_stop_says_why(fragment: str, cut: Cut) -> None:
    first, second = fragment[:6], fragment[6:]
    calls = [*call(0, "call_1", "read", '{"a":1}'), *call(1, "call_2", "write", first, second, done=False)]
    stopped = reply(*cut(sse(created(), calls, ended("incomplete", incomplete_details=INCOMPLETE))))
    whole_one, cut_one = stopped.blocks
    assert stopped.stop is Stop.MAX_TOKENS
    assert isinstance(whole_one, ToolCallBlock)
    assert isinstance(cut_one, ToolCallBlock)
    assert (whole_one.malformed, cut_one.malformed) == (None, True)


def test_an_item_that_is_finished_as_incomplete_is_not_finished() -> None:
    *begun, finished = call(0, "call_1", "write", '{"a":1}')
    finished = finished | {"item": finished["item"] | {"status": "incomplete"}}
    stopped = reply(sse(created(), begun, finished, call(1, "call_2", "read"), ended("incomplete")))
    assert [block.model_dump()["malformed"] for block in stopped.blocks] == [True, True]


@pytest.mark.parametrize("broken", ['{"a": tru', "{'a': 1}", '{"a": NaN}'])
def test_arguments_that_are_no_json_are_marked_and_replaced_by_none(broken: str) -> None:
    only = reply(sse(created(), call(0, "call_1", "read", broken), ended())).blocks[0]
    assert only == ToolCallBlock(tool_call_id="call_1", tool_name="read", input={}, malformed=True)


@pytest.mark.parametrize("cut", CUTS)
def test_r8_a_refusal_is_seen_whether_it_says_something_or_not(cut: Cut) -> None:
    spoken = [
        event("response.output_item.added", output_index=0, item={"type": "message", "content": []}),
        event("response.refusal.delta", output_index=0, delta="I can't."),
        event(
            "response.output_item.done",
            output_index=0,
            item={"type": "message", "content": [{"type": "refusal", "refusal": "I can't."}]},
        ),
    ]
    refused = reply(*cut(sse(created(), spoken, ended())))
    assert (refused.stop, refused.blocks) == (Stop.REFUSAL, (TextBlock(text="I can't."),))
    assert refused.refusal == "I can't."
    filtered = reply(*cut(sse(created(), ended("incomplete", incomplete_details={"reason": "content_filter"}))))
    assert (filtered.stop, filtered.blocks) == (Stop.REFUSAL, ())
    assert filtered.refusal == FILTERED


@pytest.mark.parametrize("cut", CUTS)
def test_r9_reasoning_is_shown_as_it_comes_and_kept_as_it_was_finished(cut: Cut) -> None:
    stream = sse(created(), reasoning(0, "Look ", "first."), message(1, "I read."), call(2, "c", "read"), ended())
    pieces = heard(*cut(stream))
    assert pieces[:2] == [ReasoningDelta(text="Look "), ReasoningDelta(text="\n\nfirst.")]
    thought, spoken, called = last(pieces).blocks
    assert isinstance(thought, ReasoningBlock)
    assert (thought.provider, thought.model) == ("openai", MODEL)
    assert thought.payload == {
        "id": "rs_0",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Look "}, {"type": "summary_text", "text": "first."}],
        "encrypted_content": "gAAAA",
    }
    assert [spoken.kind, called.kind] == ["text", "toolCall"]


def test_reasoning_that_was_not_finished_or_holds_nothing_is_not_kept() -> None:
    half = reasoning(0, "Look")[:-1]
    empty = reasoning(1, sealed="")
    assert reply(sse(created(), half, empty, message(2, "Yes."), ended())).blocks == (TextBlock(text="Yes."),)


def test_plain_reasoning_text_is_shown_too() -> None:
    delta = event("response.reasoning_text.delta", output_index=0, content_index=0, delta="Hm.")
    assert heard(sse(created(), delta, message(1, "Yes."), ended()))[0] == ReasoningDelta(text="Hm.")


def test_the_phase_of_a_message_is_kept_for_its_provider() -> None:
    marker, spoken = reply(sse(created(), message(0, "Let me look.", phase="commentary"), ended())).blocks
    assert isinstance(marker, ReasoningBlock)
    assert marker.payload == {"type": "message", "phase": "commentary"}
    assert spoken == TextBlock(text="Let me look.")


@pytest.mark.parametrize("cut", CUTS)
def test_r10_a_message_without_text_is_not_kept(cut: Cut) -> None:
    stream = sse(created(), message(0, ""), call(1, "call_1", "read"), ended())
    assert [one.kind for one in reply(*cut(stream)).blocks] == ["toolCall"]


def test_what_no_delta_has_brought_is_shown_when_its_item_is_finished() -> None:
    *_, finished = message(0, "All of it.")
    assert said(heard(sse(created(), finished, ended()))) == "All of it."
    began, first, *_ = message(0, "All ", "of it.")
    pieces = heard(sse(created(), began, first, finished, ended()))
    assert [piece.text for piece in pieces if isinstance(piece, TextDelta)] == ["All ", "of it."]


def test_what_only_the_last_event_tells_of_is_not_lost() -> None:
    output = [
        {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}], "status": "completed"},
        {"type": "function_call", "id": "f", "call_id": "call_1", "name": "read", "arguments": '{"a":1}'},
    ]
    pieces = heard(sse(created(), ended(output=output)))
    assert said(pieces) == "Hi"
    assert last(pieces).stop is Stop.TOOL_CALLS
    assert last(pieces).blocks[1] == ToolCallBlock(tool_call_id="call_1", tool_name="read", input={"a": 1})


def test_the_last_event_repeats_nothing() -> None:
    output = [item["item"] for item in (message(0, "Hi")[-1], call(1, "call_1", "read", '{"a":1}')[-1])]
    stream = sse(created(), message(0, "Hi"), call(1, "call_1", "read", '{"a":1}'), ended(output=output))
    pieces = heard(stream)
    assert said(pieces) == "Hi"
    assert len(last(pieces).blocks) == 2


def test_items_without_a_place_are_told_apart_by_their_ids() -> None:
    def placeless(events: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
        return [one | {"output_index": None, "item_id": name} for one in events]

    first = placeless(call(0, "a", "read", '{"n":', "1}"), "fc_a")
    second = placeless(call(0, "b", "read", '{"n":', "2}"), "fc_b")
    mixed = [one for pair in zip(first, second, strict=True) for one in pair]
    inputs = [block.model_dump()["input"] for block in reply(sse(created(), mixed, ended())).blocks]
    assert inputs == [{"n": 1}, {"n": 2}]


def test_parallel_calls_whose_pieces_are_mixed_are_told_apart() -> None:
    first, second = call(0, "call_a", "read", '{"a"', ":1}"), call(1, "call_b", "read", '{"b"', ":2}")
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    blocks = reply(sse(created(), mixed, ended())).blocks
    assert [(block.tool_call_id, block.input) for block in blocks if isinstance(block, ToolCallBlock)] == [
        ("call_a", {"a": 1}),
        ("call_b", {"b": 2}),
    ]


def test_calls_without_ids_get_ids_that_are_their_own_and_stay_the_same() -> None:
    nameless = [*call(0, None, "read"), *call(1, None, "read"), *call(2, "x", "read"), *call(3, "x", "read")]
    for one in nameless:
        if "item" in one:
            one["item"].pop("id")
    stream = sse(created(), nameless, ended())
    ids = [block.model_dump()["tool_call_id"] for block in reply(stream).blocks]
    assert len(set(ids)) == 4
    assert ids[2:] == ["x", "x_2"]
    assert ids == [block.model_dump()["tool_call_id"] for block in reply(stream).blocks]
    other = hearing.heard(draft(b"another request"), [stream])
    assert {block.model_dump()["tool_call_id"] for block in last(other).blocks} & set(ids) == {"x", "x_2"}


@pytest.mark.parametrize(
    ("told", "tokens"),
    [
        (usage(1000, 20, 400), Tokens(prompt=1000, completion=20, cache_read=400)),
        (
            usage(3438, 9, 3423, input_tokens_details={"cached_tokens": 3423, "cache_write_tokens": 12}),
            (3438, 9, 3423, 12),
        ),
        (usage(100, 20, 900), Tokens(prompt=100, completion=20, cache_read=900)),
        ({"input_tokens": 7, "output_tokens": None, "input_tokens_details": None}, Tokens(prompt=7)),
        ({"input_tokens": "7", "output_tokens": True}, Tokens()),
    ],
)
def test_usage_counts_what_the_cache_has_read_and_written_apart(told: dict[str, Any], tokens: Any) -> None:
    counted = reply(sse(created(), message(0, "Hi"), ended(usage=told))).tokens
    if isinstance(tokens, tuple):
        tokens = Tokens(prompt=tokens[0], completion=tokens[1], cache_read=tokens[2], cache_creation=tokens[3])
    assert counted.model_copy(update={"raw": None}) == tokens.model_copy(
        update={"cached_within": tokens.cache_read > 0}
    )
    assert counted.context == tokens.prompt


def test_an_answer_without_usage_says_that_its_tokens_are_unknown() -> None:
    assert not reply(sse(created(), message(0, "Hi"), ended(usage=None))).tokens_known
    assert reply(answer()).tokens_known


def test_null_members_never_stop_an_answer() -> None:
    stream = sse(
        event("response.created", response=None),
        event("response.output_item.added", output_index=0, item=None),
        event("response.output_item.added", output_index=0, item={"type": None, "content": None, "id": None}),
        event("response.content_part.added", part=None),
        event("response.output_text.delta", output_index=None, content_index=None, delta=None, logprobs=None),
        event("response.output_text.delta", output_index=0, delta="Hi"),
        event("response.output_text.annotation.added", annotation=None),
        event("response.function_call_arguments.delta", output_index=1, delta=None),
        event("response.reasoning_summary_text.delta", output_index=2, summary_index=None, delta=None),
        event("a_kind_of_tomorrow", anything=None),
        {"type": None},
        event(
            "response.completed", response={"usage": None, "output": None, "incomplete_details": None, "error": None}
        ),
    )
    assert TextBlock(text="Hi") in reply(stream).blocks


def test_half_a_surrogate_pair_becomes_a_character_that_can_be_stored() -> None:
    delta = b'data: {"type":"response.output_text.delta","output_index":0,"delta":"a\\ud83d"}\n\n'
    arguments = json.dumps(call(1, "c", "read", '{"x":"\\ud83d"}')[-1])
    stream = sse(created()) + delta + f"data: {arguments}\n\n".encode() + sse(ended())
    ended_well = last(heard(stream))
    assert "a\ufffd" in ended_well.model_dump_json()
    assert ended_well.blocks[1].model_dump()["input"] == {"x": "\ufffd"}


@given(st.data())
def test_any_event_with_members_missing_or_null_is_survived(data: st.DataObject) -> None:
    """Whatever a gateway leaves out, the fold goes on and ends."""
    events = [created(), *message(0, "Hi"), *reasoning(1, "Hm"), *call(2, "c", "read", "{}")]
    hurt = []
    for one in events:
        names = sorted(name for name in one if name != "type")
        lost = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
        hurt.append({name: None if name in lost else value for name, value in one.items()})
    assert isinstance(reply(sse(*hurt, ended())), Reply)
