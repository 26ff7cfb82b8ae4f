"""Images that come in: a prompt's are drawn anew or refused, a result's are made fit or left out."""

import base64
from typing import Any

import pytest

from fermata.aws.blobs import conversation_folder
from fermata.conversations.imaging import MOST_BYTES
from fermata.turns import starting
from fermata.turns.intake import LEFT_OUT, MOST_RESULT_IMAGES, with_fit_images
from fermata.words.blocks import ImageBlock
from fermata.words.errors import Conflict, Gone, Invalid, NotFound, Refusal, TooLarge
from fermata.words.tools import ToolImage, ToolOutput
from tests.pictures import base64_of, jpeg, opened, photo, png
from tests.unit.turns.stage import OK, Stage, call, calls
from tests.uploads import announced, put


def image(raw: bytes, kind: str = "image/jpeg") -> ImageBlock:
    return ImageBlock(mime_type=kind, data=base64_of(raw))


def sent(stage: Stage, ask: int = -1) -> list[ImageBlock]:
    """Images of prompts in what a provider was sent."""
    blocks = [block for message in stage.driver.asks[ask].messages for block in message.content]
    return [block for block in blocks if isinstance(block, ImageBlock)]


def objects(stage: Stage) -> list[str]:
    """What this conversation has in the bucket."""
    prefix = conversation_folder(stage.caller.tenant, stage.conversation.id)
    listed = stage.desk.blobs._client.list_objects_v2(Bucket=stage.desk.settings.bucket, Prefix=prefix)
    return [str(entry["Key"]) for entry in listed.get("Contents", [])]


