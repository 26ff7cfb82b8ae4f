"""Which pictures are sent."""

from dataclasses import replace

import pytest

from fermata.conversations.album import EARLIER, LEFT_OUT, NOT_SEEN, NOT_SEEN_RESULT, pick
from fermata.conversations.rows import pictures_of
from fermata.conversations.stale import stub
from fermata.words.blocks import ImageBlock, TextBlock, ToolResultBlock
from fermata.words.messages import Message
from tests.unit.conversations.messages import ANTHROPIC, Thread, call, picture

BLIND = replace(ANTHROPIC, sees=False)
READS_TEXT = replace(ANTHROPIC, sees_results=False)
MOST_PICTURES = ANTHROPIC.most_pictures


def count(messages: list[Message]) -> int:
    return sum(len(pictures_of(block)) for message in messages for block in message.content)


def stowed(**known: int) -> ImageBlock:
    return ImageBlock(mime_type="image/jpeg", blob="key", **({"width": 100, "height": 100, "size": 1000} | known))


def test_a_few_pictures_stay_as_they_are() -> None:
    thread = Thread()
    thread.user("Look", picture(), picture())
    assert count(pick(thread.messages, ANTHROPIC)) == 2


def test_of_too_many_the_oldest_go_several_at_once_so_that_the_rest_stays_put_for_a_while() -> None:
    thread = Thread()
    sent = []
    for number in range(45):
        thread.user(f"Look {number}", picture())
        thread.model("Ok")
        sent.append(count(pick(thread.messages, ANTHROPIC)))
    assert max(sent) == MOST_PICTURES
    assert min(sent[MOST_PICTURES:]) > MOST_PICTURES // 2
    kept = pick(thread.messages, ANTHROPIC)
    assert kept[0].content == (TextBlock(text="Look 0"), TextBlock(text=LEFT_OUT))
    assert kept[-2].content == thread.messages[-2].content or count([kept[-2]]) == 1


def test_twenty_one_screenshots_of_2001_pixels_are_sent_as_fewer() -> None:
    """Above twenty, Anthropic refuses any of more than 2,000 pixels."""
    thread = Thread()
    thread.user("Compare", *[picture(2001, 1500) for _ in range(21)])
    assert count(pick(thread.messages, ANTHROPIC)) == 11


@pytest.mark.parametrize("known", [{"width": 8001}, {"height": 9000}, {"size": 4_000_000}])
def test_one_that_no_provider_takes_is_left_out(known: dict[str, int]) -> None:
    thread = Thread()
    thread.user("Look", stowed(**known), stowed())
    (message,) = pick(thread.messages, ANTHROPIC)
    assert message.content == (TextBlock(text="Look"), TextBlock(text=LEFT_OUT), stowed())


def test_together_they_stay_below_what_a_request_may_weigh() -> None:
    thread = Thread()
    for _ in range(18):
        thread.user("Look", stowed(size=1_400_000))
    assert count(pick(thread.messages, ANTHROPIC)) == 8


@pytest.mark.parametrize("data", ["%%%", "QUJD", "", None])
def test_what_is_no_picture_is_never_sent(data: str | None) -> None:
    thread = Thread()
    thread.user("Look", ImageBlock(mime_type="image/png", data=data))
    (message,) = pick(thread.messages, ANTHROPIC)
    assert message.content == (TextBlock(text="Look"), TextBlock(text=LEFT_OUT))


def test_a_picture_is_sent_as_what_it_is_not_as_what_it_was_called() -> None:
    thread = Thread()
    thread.user("Look", picture().model_copy(update={"mime_type": "image/png"}))
    (message,) = pick(thread.messages, ANTHROPIC)
    assert isinstance(message.content[1], ImageBlock)
    assert message.content[1].mime_type == "image/jpeg"


def test_a_result_that_loses_a_picture_is_left_out_whole_so_that_it_can_be_asked_for_again() -> None:
    thread = Thread()
    thread.user("Go")
    thread.model(call("a", "look"))
    thread.result("a", "look", data={"seen": True}, images=(picture(9000, 20),))
    assert pick(thread.messages, ANTHROPIC)[-1].content == (stub("look"),)


def test_fewer_are_sent_where_a_request_may_carry_fewer() -> None:
    thread = Thread()
    thread.user("Compare", *[picture() for _ in range(9)])
    few = replace(ANTHROPIC, most_pictures=8)
    assert count(pick(thread.messages, few)) == 5
    assert count(pick(thread.messages, replace(few, most_pictures=1))) == 1
    assert count(pick(thread.messages, replace(few, most_pictures=9))) == 9


def test_of_earlier_turns_only_a_note_is_left_where_that_was_too_much() -> None:
    thread = Thread()
    thread.user("Look", picture(), picture())
    thread.model("Ok")
    thread.user("And this?", picture())
    kept = pick(thread.messages, replace(ANTHROPIC, sees_earlier=False))
    assert kept[0].content == (TextBlock(text="Look"), TextBlock(text=EARLIER))
    assert count(kept) == count(kept[-1:]) == 1


class TestWhereResultsAreReadAsText:
    def test_their_pictures_are_counted_and_fetched_by_nobody(self) -> None:
        thread = Thread()
        thread.user("Go")
        thread.model(call("a", "look"))
        thread.result("a", "look", data={"seen": True}, images=(stowed(), stowed(width=9000)))
        (block,) = pick(thread.messages, READS_TEXT)[-1].content
        assert isinstance(block, ToolResultBlock)
        assert [(one.blob, one.data) for one in block.images or ()] == [(None, None)] * 2
        assert block.data == {"seen": True}

    def test_they_take_no_room_from_those_of_prompts(self) -> None:
        thread = Thread()
        thread.user("Look", *[picture() for _ in range(MOST_PICTURES)])
        thread.model(call("a", "look"))
        thread.result("a", "look", images=(stowed(),) * 5)
        assert count(pick(thread.messages, READS_TEXT)[:1]) == MOST_PICTURES


class TestAModelWithoutEyes:
    def test_a_prompt_says_once_what_is_missing_where_the_first_picture_was(self) -> None:
        thread = Thread()
        thread.user("Look", picture(), picture())
        (message,) = pick(thread.messages, BLIND)
        assert message.content == (TextBlock(text="Look"), TextBlock(text=NOT_SEEN))

    @pytest.mark.parametrize(
        ("data", "kept"), [({"html": "x"}, {"html": "x"}), (None, {"data": None}), (7, {"data": 7})]
    )
    def test_a_result_keeps_its_data(self, data: object, kept: dict[str, object]) -> None:
        thread = Thread()
        thread.user("Go")
        thread.model(call("a", "look"))
        thread.result("a", "look", data=data, images=(picture(),))
        (block,) = pick(thread.messages, BLIND)[-1].content
        assert block == ToolResultBlock(ok=True, data=kept | {"note": NOT_SEEN_RESULT})
