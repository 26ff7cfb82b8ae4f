"""Images of a tool's result that were uploaded, because they are too large for the request (decision 0305)."""

from typing import Any

import pytest

from fermata.aws.clock import new_id
from fermata.domain.errors import Conflict, Gone, InvalidRequest, NotFound
from tests.images import make_image, to_base64
from tests.unit.turns.stage import Stage, reply_with_calls, tool_call_block
from tests.uploads import put_upload

PICTURE = make_image(60, 40, "PNG")
OTHER = make_image(80, 40, "PNG")


def wait_for_editor(stage: Stage) -> None:
    stage.start_turn("Look at the page")
    stage.script_replies(reply_with_calls(tool_call_block("getNodeHtml", nodeId="a")), "I see.")
    assert stage.run_workflow() == "waiting"


def show(*refs: str, **members: Any) -> dict[str, Any]:
    return {"ok": True, "data": {}, "images": [{"mimeType": "image/png", "uploadRef": ref} for ref in refs]} | members


def upload(stage: Stage, raw: bytes = PICTURE) -> str:
    return put_upload(stage.resources, stage.caller, "image", raw)


def list_seen_pictures(stage: Stage) -> list[str | None]:
    """End the turn, and return the pictures that the model was sent."""
    stage.run_workflow()
    return [image.data for result in stage.results_sent_to_model() for image in result.images or ()]


def test_the_model_sees_an_uploaded_picture_like_one_that_was_sent(stage: Stage) -> None:
    wait_for_editor(stage)
    inline = {"mimeType": "image/png", "data": to_base64(OTHER)}
    result = show(upload(stage))
    stage.answer_request(result | {"images": [*result["images"], inline]})
    assert list_seen_pictures(stage) == [to_base64(PICTURE), to_base64(OTHER)]


def test_an_answer_is_the_same_when_its_picture_was_uploaded_again_or_is_gone(stage: Stage) -> None:
    wait_for_editor(stage)
    request_id = stage.tool_requests()[-1].request_id
    first = upload(stage)
    stage.answer_request(show(first), request_id)
    stage.pass_time(60)
    second = upload(stage)
    assert second != first
    stage.answer_request(show(second), request_id)
    stage.pass_time(2 * 86_400)
    stage.answer_request(show(first), request_id)


def test_another_picture_is_another_answer(stage: Stage) -> None:
    wait_for_editor(stage)
    request_id = stage.tool_requests()[-1].request_id
    stage.answer_request(show(upload(stage)), request_id)
    with pytest.raises(Conflict):
        stage.answer_request(show(upload(stage, OTHER)), request_id)


def test_a_picture_that_cannot_be_fetched_leaves_the_request_open(stage: Stage) -> None:
    wait_for_editor(stage)
    ref = upload(stage)
    expired = ref.rpartition("-")[0] + f"-{int(stage.clock.time()) - 1}"
    never = f"image-3-{new_id(12).encode().hex().ljust(64, '0')[:64]}-{int(stage.clock.time()) + 60}"
    for bad, error in ((expired, Gone), (never, NotFound), ("no-reference", InvalidRequest)):
        with pytest.raises(error):
            stage.answer_request(show(bad))
    stage.answer_request(show(ref))
    assert list_seen_pictures(stage) == [to_base64(PICTURE)]


def test_of_too_many_pictures_only_those_that_count_are_fetched(stage: Stage) -> None:
    wait_for_editor(stage)
    never = f"image-3-{'0' * 64}-{int(stage.clock.time()) + 60}"
    stage.answer_request(show(*[upload(stage)] * 4, never))
    assert len(list_seen_pictures(stage)) == 4