class TestAPrompt:
    @pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP"])
    def test_its_images_reach_the_model_and_the_bucket_as_small_jpegs(self, stage: Stage, kind: str) -> None:
        stage.start("Look", pictures=(image(photo(1700, 100, kind), f"image/{kind.lower()}"),))
        stage.says("Nice.")
        stage.run()
        (seen,) = sent(stage)
        raw = base64.b64decode(seen.data or "")
        assert (seen.mime_type, opened(raw).format, opened(raw).size) == ("image/jpeg", "JPEG", (1568, 92))
        assert len(objects(stage)) == 1

    def test_an_uploaded_one_is_fetched_drawn_and_remembered_without_its_reference(self, stage: Stage) -> None:
        ref = put(stage.desk, stage.caller, "image", photo(60, 40, "PNG"))
        stage.start("Look", pictures=(ImageBlock(mime_type="image/png", blob=ref), image(photo(20, 10))))
        stage.says("Nice.")
        stage.run()
        assert [opened(base64.b64decode(one.data or "")).size for one in sent(stage)] == [(60, 40), (20, 10)]
        kept = stage.messages()[0].content[1]
        assert isinstance(kept, ImageBlock)
        assert (kept.blob or "").startswith(f"conversations/{stage.caller.tenant}/")

    @pytest.mark.parametrize(
        ("raw", "kind", "error", "says"),
        [
            (photo(60, 40)[:-200], "image/jpeg", Invalid, "'content.2.data' is damaged, or cut off"),
            (jpeg(), "image/jpeg", Invalid, "'content.2.data' is damaged, or cut off"),
            (b"<svg/>", "image/jpeg", Invalid, "'content.2.data' is none of image/jpeg, image/png"),
            (photo(60, 40, "PNG"), "image/jpeg", Invalid, "'content.2.data' does not hold the image/jpeg it says"),
            (png(40_000, 40_000), "image/png", TooLarge, "'content.2.data' has 40,000 by 40,000 pixels"),
        ],
    )
    def test_one_that_cannot_be_drawn_is_named_and_nothing_is_stored(
        self, stage: Stage, raw: bytes, kind: str, error: type[Refusal], says: str
    ) -> None:
        pictures = (image(photo()), image(raw, kind))
        with pytest.raises(error, match=says):
            stage.start("Look", pictures=pictures, image_places=("content.0.data", "content.2.data"))
        assert (stage.messages(), stage.claim(), objects(stage)) == ([], None, [])

    @pytest.mark.parametrize("instead", [b"<html>", photo(61, 40)])
    def test_an_upload_that_holds_something_else_is_refused(self, stage: Stage, instead: bytes) -> None:
        ref = put(stage.desk, stage.caller, "image", photo(60, 40), instead=instead)
        with pytest.raises(Conflict, match="not what was announced"):
            stage.start("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=ref),))
        assert stage.messages() == []

    def test_an_upload_that_never_came_or_is_too_old_is_refused(self, stage: Stage) -> None:
        ref = announced(stage.desk, "image", photo()).ref
        with pytest.raises(NotFound):
            stage.start("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=ref),))
        stage.pass_time(86_401)
        with pytest.raises(Gone):
            stage.start("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=ref),))

    def test_together_they_may_not_be_too_many_bytes(self, stage: Stage) -> None:
        ref = f"image-9000000-{'a' * 64}-1900000000"
        with pytest.raises(TooLarge, match="30,000,000 bytes together"):
            stage.start("Look", pictures=(ImageBlock(mime_type="image/jpeg", blob=ref),) * 4)

    def test_the_same_request_joins_its_turn_although_its_images_were_drawn_anew(self, stage: Stage) -> None:
        parts = {"pictures": (image(photo(60, 40, "PNG"), "image/png"),), "idempotency_key": "once"}
        assert stage.start("Look", **parts).id == stage.start("Look", **parts).id


def output(*raw: bytes | str, data: Any = None) -> ToolOutput:
    coded = [one if isinstance(one, str) else base64_of(one) for one in raw]
    return ToolOutput(ok=True, data=data, images=tuple(ToolImage(mime_type="image/png", data=one) for one in coded))


def sizes(made: ToolOutput) -> list[tuple[int, int]]:
    return [opened(base64.b64decode(one.data)).size for one in made.images or ()]


class TestAResult:
    def test_a_sound_screenshot_goes_on_as_it_came(self) -> None:
        shot = output(photo(60, 40, "PNG"), data={"layout": []})
        assert with_fit_images(shot) == shot

    def test_a_result_without_images_is_left_alone(self) -> None:
        for plain in (ToolOutput.done({"a": 1}), ToolOutput.failed("no")):
            assert with_fit_images(plain) is plain

    def test_its_kind_is_what_it_is_not_what_it_is_called(self) -> None:
        made = with_fit_images(output(photo(60, 40, "JPEG")))
        assert [one.mime_type for one in made.images or ()] == ["image/jpeg"]

    def test_a_large_one_is_made_smaller(self) -> None:
        noise = base64.b64encode(photo(2001, 1500, "PNG")).decode()
        made = with_fit_images(output(noise, photo(1000, 8000, "PNG")))
        assert sizes(made) == [(1414, 1060), (196, 1568)]
        assert all(len(base64.b64decode(one.data)) <= MOST_BYTES for one in made.images or ())

    @pytest.mark.parametrize("bad", [b"<svg/>", jpeg(), photo(60, 40, "PNG")[:-40], png(40_000, 40_000), "%%%", ""])
    @pytest.mark.parametrize("data", [{"layout": [], "note": "n"}, [1], None])
    def test_what_is_no_picture_is_left_out_and_the_model_is_told(self, bad: bytes | str, data: Any) -> None:
        made = with_fit_images(output(bad, photo(60, 40), data=data))
        assert sizes(made) == [(60, 40)]
        assert isinstance(made.data, dict)
        assert made.data.pop(LEFT_OUT).startswith("1 image(s): damaged")
        assert made.data == (data if isinstance(data, dict) else {"data": data})

    def test_of_very_many_only_a_few_are_looked_at(self) -> None:
        made = with_fit_images(output(*[photo(20 + number, 20) for number in range(9)]))
        assert len(made.images or ()) == MOST_RESULT_IMAGES
        assert str(made.data[LEFT_OUT]).startswith("5 image(s)")

    def test_an_editors_answer_is_made_fit_before_it_is_kept(self, stage: Stage) -> None:
        stage.start("Look")
        stage.says(calls(call("read_document")), "I see.")
        stage.run()
        shown = [photo(3000, 2000, "PNG"), b"<svg/>"]
        images = [{"mimeType": "image/png", "data": base64_of(raw)} for raw in shown]
        for _ in range(2):  # the same answer again changes nothing
            stage.answer(OK | {"images": images})
        assert stage.run() == "finished"
        (result,) = stage.read_by_the_model()
        assert [(one.width, one.height) for one in result.images or ()] == [(1500, 1000)]
        assert result.data[LEFT_OUT].startswith("1 image(s)")

    def test_a_result_that_is_nothing_but_bad_images_is_still_a_result(self, stage: Stage) -> None:
        stage.start("Look")
        stage.says(calls(call("read_document")), "I see nothing.")
        stage.run()
        stage.answer({"ok": True, "images": [{"mimeType": "image/svg+xml", "data": base64_of(b"<svg/>")}]})
        assert stage.run() == "finished"
        (result,) = stage.read_by_the_model()
        assert (result.ok, result.images) == (True, None)


class TestTheEstimate:
    """What is held of a budget, and what a request is thought to have used when nobody says."""

    def test_a_picture_counts_as_what_providers_count_and_not_by_its_characters(self, stage: Stage) -> None:
        stage.start("Look", pictures=(image(photo(1568, 956, quality=100)),) * 2)
        stage.says("Nice.")
        stage.run()
        estimate = next(entry.standing.estimate for entry in stage.entries() if entry.standing.estimate)
        assert 2 * 1600 <= estimate < 2 * 1600 + 1000

    def test_a_prompt_with_pictures_holds_their_tokens_too(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        held: list[int] = []
        monkeypatch.setattr(starting, "hold", lambda _desk, _turn, _round, _attempt, prompt: held.append(prompt))
        stage.start("Look", pictures=(image(photo()),) * 8)
        assert held[0] >= 8 * 1600
