"""Later invocations know what a refusal has said of a model (decision 0267)."""

from typing import Any

import pytest

from fermata.conversations.block_predicates import block_images
from fermata.conversations.history.learned_limits import LEARNED_LIMITS_SECONDS, is_limits_mark
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.domain.blocks import ImageBlock
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import ModelRequest
from tests.images import make_image, to_base64
from tests.unit.turns.conftest import MakeStage
from tests.unit.turns.invariants import check_invariants
from tests.unit.turns.stage import OK, Stage, make_provider_error, reply_with_calls, tool_call_block

PHOTO = ImageBlock(mime_type="image/jpeg", data=to_base64(make_image()))
PAGE = {"ok": True, "data": {"html": "<p>Bread</p>" * 20_000}}


def refuse_tokens(window_tokens: int = 16_000) -> ProviderError:
    error = make_provider_error("provider_overflow", retryable=False)
    error.window_tokens = window_tokens
    return error


def refuse_images() -> ProviderError:
    error = make_provider_error("provider_images", retryable=False)
    error.says_no_images = True
    return error


def count_images(request: ModelRequest) -> int:
    return sum(len(block_images(block)) for message in request.messages for block in message.content)


def read_page_in_small_window(stage: Stage) -> None:
    """Run a turn in which the window of 16,000 tokens is learned."""
    stage.start_turn("Read the page")
    stage.script_replies(reply_with_calls(tool_call_block("getNodeHtml", nodeId="n1")), [refuse_tokens()], "Read.")
    stage.run_workflow()
    stage.answer_request(PAGE)
    assert stage.run_workflow() == "finished"


def read_page_again(stage: Stage, *refusals: ProviderError) -> int:
    """Run another turn with the same page, and return how many tokens its second request had at first."""
    sent = len(stage.driver.requests)
    stage.start_turn("Read it again")
    reply = reply_with_calls(tool_call_block("getNodeHtml", nodeId="n1"))
    stage.script_replies(reply, *[[refusal] for refusal in refusals], "Read.")
    stage.run_workflow()
    stage.answer_request(PAGE)
    assert stage.run_workflow() == "finished"
    assert len(stage.driver.requests) == sent + 2 + len(refusals)
    return estimate_tokens(stage.driver.requests[sent + 1].messages)


@pytest.fixture
def stage(staged: MakeStage) -> Stage:
    return staged(max_answer_tokens=1_000)


def test_a_stated_window_is_kept_to_in_later_turns(stage: Stage) -> None:
    read_page_in_small_window(stage)
    assert read_page_again(stage) < 16_000
    assert read_page_again(stage) < 16_000
    check_invariants(stage)


def test_a_stated_window_is_kept_to_in_later_rounds_of_the_turn(stage: Stage) -> None:
    stage.start_turn("Read the page twice")
    reply = reply_with_calls(tool_call_block("getNodeHtml", nodeId="n1"))
    again = reply_with_calls(tool_call_block("getNodeHtml", nodeId="n2"))
    stage.script_replies(reply, [refuse_tokens()], again, "Read.")
    for _ in range(2):
        stage.run_workflow()
        stage.answer_request(PAGE)
    assert stage.run_workflow() == "finished"
    assert len(stage.driver.requests) == 4
    assert estimate_tokens(stage.driver.requests[-1].messages) < 16_000
    check_invariants(stage)


def test_a_stated_window_is_forgotten_after_a_day_and_learned_again(stage: Stage) -> None:
    read_page_in_small_window(stage)
    stage.clock.advance(LEARNED_LIMITS_SECONDS - 100)
    assert read_page_again(stage) < 16_000
    stage.clock.advance(200)
    assert read_page_again(stage, refuse_tokens()) > 30_000
    assert read_page_again(stage) < 16_000


def test_a_stated_window_counts_for_its_model_and_credential_only(stage: Stage) -> None:
    read_page_in_small_window(stage)
    (marked,) = [message for message in stage.load_messages() if any(map(is_limits_mark, message.content))]
    (mark,) = filter(is_limits_mark, marked.content)
    wire: dict[str, Any] = mark.to_wire()
    assert wire["payload"] | {"learnedAt": 0} == {
        "type": "fermata.limits",
        "credential": stage.start_turn("And?").credential,
        "windowTokens": 16_000,
        "readsImages": True,
        "historyTokens": None,
        "imagesAfter": None,
        "learnedAt": 0,
    }


