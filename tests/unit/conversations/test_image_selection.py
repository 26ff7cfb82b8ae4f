"""Selection of the images that a model is sent."""

from dataclasses import replace

import pytest

from fermata.aws.resources import Resources
from fermata.conversations.block_predicates import block_images
from fermata.conversations.history.conversation_history import ConversationHistory
from fermata.conversations.history.image_selection import (
    IMAGES_UNSUPPORTED_NOTE,
    OMITTED_IMAGE_NOTE,
    OMITTED_RESULT_IMAGES_NOTE,
    REFUSED_IMAGE_NOTE,
    REFUSED_RESULT_IMAGES_NOTE,
    RESULT_IMAGES_UNSUPPORTED_NOTE,
    select_images,
)
from fermata.conversations.history.stale_results import make_elided_result
from fermata.domain.blocks import BlobBlock, ImageBlock, TextBlock, ToolResultBlock
from fermata.domain.messages import Message
from tests.unit.conversations.message_builders import (
    ANTHROPIC_PROFILE,
    ThreadBuilder,
    make_call,
    make_image,
    store_messages,
)

TEXT_ONLY_PROFILE = replace(ANTHROPIC_PROFILE, reads_images=False)
TEXT_RESULTS_PROFILE = replace(ANTHROPIC_PROFILE, reads_result_images=False)
MAX_IMAGES = ANTHROPIC_PROFILE.max_images


def count_all_images(messages: list[Message]) -> int:
    return sum(len(block_images(block)) for message in messages for block in message.content)


def make_stored_image(**measures: int) -> ImageBlock:
    return ImageBlock(mime_type="image/jpeg", blob="key", **({"width": 100, "height": 100, "size": 1000} | measures))


def test_a_few_images_are_sent() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Look", make_image(), make_image())
    assert count_all_images(select_images(thread.messages, ANTHROPIC_PROFILE)) == 2


def test_of_too_many_images_the_oldest_are_omitted_several_at_once() -> None:
    thread = ThreadBuilder()
    sent = []
    for number in range(45):
        thread.add_prompt(f"Look {number}", make_image())
        thread.add_reply("Ok")
        sent.append(count_all_images(select_images(thread.messages, ANTHROPIC_PROFILE)))
    assert max(sent) == MAX_IMAGES
    assert min(sent[MAX_IMAGES:]) > MAX_IMAGES // 2
    selected = select_images(thread.messages, ANTHROPIC_PROFILE)
    assert selected[0].content == (TextBlock(text="Look 0"), TextBlock(text=OMITTED_IMAGE_NOTE))
    assert selected[-2].content == thread.messages[-2].content or count_all_images([selected[-2]]) == 1


def test_of_twenty_one_screenshots_fewer_are_sent() -> None:
    """From the 21st image on, Anthropic refuses images of more than 2,000 pixels."""
    thread = ThreadBuilder()
    thread.add_prompt("Compare", *[make_image(2001, 1500) for _ in range(21)])
    assert count_all_images(select_images(thread.messages, ANTHROPIC_PROFILE)) == 11


@pytest.mark.parametrize("measures", [{"width": 8001}, {"height": 9000}, {"size": 4_000_000}])
def test_an_image_that_no_provider_accepts_is_omitted(measures: dict[str, int]) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Look", make_stored_image(**measures), make_stored_image())
    (message,) = select_images(thread.messages, ANTHROPIC_PROFILE)
    assert message.content == (TextBlock(text="Look"), TextBlock(text=OMITTED_IMAGE_NOTE), make_stored_image())


def test_the_images_of_a_request_stay_within_its_limit_of_bytes() -> None:
    thread = ThreadBuilder()
    for _ in range(18):
        thread.add_prompt("Look", make_stored_image(size=1_400_000))
    assert count_all_images(select_images(thread.messages, ANTHROPIC_PROFILE)) == 8


@pytest.mark.parametrize("data", ["%%%", "QUJD", "", None])
def test_data_that_is_no_image_is_not_sent(data: str | None) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Look", ImageBlock(mime_type="image/png", data=data))
    (message,) = select_images(thread.messages, ANTHROPIC_PROFILE)
    assert message.content == (TextBlock(text="Look"), TextBlock(text=OMITTED_IMAGE_NOTE))


def test_an_image_is_sent_with_its_true_mime_type() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Look", make_image().model_copy(update={"mime_type": "image/png"}))
    (message,) = select_images(thread.messages, ANTHROPIC_PROFILE)
    assert isinstance(message.content[1], ImageBlock)
    assert message.content[1].mime_type == "image/jpeg"


def test_an_older_result_that_loses_an_image_is_elided_so_that_the_tool_is_called_again() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_call("a", "look"))
    thread.add_result("a", "look", data={"seen": True}, images=(make_image(9000, 20),))
    thread.add_reply("I see.")
    assert select_images(thread.messages, ANTHROPIC_PROFILE)[-2].content == (make_elided_result("look"),)


