"""The context window: how much of a conversation a model gets, with which tool names, and what is refused."""

import base64
from itertools import pairwise
from typing import Any

import pytest

from fermata.conversations.block_predicates import block_images
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.conversations.history.truncation import BEGINNING_OMITTED_NOTE
from fermata.credentials.model_choice import ModelChoice
from fermata.domain.blocks import ImageBlock, TextBlock, ToolResultBlock
from fermata.domain.errors import Unprocessable
from fermata.domain.model_io import ModelRequest
from fermata.pricing import catalogue
from fermata.pricing.catalogue import PriceCatalogue, PricedModel
from fermata.pricing.token_cost import Price
from fermata.turns.start.model_checks import check_model_abilities
from fermata.turns.turn import find_turn
from tests.images import make_image, open_image, to_base64
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.invariants import check_invariants
from tests.unit.turns.stage import ADA, OK, Stage, make_provider_error, reply_with_calls, tool_call_block

PHOTO = ImageBlock(mime_type="image/jpeg", data=to_base64(make_image()))


def run_text_turns(stage: Stage, turns: int, size: int = 3_000) -> None:
    for _ in range(turns):
        stage.start_turn("x" * size)
        stage.script_replies("Ok.")
        stage.run_workflow()


def texts_of(request: ModelRequest) -> list[str]:
    return [block.text for message in request.messages for block in message.content if isinstance(block, TextBlock)]


def set_catalogue_entry(stage: Stage, **facts: Any) -> None:
    """Set the price catalogue's entry of the stage's model."""
    price = Price(input_per_mtok=1, output_per_mtok=1)
    catalogue.store_catalogue(
        stage.resources, PriceCatalogue(refreshed_at=1, priced_models={"model-1": PricedModel(price=price, **facts)})
    )


class TestWindow:
    def test_a_long_conversation_is_cut_to_the_models_window(self, stage: Stage) -> None:
        set_catalogue_entry(stage, context_window=20_000)
        run_text_turns(stage, 12)
        sent = stage.driver.requests[-1].messages
        assert estimate_tokens(sent) < 20_000 * 0.9 - stage.resources.settings.max_answer_tokens
        assert sent[0].role == "user"
        assert texts_of(stage.driver.requests[-1])[0] == BEGINNING_OMITTED_NOTE
        assert len(sent) < 20

    def test_an_unknown_model_has_the_default_window(self, staged: MakeStage) -> None:
        stage = staged(default_window_tokens=20_000)
        run_text_turns(stage, 12)
        assert texts_of(stage.driver.requests[-1])[0] == BEGINNING_OMITTED_NOTE

    def test_a_short_conversation_is_sent_whole(self, stage: Stage) -> None:
        set_catalogue_entry(stage, context_window=200_000)
        run_text_turns(stage, 12)
        assert len(stage.driver.requests[-1].messages) == 23

    def test_after_an_overflow_half_the_history_is_sent_and_half_again(self, stage: Stage) -> None:
        run_text_turns(stage, 8)
        stage.start_turn("And now?")
        overflow = make_provider_error("provider_overflow", retryable=False)
        stage.script_replies([overflow], [overflow], "Better.")
        assert stage.run_workflow() == "finished"
        sizes = [estimate_tokens(request.messages) for request in stage.driver.requests[-3:]]
        assert sizes[0] / 2 >= sizes[1] >= 2 * sizes[2]
        assert texts_of(stage.driver.requests[-1])[-1] == "And now?"
        assert stage.streamed_text() == "Better."
        assert "roundRetracted" not in stage.event_types()
        check_invariants(stage)

    def test_a_window_that_a_server_states_is_kept_to_at_once(self, staged: MakeStage) -> None:
        """Half and half again would not come from 128,000 tokens to 8,000 in four attempts."""
        stage = staged(max_answer_tokens=1_000)
        stage.start_turn("Read the page")
        reply = reply_with_calls(tool_call_block("getNodeHtml", nodeId="n1"))
        overflow = make_provider_error("provider_overflow", retryable=False)
        overflow.window_tokens = 16_000
        stage.script_replies(reply, [overflow], "Read.")
        assert stage.run_workflow() == "waiting"
        stage.answer_request({"ok": True, "data": {"html": "<p>Bread</p>" * 20_000}})
        assert stage.run_workflow() == "finished"
        refused, sent = [estimate_tokens(request.messages) for request in stage.driver.requests[-2:]]
        assert refused > 30_000
        assert 1_000 < sent < 10_000
        assert stage.streamed_text() == "Read."
        check_invariants(stage)

    def test_a_stated_window_that_was_kept_to_is_halved(self, stage: Stage) -> None:
        """Tokens are estimated, and the provider counts more."""
        run_text_turns(stage, 8)
        stage.start_turn("And now?")
        overflow = make_provider_error("provider_overflow", retryable=False)
        overflow.window_tokens = 100_000
        stage.script_replies([overflow], "Better.")
        assert stage.run_workflow() == "finished"
        sizes = [estimate_tokens(request.messages) for request in stage.driver.requests[-2:]]
        assert sizes[0] / 2 >= sizes[1]

    def test_an_overflow_that_cannot_be_reduced_ends_the_turn(self, stage: Stage) -> None:
        stage.start_turn("x" * 5_000)
        stage.script_replies([make_provider_error("provider_overflow", retryable=False)])
        stage.run_workflow()
        end = stage.terminal_events()[0].to_wire()
        assert end["code"] == "provider_overflow"
        assert "It is saved. Begin a new conversation" in end["message"]
        check_invariants(stage)


