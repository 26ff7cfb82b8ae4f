"""How much of its conversation a turn's model is sent, what it is called there, and what is refused beforehand."""

import base64
from itertools import pairwise
from typing import Any

import pytest

from fermata.conversations.cutting import NOTE
from fermata.conversations.recipient import weight
from fermata.conversations.rows import pictures_of
from fermata.credentials.choosing import Chosen
from fermata.pricing import catalogue
from fermata.pricing.catalogue import Catalogue, Offer
from fermata.pricing.prices import Price
from fermata.turns import turn as turns
from fermata.turns.gates import check_abilities
from fermata.words.blocks import ImageBlock, TextBlock, ToolResultBlock
from fermata.words.errors import Unprocessable
from fermata.words.model import Ask
from tests.pictures import base64_of, opened, photo
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.stage import ADA, OK, Stage, call, calls, failure
from tests.unit.turns.truth import check

PHOTO = ImageBlock(mime_type="image/jpeg", data=base64_of(photo()))


def talk(stage: Stage, turns: int, size: int = 3_000) -> None:
    for _ in range(turns):
        stage.start("x" * size)
        stage.says("Ok.")
        stage.run()


def said(ask: Ask) -> list[str]:
    return [block.text for message in ask.messages for block in message.content if isinstance(block, TextBlock)]


def offer(stage: Stage, **known: Any) -> None:
    """What the catalogue says of the stage's model."""
    price = Price(input_per_mtok=1, output_per_mtok=1)
    catalogue.keep(stage.desk, Catalogue(refreshed=1, offers={"model-1": Offer(price=price, **known)}))


class TestTheWindow:
    def test_a_long_conversation_is_sent_as_far_as_the_models_window_reaches(self, stage: Stage) -> None:
        offer(stage, context_window=20_000)
        talk(stage, 12)
        sent = stage.driver.asks[-1].messages
        assert weight(sent) < 20_000 * 0.9 - stage.desk.settings.longest_answer
        assert sent[0].role == "user"
        assert said(stage.driver.asks[-1])[0] == NOTE
        assert len(sent) < 20

    def test_of_a_model_nobody_knows_the_settings_window_counts(self, staged: MakeStage) -> None:
        stage = staged(unknown_window=20_000)
        talk(stage, 12)
        assert said(stage.driver.asks[-1])[0] == NOTE

    def test_a_short_one_is_sent_whole(self, stage: Stage) -> None:
        offer(stage, context_window=200_000)
        talk(stage, 12)
        assert len(stage.driver.asks[-1].messages) == 23

    def test_a_provider_that_says_it_is_too_much_is_sent_half_and_half_again(self, stage: Stage) -> None:
        talk(stage, 8)
        stage.start("And now?")
        overflow = failure("provider_overflow", retryable=False)
        stage.says([overflow], [overflow], "Better.")
        assert stage.run() == "finished"
        sizes = [weight(ask.messages) for ask in stage.driver.asks[-3:]]
        assert sizes[0] / 2 >= sizes[1] >= 2 * sizes[2]
        assert said(stage.driver.asks[-1])[-1] == "And now?"
        assert stage.text() == "Better."
        assert "roundRetracted" not in stage.types()
        check(stage)

    def test_when_there_is_nothing_left_to_leave_out_the_user_hears_of_it(self, stage: Stage) -> None:
        stage.start("x" * 5_000)
        stage.says([failure("provider_overflow", retryable=False)])
        stage.run()
        assert stage.terminals()[0].wire()["code"] == "provider_overflow"
        check(stage)


