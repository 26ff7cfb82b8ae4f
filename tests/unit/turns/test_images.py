"""Images that come in: a prompt's are drawn anew or refused, a result's are made fit or left out."""

import base64
from typing import Any

import pytest

from fermata.aws.blob_store import conversation_folder
from fermata.conversations.image_reencoding import MAX_JPEG_BYTES
from fermata.domain.blocks import ImageBlock
from fermata.domain.errors import ApiError, Conflict, Gone, InvalidRequest, NotFound, PayloadTooLarge
from fermata.domain.tools import ToolImage, ToolOutput
from fermata.turns.answer.result_images import MAX_RESULT_IMAGES, OMITTED_IMAGES_KEY, normalize_result_images
from tests.images import make_image, make_jpeg_header, make_png_header, open_image, to_base64
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block
from tests.uploads import announce_test_upload, put_upload


def image(raw: bytes, kind: str = "image/jpeg") -> ImageBlock:
    return ImageBlock(mime_type=kind, data=to_base64(raw))


def sent(stage: Stage, ask: int = -1) -> list[ImageBlock]:
    """Images of prompts in what a provider was sent."""
    blocks = [block for message in stage.driver.requests[ask].messages for block in message.content]
    return [block for block in blocks if isinstance(block, ImageBlock)]


def objects(stage: Stage) -> list[str]:
    """What this conversation has in the bucket."""
    prefix = conversation_folder(stage.caller.tenant, stage.conversation.id)
    listed = stage.resources.blobs._client.list_objects_v2(Bucket=stage.resources.settings.bucket, Prefix=prefix)
    return [str(entry["Key"]) for entry in listed.get("Contents", [])]


