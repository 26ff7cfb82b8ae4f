"""A turn that is too long by itself: the model always sees what it has just asked for."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fermata.aws.resources import Resources
from fermata.conversations.history.compiler import compile_history
from fermata.conversations.history.conversation_history import ConversationHistory
from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.shorten_oversized_turn import ROUNDS_OMITTED_NOTE
from fermata.conversations.history.token_estimate import estimate_text_tokens, estimate_tokens
from fermata.domain.blocks import BlobBlock, Block, TextBlock, ToolResultBlock
from fermata.domain.messages import Message
from tests.quick_suite_samples import count_examples
from tests.unit.conversations.message_builders import (
    ANTHROPIC_PROFILE,
    ThreadBuilder,
    make_call,
    make_image,
    store_messages,
)

READ_TOOL = "read_document"
PAGE_79_KB = "<section><p>Fresh bread every morning.</p></section>\n" * 1_490
CHINESE_PAGE = "面包店每天早上六点开门" * 9_091


def make_profile(max_tokens: int) -> ModelProfile:
    return replace(ANTHROPIC_PROFILE, max_history_tokens=max_tokens, is_heavy_tool=lambda name: name == READ_TOOL)


def add_read(thread: ThreadBuilder, call_id: str, data: Any, **arguments: Any) -> None:
    thread.add_reply(make_call(call_id, READ_TOOL, **arguments))
    thread.add_result(call_id, READ_TOOL, data=data)


def get_result(history: Sequence[Message], call_id: str) -> ToolResultBlock:
    (block,) = next(message for message in history if message.tool_call_id == call_id).content
    assert isinstance(block, ToolResultBlock)
    return block


@pytest.mark.parametrize(("page", "max_tokens", "min_shown"), [(PAGE_79_KB, 11_000, 0.8), (CHINESE_PAGE, 95_000, 0.9)])
def test_a_page_larger_than_the_window_is_cut_to_what_fits(page: str, max_tokens: int, min_shown: float) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Make it friendlier")
    add_read(thread, "a", {"html": page, "pageInfo": {"nextPart": 2}})
    history = compile_history(thread.messages, make_profile(max_tokens))
    data = get_result(history, "a").data
    assert data["data"]["html"].startswith(page[:5_000])
    assert data["data"]["pageInfo"] == {"nextPart": 2}
    assert f"of {data['totalCharacters']:,} characters" in data["note"]
    assert "What is missing is in no other part" in data["note"]
    assert min_shown * max_tokens <= estimate_tokens(history) <= max_tokens


def test_a_result_whose_beginning_needs_more_tokens_than_its_end_is_cut_and_not_left_out() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    add_read(thread, "a", {"items": [{"icons": "\U0001f600" * 2_600}, "a" * 5_200]})
    history = compile_history(thread.messages, make_profile(8_000))
    assert "\U0001f600" * 1_000 in get_result(history, "a").data["data"]["items"][0]["icons"]
    assert estimate_tokens(history) <= 8_000


def test_a_page_in_the_blob_store_is_fetched_and_cut(resources: Resources) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Make it friendlier")
    add_read(thread, "a", {"html": CHINESE_PAGE})
    store_messages(resources, "bakery", "c1", thread.messages)
    history = ConversationHistory(resources, "bakery", "c1", make_profile(20_000)).compile_messages()
    assert get_result(history, "a").data["data"]["html"].startswith(CHINESE_PAGE[:15_000])
    assert estimate_tokens(history) <= 20_000


def test_a_stored_result_is_estimated_by_its_text_and_not_by_the_escapes_of_its_json(resources: Resources) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Make it friendlier")
    add_read(thread, "a", {"html": CHINESE_PAGE})
    store_messages(resources, "bakery", "c1", thread.messages)
    history = ConversationHistory(resources, "bakery", "c1", make_profile(110_000))
    assert get_result(history.compile_messages(), "a").data == {"html": CHINESE_PAGE}
    (stored,) = history.stored_messages[-1].content
    assert isinstance(stored, BlobBlock)
    assert stored.tokens == pytest.approx(100_000, rel=0.01)


def test_a_result_that_was_cut_is_still_there_in_the_next_rounds() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Make it friendlier")
    add_read(thread, "part1", {"html": "1" * 60_000})
    add_read(thread, "part2", {"html": "2" * 60_000}, part=2)
    history = compile_history(thread.messages, make_profile(20_000))
    assert get_result(history, "part1").data["data"]["html"].startswith("1" * 5_000)
    assert get_result(history, "part2").data["data"]["html"].startswith("2" * 30_000)


@pytest.mark.parametrize(("max_tokens", "is_first_whole"), [(41_500, True), (30_000, False)])
def test_a_part_that_was_read_stays_whole_beside_a_small_result_if_it_fits(
    max_tokens: int, is_first_whole: bool
) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Translate the page")
    first, second = ({"html": text * 20_000, "pageInfo": {"nextPart": 2}} for text in "面包")
    add_read(thread, "part1", first)
    add_read(thread, "part2", second, part=2)
    before = compile_history(thread.messages, make_profile(max_tokens))
    thread.add_reply(make_call("part3", READ_TOOL, part=3))
    thread.add_result("part3", READ_TOOL, ok=False, error="The document cannot be read now. " * 50)
    history = compile_history(thread.messages, make_profile(max_tokens))
    assert get_result(before, "part2").data == get_result(history, "part2").data == second
    assert get_result(before, "part1") == get_result(history, "part1")
    assert (get_result(history, "part1").data == first) is is_first_whole
    assert estimate_tokens(history) <= max_tokens


def test_a_result_cut_to_the_window_is_cut_further_only_by_what_newer_ones_need() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    add_read(thread, "big", {"html": CHINESE_PAGE})
    shown = [len(get_result(compile_history(thread.messages, make_profile(50_000)), "big").data["data"]["html"])]
    for number in range(20):
        thread.add_reply(make_call(f"c{number}", "list"))
        thread.add_result(f"c{number}", "list", data="x" * 3_000)
        history = compile_history(thread.messages, make_profile(50_000))
        assert estimate_tokens(history) <= 50_000
        shown.append(len(get_result(history, "big").data["data"]["html"]))
    assert shown == sorted(shown, reverse=True)
    assert shown[1] > 40_000
    assert shown[-1] > 20_000
    assert len(set(shown)) <= 7


def test_results_of_one_round_share_the_room_and_small_ones_stay_whole() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_call("a", "list"), make_call("b", "list"), make_call("c", "list"))
    thread.add_result("a", "list", data="a" * 60_000)
    thread.add_result("b", "list", data="small")
    thread.add_result("c", "list", ok=False, error="e" * 60_000)
    history = compile_history(thread.messages, make_profile(10_000))
    assert get_result(history, "a").data["data"].startswith("a" * 10_000)
    assert get_result(history, "b").data == "small"
    assert (get_result(history, "c").error or "").startswith("e" * 10_000)
    assert (get_result(history, "c").error or "").endswith("more characters]")
    assert estimate_tokens(history) <= 10_000


def test_images_that_do_not_fit_are_omitted_with_a_note() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_call("a", "look"))
    thread.add_result("a", "look", data={"seen": True}, images=(make_image(),) * 4)
    block = get_result(compile_history(thread.messages, make_profile(4_000)), "a")
    assert block.data == {"seen": True, "note": "3 of 4 images do not fit and were omitted."}
    assert len(block.images or ()) == 1


def test_the_oldest_results_are_left_out_first_and_their_note_asks_for_less() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    for number in range(10):
        thread.add_reply(make_call(f"c{number}", "list"))
        thread.add_result(f"c{number}", "list", data="x" * 9_000)
    history = compile_history(thread.messages, make_profile(10_000))
    is_left_out = [get_result(history, f"c{number}").data != "x" * 9_000 for number in range(10)]
    assert is_left_out == sorted(is_left_out, reverse=True)
    assert not is_left_out[9]
    assert "ask for a smaller part" in get_result(history, "c0").data["note"]


@pytest.mark.parametrize("words", ["I will now read the page. " * 1_000, "面包店每天早上六点开门" * 600])
def test_long_words_in_the_last_reply_do_not_crowd_out_its_result(words: str) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Make it friendlier")
    thread.add_reply(TextBlock(text=words), make_call("a", READ_TOOL))
    thread.add_result("a", READ_TOOL, data={"html": PAGE_79_KB})
    history = compile_history(thread.messages, make_profile(2_000))
    (text,) = [block.text for message in history for block in message.content if block.kind == "text"][1:]
    assert text.startswith(words[:200])
    assert text.endswith("more characters]")
    assert len(get_result(history, "a").data["data"]["html"]) > 500
    assert estimate_tokens(history) <= 2_000


def test_a_call_with_a_long_input_in_the_last_reply_does_not_crowd_out_its_result() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_call("a", "insertHtml", parentId="root", html="<p>" * 20_000))
    thread.add_result("a", data={"nodeIds": ["n1"]})
    history = compile_history(thread.messages, make_profile(3_000))
    assert get_result(history, "a").data == {"nodeIds": ["n1"]}
    (call,) = history[1].content
    assert call.kind == "toolCall"
    assert call.input["parentId"] == "root"
    assert estimate_tokens(history) <= 3_000


def test_the_beginning_of_a_long_turn_changes_in_few_of_its_rounds() -> None:
    """Each change makes the provider read everything behind it anew instead of from its cache."""
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    histories = []
    for number in range(60):
        thread.add_reply(make_call(f"c{number}", "list"))
        thread.add_result(f"c{number}", "list", data=f"{number} " * 400)
        histories.append(compile_history(thread.messages, make_profile(8_000)))
    changed = [after[: len(before)] != before for before, after in pairwise(histories)]
    assert estimate_tokens(thread.messages) > 3 * 8_000
    assert 0 < sum(changed) <= 20


MEASURED_IMAGE = make_image().model_copy(update={"width": 40, "height": 30, "size": 43})
RESULTS = st.lists(
    st.builds(
        ToolResultBlock,
        ok=st.booleans(),
        error=st.none() | st.text(max_size=40).map(lambda text: text * 60),
        data=st.recursive(
            st.none() | st.text(max_size=40).map(lambda text: text * 200),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=5,
        ),
        images=st.none() | st.just((MEASURED_IMAGE,)),
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=count_examples(150))
@given(rounds=st.lists(RESULTS, min_size=1, max_size=8), max_tokens=st.integers(1_500, 12_000), earlier=st.booleans())
def test_in_any_window_the_newest_results_are_there_and_the_estimate_keeps_to_the_limit(
    rounds: list[list[Block]], max_tokens: int, earlier: bool
) -> None:
    thread = ThreadBuilder()
    if earlier:
        thread.add_prompt("Before " * 500)
        thread.add_reply("Done.")
    thread.add_prompt("Go")
    for number, blocks in enumerate(rounds):
        ids = [f"c{number}-{index}" for index in range(len(blocks))]
        thread.add_reply(*(make_call(call_id, "list", of=call_id) for call_id in ids))
        for call_id, block in zip(ids, blocks, strict=True):
            thread.add_message("tool", block, tool_call_id=call_id, tool_name="list")
    profile = make_profile(max_tokens)
    history = compile_history(thread.messages, profile)
    assert estimate_tokens(history) <= max_tokens
    assert compile_history(thread.messages, profile) == history
    for sent, original in zip(history[-len(blocks) :], thread.messages[-len(blocks) :], strict=True):
        assert sent.tool_call_id == original.tool_call_id
        assert sent == original or is_cut(sent.content[0])


def is_cut(block: Block) -> bool:
    """Return whether the result says how much is missing, and is no note that asks for the call to be repeated."""
    text = block.model_dump_json()
    return "elided" not in text and any(
        words in text for words in ("characters are here", "more characters]", "characters fit here", "do not fit")
    )


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("word " * 300, 500), ("面" * 300, 300), ("привет" * 50, 200), ("สวัสดี" * 50, 600), ("🦀" * 100, 300)],
    ids=["english", "chinese", "russian", "thai", "emoji"],
)
def test_tokens_are_estimated_by_script(text: str, tokens: int) -> None:
    assert estimate_text_tokens(text) == tokens


def test_the_note_about_omitted_rounds_stands_behind_the_prompt() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    for number in range(100):
        thread.add_reply(make_call(f"c{number}", "list"))
        thread.add_result(f"c{number}", "list", data="x" * 500)
    history = compile_history(thread.messages, make_profile(5_000))
    assert history[0].content == (TextBlock(text="Go"), TextBlock(text=ROUNDS_OMITTED_NOTE))
    assert get_result(history, "c99").data == "x" * 500
