"""Images: a prompt's are re-encoded or refused, a result's are normalized or left out (decision 0111)."""

import base64
from typing import Any

import pytest

from fermata.aws.blob_store import conversation_folder
from fermata.conversations.image_reencoding import MAX_JPEG_BYTES
from fermata.domain.blocks import ImageBlock
from fermata.domain.errors import ApiError, Conflict, Gone, InvalidRequest, NotFound, PayloadTooLarge
from fermata.domain.tools import ToolImage, ToolOutput
from fermata.turns.answer.normalize_result_images import MAX_RESULT_IMAGES, OMITTED_IMAGES_KEY, normalize_result_images
from tests.images import make_image, make_jpeg_header, make_png_header, open_image, to_base64
from tests.unit.turns.stage import OK, Stage, reply_with_calls, tool_call_block
from tests.uploads import announce_test_upload, put_upload


def image_block(raw: bytes, kind: str = "image/jpeg") -> ImageBlock:
    return ImageBlock(mime_type=kind, data=to_base64(raw))


def sent_images(stage: Stage, request: int = -1) -> list[ImageBlock]:
    """Return the prompt images in a model request."""
    blocks = [block for message in stage.driver.requests[request].messages for block in message.content]
    return [block for block in blocks if isinstance(block, ImageBlock)]


def stored_images(stage: Stage) -> list[str]:
    """Return the conversation's keys in the bucket."""
    prefix = conversation_folder(stage.caller.tenant, stage.conversation.id)
    listed = stage.resources.blobs._client.list_objects_v2(Bucket=stage.resources.settings.bucket, Prefix=prefix)
    return [str(entry["Key"]) for entry in listed.get("Contents", [])]