def test_a_result_that_the_model_has_just_asked_for_keeps_its_data_when_its_images_cannot_be_sent() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_call("a", "look"))
    thread.add_result("a", "look", data={"seen": True}, images=(make_image(9000, 20), make_image()))
    (block,) = select_images(thread.messages, ANTHROPIC_PROFILE)[-1].content
    assert block.data == {"seen": True, "note": OMITTED_RESULT_IMAGES_NOTE}
    assert [image.width for image in block.images or ()] == [40]


def test_fewer_images_are_sent_where_a_request_accepts_fewer() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Compare", *[make_image() for _ in range(9)])
    few = replace(ANTHROPIC_PROFILE, max_images=8)
    assert count_all_images(select_images(thread.messages, few)) == 5
    assert count_all_images(select_images(thread.messages, replace(few, max_images=1))) == 1
    assert count_all_images(select_images(thread.messages, replace(few, max_images=9))) == 9


def test_images_up_to_the_refused_ones_become_a_note() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Look", make_image(), make_image())
    thread.add_reply("Ok")
    thread.add_prompt("And this?", make_image())
    selected = select_images(thread.messages, replace(ANTHROPIC_PROFILE, images_after=1))
    assert selected[0].content == (TextBlock(text="Look"), TextBlock(text=REFUSED_IMAGE_NOTE))
    assert count_all_images(selected) == count_all_images(selected[-1:]) == 1


def test_a_result_whose_image_was_refused_keeps_its_data() -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Go")
    thread.add_reply(make_call("a", "look"), make_call("b", "look"))
    thread.add_result("a", "look", data={"seen": True}, images=(make_image(),))
    thread.add_result("b", "look", data={"seen": True}, images=(make_image(),))
    refused, accepted = select_images(thread.messages, replace(ANTHROPIC_PROFILE, images_after=2))[-2:]
    assert refused.content == (ToolResultBlock(ok=True, data={"seen": True, "note": REFUSED_RESULT_IMAGES_NOTE}),)
    assert count_all_images([accepted]) == 1


class TestResultsReadAsText:
    def test_their_images_are_counted_but_not_fetched(self) -> None:
        thread = ThreadBuilder()
        thread.add_prompt("Go")
        thread.add_reply(make_call("a", "look"))
        thread.add_result("a", "look", data={"seen": True}, images=(make_stored_image(), make_stored_image(width=9000)))
        (block,) = select_images(thread.messages, TEXT_RESULTS_PROFILE)[-1].content
        assert isinstance(block, ToolResultBlock)
        assert [(image.blob, image.data) for image in block.images or ()] == [(None, None)] * 2
        assert block.data == {"seen": True}

    def test_their_images_do_not_count_against_those_of_prompts(self) -> None:
        thread = ThreadBuilder()
        thread.add_prompt("Look", *[make_image() for _ in range(MAX_IMAGES)])
        thread.add_reply(make_call("a", "look"))
        thread.add_result("a", "look", images=(make_stored_image(),) * 5)
        assert count_all_images(select_images(thread.messages, TEXT_RESULTS_PROFILE)[:1]) == MAX_IMAGES


class TestModelWithoutImageInput:
    def test_a_prompt_has_one_note_in_place_of_its_first_image(self) -> None:
        thread = ThreadBuilder()
        thread.add_prompt("Look", make_image(), make_image())
        (message,) = select_images(thread.messages, TEXT_ONLY_PROFILE)
        assert message.content == (TextBlock(text="Look"), TextBlock(text=IMAGES_UNSUPPORTED_NOTE))

    @pytest.mark.parametrize(
        ("data", "expected"), [({"html": "x"}, {"html": "x"}), (None, {"data": None}), (7, {"data": 7})]
    )
    def test_a_result_keeps_its_data(self, data: object, expected: dict[str, object]) -> None:
        thread = ThreadBuilder()
        thread.add_prompt("Go")
        thread.add_reply(make_call("a", "look"))
        thread.add_result("a", "look", data=data, images=(make_image(),))
        (block,) = select_images(thread.messages, TEXT_ONLY_PROFILE)[-1].content
        assert block == ToolResultBlock(ok=True, data=expected | {"note": RESULT_IMAGES_UNSUPPORTED_NOTE})


@pytest.mark.parametrize("reads_images", [True, False])
def test_a_result_in_s3_that_loses_an_image_says_so_too(reads_images: bool, resources: Resources) -> None:
    thread = ThreadBuilder()
    thread.add_prompt("Look")
    thread.add_reply(make_call("a", "take_screenshot"))
    thread.add_result("a", "take_screenshot", data={"html": "x" * 40_000}, images=(make_image(), make_image(9_000, 10)))
    store_messages(resources, "bakery", "c1", thread.messages)
    profile = replace(ANTHROPIC_PROFILE, reads_images=reads_images)
    history = ConversationHistory(resources, "bakery", "c1", profile)
    assert isinstance(history.stored_messages[-1].content[0], BlobBlock)
    (block,) = history.compile_messages()[-1].content
    assert isinstance(block, ToolResultBlock)
    note = OMITTED_RESULT_IMAGES_NOTE if reads_images else RESULT_IMAGES_UNSUPPORTED_NOTE
    assert block.data == {"html": "x" * 40_000, "note": note}
    assert len(block.images or ()) == reads_images