class TestPictures:
    def test_a_known_blind_model_is_refused_them_before_anything_is_written(self, stage: Stage) -> None:
        offer(stage, sees=False)
        with pytest.raises(Unprocessable, match="cannot see images"):
            stage.start("Look", pictures=(PHOTO,))
        assert stage.messages() == []
        assert stage.claim() is None
        stage.start("No picture")

    @pytest.mark.parametrize("known", [{"sees": True}, {"sees": None}])
    def test_one_that_sees_or_whose_eyes_nobody_knows_is_sent_them(self, stage: Stage, known: dict[str, Any]) -> None:
        offer(stage, **known)
        stage.start("Look", pictures=(PHOTO,))
        stage.says("Nice.")
        stage.run()
        (message,) = stage.driver.asks[0].messages
        assert isinstance(message.content[1], ImageBlock)
        assert opened(base64.b64decode(message.content[1].data or "")).size == (40, 30)

    def test_a_conversation_with_pictures_goes_on_with_a_blind_model(self, stage: Stage) -> None:
        stage.start("Look", pictures=(PHOTO,))
        stage.says("Nice.")
        stage.run()
        offer(stage, sees=False)
        stage.start("And now?")
        stage.says("I was told so.")
        stage.run()
        assert not any(block.kind == "image" for message in stage.driver.asks[-1].messages for block in message.content)
        assert any("does not support image input" in text for text in said(stage.driver.asks[-1]))

    def test_a_provider_that_refuses_so_many_is_asked_once_more_without_those_of_earlier_turns(
        self, stage: Stage
    ) -> None:
        stage.start("Look", pictures=(PHOTO, PHOTO))
        stage.says("Nice.")
        stage.run()
        stage.start("And this?", pictures=(PHOTO,))
        stage.says([failure("provider_overflow", retryable=False)], "Better.")
        assert stage.run() == "finished"
        before, after = (
            [[block.kind for block in message.content] for message in ask.messages if message.role == "user"]
            for ask in stage.driver.asks[-2:]
        )
        assert before == [["text", "image", "image"], ["text", "image"]]
        assert after == [["text", "text"], ["text", "image"]]
        assert "omitted to make room" in said(stage.driver.asks[-1])[1]
        assert stage.terminals()[0].type == "done"
        check(stage)

    def test_a_server_that_takes_few_is_sent_fewer_and_fewer_of_the_newest(self, stage: Stage) -> None:
        stage.start("Compare", pictures=(PHOTO,) * 8)
        overflow = failure("provider_overflow", retryable=False)
        stage.says([overflow], [overflow], "I see two.")
        assert stage.run() == "finished"
        shown = [sum(block.kind == "image" for block in ask.messages[-1].content) for ask in stage.driver.asks]
        assert shown == [8, 4, 2]
        check(stage)

    def test_a_picture_that_a_provider_cannot_read_does_not_stop_the_conversation_for_good(self, stage: Stage) -> None:
        stage.start("Look", pictures=(PHOTO,))
        stage.says("Nice.")
        stage.run()
        stage.start("And this?", pictures=(PHOTO,))
        refusal = failure("provider_images", retryable=False)
        stage.says([refusal], [refusal], "I can see neither.")
        assert stage.run() == "finished"
        shown = [
            sum(block.kind == "image" for message in ask.messages for block in message.content)
            for ask in stage.driver.asks[-3:]
        ]
        assert shown == [2, 1, 0]
        assert stage.terminals()[0].type == "done"
        check(stage)

    def test_a_refusal_of_images_where_there_are_none_is_the_users_to_hear(self, stage: Stage) -> None:
        stage.start("No picture")
        stage.says([failure("provider_images", retryable=False)])
        stage.run()
        assert stage.terminals()[0].wire()["code"] == "provider_images"
        check(stage)


class TestStaleEvidence:
    def test_a_turn_sees_what_it_read_last_and_the_next_turn_nothing_of_it(self, stage: Stage) -> None:
        stage.start("Read twice")
        stage.says(calls(call("read_document")), calls(call("read_document")), "Read.")
        for number in range(2):
            stage.run()
            stage.answer({"ok": True, "data": {"html": f"<p>{number}</p>"}})
        stage.run()
        stage.start("And now?")
        stage.says("Hm.")
        stage.run()
        results = [
            [block.data for message in ask.messages for block in message.content if isinstance(block, ToolResultBlock)]
            for ask in stage.driver.asks
        ]
        assert results[1] == [{"html": "<p>0</p>"}]
        assert [data.get("elided", False) for data in results[2]] == [True, False]
        assert [data.get("elided", False) for data in results[3]] == [True, True]