def test_images_are_not_offered_again_to_a_model_that_reads_none(stage: Stage) -> None:
    stage.start_turn("Look", pictures=(PHOTO,))
    stage.script_replies([refuse_images()], "I cannot see it.")
    assert stage.run_workflow() == "finished"
    stage.start_turn("And this?", pictures=(PHOTO,))
    stage.script_replies("Nor this.")
    assert stage.run_workflow() == "finished"
    assert [count_images(request) for request in stage.driver.requests] == [1, 0, 0]
    check_invariants(stage)


def test_no_screenshot_is_taken_for_a_model_that_reads_none(stage: Stage) -> None:
    stage.start_turn("Look", pictures=(PHOTO,))
    call = reply_with_calls(tool_call_block("render_snapshot"))
    stage.script_replies([refuse_images()], call)
    assert stage.run_workflow() == "waiting"
    assert stage.tool_requests()[-1].input == {"captureScreenshot": False}


def test_images_of_all_turns_are_left_out_at_once(stage: Stage) -> None:
    stage.start_turn("Look", pictures=(PHOTO,))
    stage.script_replies("Nice.")
    stage.run_workflow()
    stage.start_turn("And this?", pictures=(PHOTO,))
    stage.script_replies([refuse_images()], "I cannot see them.")
    assert stage.run_workflow() == "finished"
    assert [count_images(request) for request in stage.driver.requests] == [1, 2, 0]


def test_an_image_that_is_not_readable_is_not_offered_again_and_says_nothing_of_the_next_one(stage: Stage) -> None:
    stage.start_turn("Look", pictures=(PHOTO,))
    stage.script_replies([make_provider_error("provider_images", retryable=False)], "It is broken.")
    assert stage.run_workflow() == "finished"
    for prompt, pictures in (("And now?", ()), ("And this?", (PHOTO,)), ("And now?", ())):
        stage.start_turn(prompt, pictures=pictures)
        stage.script_replies("Nice.")
        assert stage.run_workflow() == "finished"
    assert [count_images(request) for request in stage.driver.requests] == [1, 0, 0, 1, 1]
    check_invariants(stage)


def test_a_broken_screenshot_is_left_out_and_the_next_one_is_seen(stage: Stage) -> None:
    picture = {"mimeType": PHOTO.mime_type, "data": PHOTO.data}
    stage.start_turn("Look")
    looks = [reply_with_calls(tool_call_block("render_snapshot")) for _ in range(2)]
    stage.script_replies(looks[0], [make_provider_error("provider_images", retryable=False)], looks[1], "Nice.")
    for _ in range(2):
        stage.run_workflow()
        stage.answer_request({"ok": True, "data": {}, "images": [picture]})
    assert stage.run_workflow() == "finished"
    assert [count_images(request) for request in stage.driver.requests] == [0, 1, 0, 1]


def test_a_history_that_was_too_long_is_not_sent_again_where_no_window_was_stated(stage: Stage) -> None:
    stage.start_turn("Read the page")
    refusal = make_provider_error("provider_overflow", retryable=False)
    stage.script_replies(reply_with_calls(tool_call_block("getNodeHtml", nodeId="n1")), [refusal], "Read.")
    stage.run_workflow()
    stage.answer_request(PAGE)
    assert stage.run_workflow() == "finished"
    refused, accepted = (estimate_tokens(request.messages) for request in stage.driver.requests[-2:])
    assert read_page_again(stage) <= accepted < refused
    stage.clock.advance(LEARNED_LIMITS_SECONDS + 100)
    assert read_page_again(stage) > accepted


def test_what_was_learned_is_never_sent(stage: Stage) -> None:
    read_page_in_small_window(stage)
    stage.start_turn("And now?")
    stage.script_replies(reply_with_calls(tool_call_block("deleteNode", nodeId="a")), "Done.")
    stage.run_workflow()
    stage.answer_request(OK)
    stage.run_workflow()
    blocks = [block for sent in stage.driver.requests for message in sent.messages for block in message.content]
    assert not any(map(is_limits_mark, blocks))
    stored = [block for message in stage.load_messages() for block in message.content if is_limits_mark(block)]
    assert len(stored) == 3