class TestPromptImages:
    @pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP"])
    def test_images_are_sent_and_stored_as_small_jpegs(self, stage: Stage, kind: str) -> None:
        stage.start_turn("Look", pictures=(image_block(make_image(1700, 100, kind), f"image/{kind.lower()}"),))
        stage.script_replies("Nice.")
        stage.run_workflow()
        (sent_image,) = sent_images(stage)
        raw = base64.b64decode(sent_image.data or "")
        assert (sent_image.mime_type, open_image(raw).format, open_image(raw).size) == (
            "image/jpeg",
            "JPEG",
            (1568, 92),
        )
        assert len(stored_images(stage)) == 1

    def test_an_uploaded_image_is_reencoded_and_stored_without_its_reference(self, stage: Stage) -> None:
        ref = put_upload(stage.resources, stage.caller, "image", make_image(60, 40, "PNG"))
        stage.start_turn(
            "Look", pictures=(ImageBlock(mime_type="image/png", blob=ref), image_block(make_image(20, 10)))
        )
        stage.script_replies("Nice.")
        stage.run_workflow()
        assert [open_image(base64.b64decode(item.data or "")).size for item in sent_images(stage)] == [
            (60, 40),
            (20, 10),
        ]
        stored_block = stage.load_messages()[0].content[1]
        assert isinstance(stored_block, ImageBlock)
        assert (stored_block.blob or "").startswith(f"conversations/{stage.caller.tenant}/")

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
    def test_an_invalid_image_is_named_and_nothing_is_stored(
        self, stage: Stage, raw: bytes, kind: str, error: type[ApiError], says: str
    ) -> None:
        pictures = (image_block(make_image()), image_block(raw, kind))
        with pytest.raises(error, match=says):
            stage.start_turn("Look", pictures=pictures, image_paths=("content.0.data", "content.2.data"))
        assert (stage.load_messages(), stage.claim(), stored_images(stage)) == ([], None, [])

    @pytest.mark.parametrize("instead", [b"<html>", make_image(61, 40)])
    def test_an_upload_of_another_type_is_refused(self, stage: Stage, instead: bytes) -> None:
        ref = put_upload(stage.resources, stage.caller, "image", make_image(60, 40), instead=instead)
        with pytest.raises(Conflict, match="differs from the announced content"):
            stage.start_turn("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=ref),))
        assert stage.load_messages() == []

    def test_a_missing_or_expired_upload_is_refused(self, stage: Stage) -> None:
        ref = announce_test_upload(stage.resources, "image", make_image()).ref
        with pytest.raises(NotFound):
            stage.start_turn("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=ref),))
        stage.pass_time(86_401)
        with pytest.raises(Gone):
            stage.start_turn("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=ref),))

    def test_the_bytes_of_all_images_are_limited(self, stage: Stage) -> None:
        ref = f"image-9000000-{'a' * 64}-1900000000"
        with pytest.raises(PayloadTooLarge, match="30,000,000 bytes together"):
            stage.start_turn("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=ref),) * 4)

    def test_the_same_request_joins_its_turn_although_images_were_reencoded(self, stage: Stage) -> None:
        parts = {"pictures": (image_block(make_image(60, 40, "PNG"), "image/png"),), "idempotency_key": "once"}
        assert stage.start_turn("Look", **parts).id == stage.start_turn("Look", **parts).id


def tool_output(*raw: bytes | str, data: Any = None) -> ToolOutput:
    coded = [item if isinstance(item, str) else to_base64(item) for item in raw]
    return ToolOutput(ok=True, data=data, images=tuple(ToolImage(mime_type="image/png", data=item) for item in coded))


def image_sizes(normalized: ToolOutput) -> list[tuple[int, int]]:
    return [open_image(base64.b64decode(item.data)).size for item in normalized.images or ()]


class TestResultImages:
    def test_a_valid_screenshot_is_kept_unchanged(self) -> None:
        shot = tool_output(make_image(60, 40, "PNG"), data={"layout": []})
        assert normalize_result_images(shot) == shot

    def test_a_result_without_images_is_unchanged(self) -> None:
        for plain in (ToolOutput.success({"a": 1}), ToolOutput.failure("no")):
            assert normalize_result_images(plain) is plain

    def test_the_media_type_is_read_from_the_bytes(self) -> None:
        normalized = normalize_result_images(tool_output(make_image(60, 40, "JPEG")))
        assert [item.mime_type for item in normalized.images or ()] == ["image/jpeg"]

    def test_a_large_image_is_made_smaller(self) -> None:
        noise = base64.b64encode(make_image(2001, 1500, "PNG")).decode()
        normalized = normalize_result_images(tool_output(noise, make_image(1000, 8000, "PNG")))
        assert image_sizes(normalized) == [(1414, 1060), (196, 1568)]
        assert all(len(base64.b64decode(item.data)) <= MAX_JPEG_BYTES for item in normalized.images or ())

    @pytest.mark.parametrize(
        "bad",
        [b"<svg/>", make_jpeg_header(), make_image(60, 40, "PNG")[:-40], make_png_header(40_000, 40_000), "%%%", ""],
    )
    @pytest.mark.parametrize("data", [{"layout": [], "note": "n"}, [1], None])
    def test_an_invalid_image_is_left_out_with_a_note(self, bad: bytes | str, data: Any) -> None:
        normalized = normalize_result_images(tool_output(bad, make_image(60, 40), data=data))
        assert image_sizes(normalized) == [(60, 40)]
        assert isinstance(normalized.data, dict)
        assert normalized.data.pop(OMITTED_IMAGES_KEY).startswith("1 image(s): damaged")
        assert normalized.data == (data if isinstance(data, dict) else {"data": data})

    def test_only_the_first_images_are_decoded(self) -> None:
        normalized = normalize_result_images(tool_output(*[make_image(20 + number, 20) for number in range(9)]))
        assert len(normalized.images or ()) == MAX_RESULT_IMAGES
        assert str(normalized.data[OMITTED_IMAGES_KEY]).startswith("5 image(s)")

    def test_images_of_an_answer_are_normalized_before_they_are_stored(self, stage: Stage) -> None:
        stage.start_turn("Look")
        stage.script_replies(reply_with_calls(tool_call_block("read_document")), "I see.")
        stage.run_workflow()
        raw_images = [make_image(3000, 2000, "PNG"), b"<svg/>"]
        images = [{"mimeType": "image/png", "data": to_base64(raw)} for raw in raw_images]
        for _ in range(2):  # the same answer again changes nothing
            stage.answer_request(OK | {"images": images})
        assert stage.run_workflow() == "finished"
        (result,) = stage.results_sent_to_model()
        assert [(item.width, item.height) for item in result.images or ()] == [(1500, 1000)]
        assert result.data[OMITTED_IMAGES_KEY].startswith("1 image(s)")

    def test_a_result_of_invalid_images_only_is_still_a_result(self, stage: Stage) -> None:
        stage.start_turn("Look")
        stage.script_replies(reply_with_calls(tool_call_block("read_document")), "I see nothing.")
        stage.run_workflow()
        stage.answer_request({"ok": True, "images": [{"mimeType": "image/svg+xml", "data": to_base64(b"<svg/>")}]})
        assert stage.run_workflow() == "finished"
        (result,) = stage.results_sent_to_model()
        assert (result.ok, result.images) == (True, None)


class TestImageEstimate:
    """Estimated tokens of images, for holds and for requests without reported usage."""

    def test_an_image_counts_with_its_tokens_not_its_characters(self, stage: Stage) -> None:
        stage.start_turn("Look", pictures=(image_block(make_image(1568, 956, quality=100)),) * 2)
        stage.script_replies("Nice.")
        stage.run_workflow()
        estimates = [entry.state.estimated_prompt_tokens for entry in stage.entries()]
        estimate = next(tokens for tokens in estimates if tokens)
        assert 2 * 1600 <= estimate < 2 * 1600 + 1000

    def test_a_hold_includes_the_tokens_of_images(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        held: list[int] = []

        def record_prompt_tokens(
            _resources: Any, _turn: Any, prompt_tokens: int, commit: Any, answer_tokens: int | None = None
        ) -> Any:
            held.append(prompt_tokens)
            return commit(())

        monkeypatch.setattr("fermata.turns.start.start_turn.commit_with_budget_hold", record_prompt_tokens)
        stage.start_turn("Look", pictures=(image_block(make_image()),) * 8)
        assert held[0] >= 8 * 1600