class TestImages:
    def test_images_for_a_model_without_vision_are_refused_before_anything_is_written(self, stage: Stage) -> None:
        set_catalogue_entry(stage, can_read_images=False)
        with pytest.raises(Unprocessable, match="cannot see images"):
            stage.start_turn("Look", pictures=(PHOTO,))
        assert stage.load_messages() == []
        assert stage.claim() is None
        stage.start_turn("No picture")

    @pytest.mark.parametrize("facts", [{"can_read_images": True}, {"can_read_images": None}])
    def test_a_model_with_vision_or_unknown_abilities_gets_images(self, stage: Stage, facts: dict[str, Any]) -> None:
        set_catalogue_entry(stage, **facts)
        stage.start_turn("Look", pictures=(PHOTO,))
        stage.script_replies("Nice.")
        stage.run_workflow()
        (message,) = stage.driver.requests[0].messages
        assert isinstance(message.content[1], ImageBlock)
        assert open_image(base64.b64decode(message.content[1].data or "")).size == (40, 30)

    def test_a_conversation_with_images_continues_with_a_model_without_vision(self, stage: Stage) -> None:
        stage.start_turn("Look", pictures=(PHOTO,))
        stage.script_replies("Nice.")
        stage.run_workflow()
        set_catalogue_entry(stage, can_read_images=False)
        stage.start_turn("And now?")
        stage.script_replies("I was told so.")
        stage.run_workflow()
        assert not any(
            block.kind == "image" for message in stage.driver.requests[-1].messages for block in message.content
        )
        assert any("does not support image input" in text for text in texts_of(stage.driver.requests[-1]))

    def test_after_a_refusal_the_images_of_earlier_turns_are_left_out(self, stage: Stage) -> None:
        stage.start_turn("Look", pictures=(PHOTO, PHOTO))
        stage.script_replies("Nice.")
        stage.run_workflow()
        stage.start_turn("And this?", pictures=(PHOTO,))
        stage.script_replies([make_provider_error("provider_overflow", retryable=False)], "Better.")
        assert stage.run_workflow() == "finished"
        before, after = (
            [[block.kind for block in message.content] for message in request.messages if message.role == "user"]
            for request in stage.driver.requests[-2:]
        )
        assert before == [["text", "image", "image"], ["text", "image"]]
        assert after == [["text", "text"], ["text", "image"]]
        assert "ask for a smaller one" in texts_of(stage.driver.requests[-1])[1]
        assert stage.terminal_events()[0].type == "done"
        check_invariants(stage)

    def test_a_server_with_a_low_limit_gets_fewer_images_each_time(self, stage: Stage) -> None:
        stage.start_turn("Compare", pictures=(PHOTO,) * 8)
        overflow = make_provider_error("provider_overflow", retryable=False)
        stage.script_replies([overflow], [overflow], "I see two.")
        assert stage.run_workflow() == "finished"
        image_counts = [
            sum(block.kind == "image" for block in request.messages[-1].content) for request in stage.driver.requests
        ]
        assert image_counts == [8, 4, 2]
        check_invariants(stage)

    def test_an_unreadable_image_does_not_block_the_conversation(self, stage: Stage) -> None:
        stage.start_turn("Look", pictures=(PHOTO,))
        stage.script_replies("Nice.")
        stage.run_workflow()
        stage.start_turn("And this?", pictures=(PHOTO,))
        refusal = make_provider_error("provider_images", retryable=False)
        stage.script_replies([refusal], [refusal], "I can see neither.")
        assert stage.run_workflow() == "finished"
        image_counts = [
            sum(block.kind == "image" for message in request.messages for block in message.content)
            for request in stage.driver.requests[-3:]
        ]
        assert image_counts == [2, 1, 0]
        assert stage.terminal_events()[0].type == "done"
        check_invariants(stage)

    def test_a_refusal_of_images_without_images_ends_the_turn(self, stage: Stage) -> None:
        stage.start_turn("No picture")
        stage.script_replies([make_provider_error("provider_images", retryable=False)])
        stage.run_workflow()
        assert stage.terminal_events()[0].to_wire()["code"] == "provider_images"
        check_invariants(stage)