class TestAPrompt:
    @pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP"])
    def test_its_images_reach_the_model_and_the_bucket_as_small_jpegs(self, stage: Stage, kind: str) -> None:
        stage.start_turn("Look", pictures=(image(make_image(1700, 100, kind), f"image/{kind.lower()}"),))
        stage.script_replies("Nice.")
        stage.run_workflow()
        (seen,) = sent(stage)
        raw = base64.b64decode(seen.data or "")
        assert (seen.mime_type, open_image(raw).format, open_image(raw).size) == ("image/jpeg", "JPEG", (1568, 92))
        assert len(objects(stage)) == 1

    def test_an_uploaded_one_is_fetched_drawn_and_remembered_without_its_reference(self, stage: Stage) -> None:
        ref = put_upload(stage.resources, stage.caller, "image", make_image(60, 40, "PNG"))
        stage.start_turn("Look", pictures=(ImageBlock(mime_type="image/png", blob=ref), image(make_image(20, 10))))
        stage.script_replies("Nice.")
        stage.run_workflow()
        assert [open_image(base64.b64decode(one.data or "")).size for one in sent(stage)] == [(60, 40), (20, 10)]
        kept = stage.load_messages()[0].content[1]
        assert isinstance(kept, ImageBlock)
        assert (kept.blob or "").startswith(f"conversations/{stage.caller.tenant}/")

    @pytest.mark.parametrize(
        ("raw", "kind", "error", "says"),
        [
            (make_image(60, 40)[:-200], "image/jpeg", InvalidRequest, "'content.2.data' is damaged, or cut off"),
            (make_jpeg_header(), "image/jpeg", InvalidRequest, "'content.2.data' is damaged, or cut off"),
            (b"<svg/>", "image/jpeg", InvalidRequest, "'content.2.data' is none of image/jpeg, image/png"),
            (
                make_image(60, 40, "PNG"),
                "image/jpeg",
                InvalidRequest,
                "'content.2.data' does not hold the image/jpeg it says",
            ),
            (
                make_png_header(40_000, 40_000),
                "image/png",
                PayloadTooLarge,
                "'content.2.data' has 40,000 by 40,000 pixels",
            ),
        ],
    )
    def test_one_that_cannot_be_drawn_is_named_and_nothing_is_stored(
        self, stage: Stage, raw: bytes, kind: str, error: type[ApiError], says: str
    ) -> None:
        pictures = (image(make_image()), image(raw, kind))
        with pytest.raises(error, match=says):
            stage.start_turn("Look", pictures=pictures, image_paths=("content.0.data", "content.2.data"))
        assert (stage.load_messages(), stage.claim(), objects(stage)) == ([], None, [])

    @pytest.mark.parametrize("instead", [b"<html>", make_image(61, 40)])
    def test_an_upload_that_holds_something_else_is_refused(self, stage: Stage, instead: bytes) -> None:
        ref = put_upload(stage.resources, stage.caller, "image", make_image(60, 40), instead=instead)
        with pytest.raises(Conflict, match="not what was announced"):
            stage.start_turn("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=ref),))
        assert stage.load_messages() == []

    def test_an_upload_that_never_came_or_is_too_old_is_refused(self, stage: Stage) -> None:
        ref = announce_test_upload(stage.resources, "image", make_image()).ref
        with pytest.raises(NotFound):
            stage.start_turn("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=ref),))
        stage.pass_time(86_401)
        with pytest.raises(Gone):
            stage.start_turn("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=ref),))

    def test_together_they_may_not_be_too_many_bytes(self, stage: Stage) -> None:
        ref = f"image-9000000-{'a' * 64}-1900000000"
        with pytest.raises(PayloadTooLarge, match="30,000,000 bytes together"):
            stage.start_turn("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=ref),) * 4)

    def test_the_same_request_joins_its_turn_although_its_images_were_drawn_anew(self, stage: Stage) -> None:
        parts = {"pictures": (image(make_image(60, 40, "PNG"), "image/png"),), "idempotency_key": "once"}
        assert stage.start_turn("Look", **parts).id == stage.start_turn("Look", **parts).id


def output(*raw: bytes | str, data: Any = None) -> ToolOutput:
    coded = [one if isinstance(one, str) else to_base64(one) for one in raw]
    return ToolOutput(ok=True, data=data, images=tuple(ToolImage(mime_type="image/png", data=one) for one in coded))


def sizes(made: ToolOutput) -> list[tuple[int, int]]:
    return [open_image(base64.b64decode(one.data)).size for one in made.images or ()]


class TestAResult:
    def test_a_sound_screenshot_goes_on_as_it_came(self) -> None:
        shot = output(make_image(60, 40, "PNG"), data={"layout": []})
        assert normalize_result_images(shot) == shot

    def test_a_result_without_images_is_left_alone(self) -> None:
        for plain in (ToolOutput.success({"a": 1}), ToolOutput.failure("no")):
            assert normalize_result_images(plain) is plain

    def test_its_kind_is_what_it_is_not_what_it_is_called(self) -> None:
        made = normalize_result_images(output(make_image(60, 40, "JPEG")))
        assert [one.mime_type for one in made.images or ()] == ["image/jpeg"]

    def test_a_large_one_is_made_smaller(self) -> None:
        noise = base64.b64encode(make_image(2001, 1500, "PNG")).decode()
        made = normalize_result_images(output(noise, make_image(1000, 8000, "PNG")))
        assert sizes(made) == [(1414, 1060), (196, 1568)]
        assert all(len(base64.b64decode(one.data)) <= MAX_JPEG_BYTES for one in made.images or ())

    @pytest.mark.parametrize(
        "bad",
        [b"<svg/>", make_jpeg_header(), make_image(60, 40, "PNG")[:-40], make_png_header(40_000, 40_000), "%%%", ""],
    )
    @pytest.mark.parametrize("data", [{"layout": [], "note": "n"}, [1], None])
    def test_what_is_no_picture_is_left_out_and_the_model_is_told(self, bad: bytes | str, data: Any) -> None:
        made = normalize_result_images(output(bad, make_image(60, 40), data=data))
        assert sizes(made) == [(60, 40)]
        assert isinstance(made.data, dict)
        assert made.data.pop(OMITTED_IMAGES_KEY).startswith("1 image(s): damaged")
        assert made.data == (data if isinstance(data, dict) else {"data": data})

    def test_of_very_many_only_a_few_are_looked_at(self) -> None:
        made = normalize_result_images(output(*[make_image(20 + number, 20) for number in range(9)]))
        assert len(made.images or ()) == MAX_RESULT_IMAGES
        assert str(made.data[OMITTED_IMAGES_KEY]).startswith("5 image(s)")

    def test_an_editors_answer_is_made_fit_before_it_is_kept(self, stage: Stage) -> None:
        stage.start_turn("Look")
        stage.script_replies(reply_with_calls(tool_call_block("read_document")), "I see.")
        stage.run_workflow()
        shown = [make_image(3000, 2000, "PNG"), b"<svg/>"]
        images = [{"mimeType": "image/png", "data": to_base64(raw)} for raw in shown]
        for _ in range(2):  # the same answer again changes nothing
            stage.answer_request(OK | {"images": images})
        assert stage.run_workflow() == "finished"
        (result,) = stage.results_sent_to_model()
        assert [(one.width, one.height) for one in result.images or ()] == [(1500, 1000)]
        assert result.data[OMITTED_IMAGES_KEY].startswith("1 image(s)")

    def test_a_result_that_is_nothing_but_bad_images_is_still_a_result(self, stage: Stage) -> None:
        stage.start_turn("Look")
        stage.script_replies(reply_with_calls(tool_call_block("read_document")), "I see nothing.")
        stage.run_workflow()
        stage.answer_request({"ok": True, "images": [{"mimeType": "image/svg+xml", "data": to_base64(b"<svg/>")}]})
        assert stage.run_workflow() == "finished"
        (result,) = stage.results_sent_to_model()
        assert (result.ok, result.images) == (True, None)


class TestTheEstimate:
    """What is held of a budget, and what a request is thought to have used when nobody says."""

    def test_a_picture_counts_as_what_providers_count_and_not_by_its_characters(self, stage: Stage) -> None:
        stage.start_turn("Look", pictures=(image(make_image(1568, 956, quality=100)),) * 2)
        stage.script_replies("Nice.")
        stage.run_workflow()
        estimates = [entry.state.estimated_prompt_tokens for entry in stage.entries()]
        estimate = next(tokens for tokens in estimates if tokens)
        assert 2 * 1600 <= estimate < 2 * 1600 + 1000

    def test_a_prompt_with_pictures_holds_their_tokens_too(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        held: list[int] = []
        monkeypatch.setattr(
            "fermata.turns.start.start_turn.hold_request_budget",
            lambda _resources, _turn, _round, _attempt, prompt_tokens: held.append(prompt_tokens),
        )
        stage.start_turn("Look", pictures=(image(make_image()),) * 8)
        assert held[0] >= 8 * 1600