class TestNames:
    def test_the_model_is_offered_and_the_editor_asked_by_the_names_that_the_tenant_uses(self, stage: Stage) -> None:
        stage.start("Go", tool_names="prefixed")
        stage.says(calls(call("site_insert_html", parentId="p", html="<p></p>")), "Done.")
        stage.run()
        assert {spec.name for spec in stage.driver.asks[0].tools} >= {"site_insert_html", "site_read_document"}
        assert "insertHtml" not in stage.driver.asks[0].system
        assert stage.requests()[0].tool_name == "site_insert_html"
        stage.answer(OK)
        stage.run()
        assert stage.terminals()[0].type == "done"

    @pytest.mark.parametrize(("names", "wire"), [("prefixed", "site_insert_html"), ("seed", "insertHtml")])
    @pytest.mark.parametrize("called", ["insertHtml", "site_insert_html"])
    def test_however_the_model_calls_a_tool_the_editor_hears_the_name_it_knows(
        self, stage: Stage, names: Any, wire: str, called: str
    ) -> None:
        stage.start("Go", tool_names=names)
        stage.says(calls(call(called, parentId="p", html="<p></p>")), "Done.")
        stage.run()
        stage.answer(OK)
        stage.run()
        named = {event.wire().get("toolName") for event in stage.events()} - {None}
        assert named == {wire}

    def test_a_name_nobody_has_reaches_the_stream_as_it_is(self, stage: Stage) -> None:
        stage.start("Go", tool_names="prefixed")
        stage.says(calls(call("site_fly")), "Done.")
        stage.run()
        results = [event.wire() for event in stage.events() if event.type == "toolResult"]
        assert [(result["toolName"], result["error"]) for result in results] == [("site_fly", "Unknown tool: site_fly")]


def test_a_turns_names_are_pinned_when_it_starts(stage: Stage) -> None:
    turn = stage.start("Go", tool_names="prefixed")
    assert turns.find(stage.desk, turn.tenant, turn.id).tool_names == "prefixed"


def test_a_screenshot_is_seen_by_the_model_until_a_newer_one_or_the_turns_end(stage: Stage) -> None:
    def shot(width: int) -> dict[str, Any]:
        image = {"mimeType": "image/png", "data": base64_of(photo(width, 50, "PNG"))}
        return {"ok": True, "data": {"taken": width}, "images": [image]}

    stage.start("Look twice")
    stage.says(calls(call("read_document")), calls(call("read_document")), "Nice.")
    for width in (60, 70):
        stage.run()
        stage.answer(shot(width))
    stage.run()
    stage.start("And now?")
    stage.says("Hm.")
    stage.run()
    sent = [
        [image.data for message in ask.messages for block in message.content for image in pictures_of(block)]
        for ask in stage.driver.asks
    ]
    assert sent == [[], [base64_of(photo(60, 50, "PNG"))], [base64_of(photo(70, 50, "PNG"))], []]


def test_each_request_only_adds_to_the_end_of_the_one_before(stage: Stage) -> None:
    """What a provider has cached stays good from round to round and from turn to turn."""
    for turn in range(3):
        stage.start(f"Prompt {turn}")
        stage.says(calls(call("deleteNode", nodeId="a")), calls(call("deleteNode", nodeId="b"), text="And"), "Done.")
        for _ in range(2):
            stage.run()
            stage.answer(OK)
        stage.run()
    histories = [[message.model_dump_json() for message in ask.messages] for ask in stage.driver.asks]
    for before, after in pairwise(histories):
        assert after[: len(before)] == before
    first = stage.driver.asks[0]
    assert all((ask.system, ask.tools) == (first.system, first.tools) for ask in stage.driver.asks)


class TestAModelWithoutHands:
    @pytest.fixture
    def chosen(self, stage: Stage) -> Chosen:
        offer(stage, calls=False)
        return Chosen(credential_id="c", version=1, provider="openrouter", model="openai/model-1")

    def test_it_is_refused_where_there_are_tools(self, stage: Stage, chosen: Chosen) -> None:
        with pytest.raises(Unprocessable, match="cannot call tools"):
            check_abilities(stage.desk, ADA, chosen, "site", (TextBlock(text="Go"),))

    def test_it_may_talk_where_there_are_none_for_this_caller(self, stage: Stage, chosen: Chosen) -> None:
        check_abilities(stage.desk, ADA, chosen, "data", (TextBlock(text="Go"),))

    def test_one_that_nobody_knows_is_let_through(self, stage: Stage, chosen: Chosen) -> None:
        unknown = chosen.model_copy(update={"model": "meta/unheard-of"})
        check_abilities(stage.desk, ADA, unknown, "site", (TextBlock(text="Go"), PHOTO))