class TestStaleResults:
    def test_a_turn_keeps_its_last_heavy_result_and_the_next_turn_drops_it(self, stage: Stage) -> None:
        stage.start_turn("Read twice")
        stage.script_replies(
            reply_with_calls(tool_call_block("read_document")),
            reply_with_calls(tool_call_block("read_document")),
            "Read.",
        )
        for number in range(2):
            stage.run_workflow()
            stage.answer_request({"ok": True, "data": {"html": f"<p>{number}</p>"}})
        stage.run_workflow()
        stage.start_turn("And now?")
        stage.script_replies("Hm.")
        stage.run_workflow()
        results = [
            [
                block.data
                for message in request.messages
                for block in message.content
                if isinstance(block, ToolResultBlock)
            ]
            for request in stage.driver.requests
        ]
        assert results[1] == [{"html": "<p>0</p>"}]
        assert [data.get("elided", False) for data in results[2]] == [True, False]
        assert [data.get("elided", False) for data in results[3]] == [True, True]


class TestToolNames:
    def test_model_and_editor_get_the_tool_names_of_the_tenant(self, stage: Stage) -> None:
        stage.start_turn("Go", tool_names="prefixed")
        stage.script_replies(
            reply_with_calls(tool_call_block("site_insert_html", parentId="p", html="<p></p>")), "Done."
        )
        stage.run_workflow()
        assert {spec.name for spec in stage.driver.requests[0].tools} >= {"site_insert_html", "site_read_document"}
        assert "insertHtml" not in stage.driver.requests[0].system
        assert stage.tool_requests()[0].tool_name == "site_insert_html"
        stage.answer_request(OK)
        stage.run_workflow()
        assert stage.terminal_events()[0].type == "done"

    @pytest.mark.parametrize(("names", "wire"), [("prefixed", "site_insert_html"), ("seed", "insertHtml")])
    @pytest.mark.parametrize("called", ["insertHtml", "site_insert_html"])
    def test_the_editor_gets_the_name_it_knows_for_every_name_the_model_uses(
        self, stage: Stage, names: Any, wire: str, called: str
    ) -> None:
        stage.start_turn("Go", tool_names=names)
        stage.script_replies(reply_with_calls(tool_call_block(called, parentId="p", html="<p></p>")), "Done.")
        stage.run_workflow()
        stage.answer_request(OK)
        stage.run_workflow()
        named = {event.to_wire().get("toolName") for event in stage.events()} - {None}
        assert named == {wire}

    def test_an_unknown_tool_name_is_streamed_unchanged(self, stage: Stage) -> None:
        stage.start_turn("Go", tool_names="prefixed")
        stage.script_replies(reply_with_calls(tool_call_block("site_fly")), "Done.")
        stage.run_workflow()
        results = [event.to_wire() for event in stage.events() if event.type == "toolResult"]
        assert [(result["toolName"], result["error"]) for result in results] == [("site_fly", "Unknown tool: site_fly")]


def test_tool_names_are_pinned_when_a_turn_starts(stage: Stage) -> None:
    turn = stage.start_turn("Go", tool_names="prefixed")
    assert find_turn(stage.resources, turn.tenant, turn.id).tool_names == "prefixed"


def test_a_screenshot_is_sent_until_a_newer_one_or_the_end_of_the_turn(stage: Stage) -> None:
    def shot(width: int) -> dict[str, Any]:
        image = {"mimeType": "image/png", "data": to_base64(make_image(width, 50, "PNG"))}
        return {"ok": True, "data": {"taken": width}, "images": [image]}

    stage.start_turn("Look twice")
    stage.script_replies(
        reply_with_calls(tool_call_block("read_document")), reply_with_calls(tool_call_block("read_document")), "Nice."
    )
    for width in (60, 70):
        stage.run_workflow()
        stage.answer_request(shot(width))
    stage.run_workflow()
    stage.start_turn("And now?")
    stage.script_replies("Hm.")
    stage.run_workflow()
    sent = [
        [image.data for message in request.messages for block in message.content for image in block_images(block)]
        for request in stage.driver.requests
    ]
    assert sent == [[], [to_base64(make_image(60, 50, "PNG"))], [to_base64(make_image(70, 50, "PNG"))], []]


def test_each_request_extends_the_one_before(stage: Stage) -> None:
    """The provider's prompt cache stays valid from round to round and from turn to turn."""
    for turn in range(3):
        stage.start_turn(f"Prompt {turn}")
        stage.script_replies(
            reply_with_calls(tool_call_block("deleteNode", nodeId="a")),
            reply_with_calls(tool_call_block("deleteNode", nodeId="b"), text="And"),
            "Done.",
        )
        for _ in range(2):
            stage.run_workflow()
            stage.answer_request(OK)
        stage.run_workflow()
    histories = [[message.model_dump_json() for message in request.messages] for request in stage.driver.requests]
    for before, after in pairwise(histories):
        assert after[: len(before)] == before
    first = stage.driver.requests[0]
    assert all((request.system, request.tools) == (first.system, first.tools) for request in stage.driver.requests)


class TestModelWithoutTools:
    @pytest.fixture
    def chosen(self, stage: Stage) -> ModelChoice:
        set_catalogue_entry(stage, can_call_tools=False)
        return ModelChoice(credential_id="c", version=1, provider="openrouter", model="openai/model-1")

    def test_it_is_refused_in_a_scope_with_tools(self, stage: Stage, chosen: ModelChoice) -> None:
        with pytest.raises(Unprocessable, match="cannot call tools"):
            check_model_abilities(stage.resources, ADA, chosen, "site", (TextBlock(text="Go"),))

    def test_it_is_accepted_where_the_caller_has_no_tools(self, stage: Stage, chosen: ModelChoice) -> None:
        check_model_abilities(stage.resources, ADA, chosen, "data", (TextBlock(text="Go"),))

    def test_a_model_with_unknown_abilities_is_accepted(self, stage: Stage, chosen: ModelChoice) -> None:
        unknown = chosen.model_copy(update={"model": "meta/unheard-of"})
        check_model_abilities(stage.resources, ADA, unknown, "site", (TextBlock(text="Go"), PHOTO))
