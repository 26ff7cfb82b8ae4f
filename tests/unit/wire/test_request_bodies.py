import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fermata.domain.agent_ids import SCOPES
from fermata.domain.blocks import ImageBlock, TextBlock
from fermata.domain.errors import PayloadTooLarge
from fermata.domain.image_header import IMAGE_MIME_TYPES
from fermata.wire.bodies.requests import (
    ConversationChange,
    CredentialChange,
    NewBudgets,
    NewConversation,
    NewCredential,
)
from fermata.wire.bodies.turn_requests import ChatBody, ToolResultBody
from fermata.wire.bodies.validation_errors import format_validation_errors
from tests.images import make_gif_header, make_jpeg_header, make_png_header, make_webp_header, to_base64
from tests.recordings import WAV, encode_recording

JPEG = to_base64(make_jpeg_header())
CASES = {case["id"]: case for case in json.loads((Path(__file__).parent / "cases.json").read_text())}
UNCANONICAL = to_base64(make_jpeg_header(filler=1))[:-2] + "l="
"""The same bytes, with bits set that no byte uses."""
TEXT = {"kind": "text", "text": "  make it blue "}
IMAGE = {"kind": "image", "mimeType": "image/jpeg", "data": JPEG}
AUDIO = {"kind": "audio", "mimeType": "audio/wav", "data": encode_recording(WAV)}


def get_error(model: Any, value: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        model.model_validate(value)
    return format_validation_errors(refused.value)


class TestChat:
    def test_the_old_and_the_new_form_of_a_prompt_are_equivalent(self) -> None:
        old = ChatBody.model_validate({"conversationId": "c", "prompt": "  make it blue "})
        new = ChatBody.model_validate({"conversationId": "c", "content": [TEXT]})
        assert old.to_blocks() == new.to_blocks() == (TextBlock(text="make it blue"),)

    def test_text_comes_first_for_any_order_of_parts(self) -> None:
        body = ChatBody.model_validate({"conversationId": "c", "content": [IMAGE, TEXT]})
        assert body.to_blocks() == (TextBlock(text="make it blue"), ImageBlock(mime_type="image/jpeg", data=JPEG))

    def test_an_image_alone_is_a_prompt(self) -> None:
        assert len(ChatBody.model_validate({"conversationId": "c", "content": [IMAGE]}).to_blocks()) == 1

    def test_members_of_other_client_generations_are_ignored(self) -> None:
        body = ChatBody.model_validate({"conversationId": "c", "prompt": "x", "snapshot": {"a": 1}, "draft": True})
        assert body.snapshot == {"a": 1}

    @pytest.mark.parametrize(
        ("members", "says"),
        [
            ({}, "Send either 'prompt' or 'content'."),
            ({"prompt": "x", "content": [TEXT]}, "Send either 'prompt' or 'content'."),
            ({"prompt": " \n"}, "Message must contain text or an image."),
            ({"content": []}, "Message must contain text or an image."),
            ({"content": [TEXT, TEXT]}, "'content' may have one text at most."),
            ({"content": [IMAGE] * 9}, "'content' may have 8 images at most."),
            ({"content": [TEXT, *[IMAGE] * 9]}, "'content' may have 8 images at most."),
            ({"content": [IMAGE] * 10}, "'content' may have 8 images at most."),
            ({"content": [TEXT, {"kind": "image", "data": JPEG}]}, "'content.1.mimeType' is missing."),
            ({"content": [{"kind": "text", "text": 5}]}, "'content.0.text' must be a string."),
            ({"content": [{"kind": "text"}]}, "'content.0.text' is missing."),
            ({"content": "x"}, "'content' must be a list."),
            ({"content": [{"kind": "video"}]}, "'content.0' must have a 'kind' of 'text', 'image', 'audio', 'file'."),
            ({"content": [{}]}, "'content.0' must have a 'kind'."),
            ({"content": [IMAGE | {"mimeType": "image/svg+xml"}]}, "must be 'image/jpeg', 'image/png'"),
            ({"content": [IMAGE | {"data": "%%%"}]}, "'content.0' must hold its image as base64."),
            ({"content": [IMAGE | {"mimeType": "image/png"}]}, "does not hold the image/png it says it does."),
            ({"content": [IMAGE | {"data": JPEG[:-3]}]}, "must hold its image as base64."),
            ({"content": [IMAGE | {"data": UNCANONICAL}]}, "does not hold the image/jpeg it says it does."),
            ({"content": [IMAGE | {"data": to_base64(b"<svg/>")}]}, "does not hold the image/jpeg it says it does."),
            ({"content": [AUDIO | {"data": "UklG"}]}, "does not hold the audio/wav it says it does."),
            ({"content": [AUDIO | {"data": "!"}]}, "must hold its recording as base64"),
            ({"content": [AUDIO | {"uploadRef": "x"}]}, "must hold its recording: either 'data' or 'uploadRef'"),
            ({"content": [AUDIO] * 5}, "may have 4 recordings at most"),
            ({"content": [AUDIO | {"mimeType": "audio/flac"}]}, "'content.0.mimeType' must be 'audio/mpeg'"),
            ({"content": [{"kind": "file", "url": "ftp://a/b"}]}, "must have an https address as its 'url'"),
            ({"content": [{"kind": "file", "url": "https://a/b"}] * 9}, "may have 8 files at most"),
            ({"prompt": 5}, "'prompt' must be a string."),
            ({"prompt": "x" * 400_001}, "'prompt' may have at most 400000 characters."),
            ({"prompt": "x", "conversationId": ""}, "'conversationId' must not be empty."),
            ({"prompt": "x", "conversationId": None}, "'conversationId' must be a string."),
        ],
    )
    def test_an_invalid_prompt_is_refused(self, members: dict[str, Any], says: str) -> None:
        assert says in get_error(ChatBody, {"conversationId": "c"} | members)

    def test_content_is_parsed_as_in_instatics_server(self) -> None:
        """Case C182: at most one text and eight images, and not empty."""
        given = CASES["C182"]["input"]
        given[3] = {"content": [IMAGE] * 9}
        given[4] = {"content": [TEXT, *[IMAGE] * 8]}
        for body, expected in zip(given, CASES["C182"]["expected"], strict=True):
            whole = {"conversationId": "c"} | body
            if expected == "ok":
                assert ChatBody.model_validate(whole).to_blocks()
            else:
                assert get_error(ChatBody, whole)
        assert CASES["C182"]["expected"][5].endswith("'Message must contain text or an image.'")

    @pytest.mark.parametrize("mime_type", IMAGE_MIME_TYPES)
    def test_each_image_type_is_accepted(self, mime_type: str) -> None:
        raw = dict(
            zip(
                IMAGE_MIME_TYPES,
                (make_jpeg_header(), make_png_header(), make_gif_header(), make_webp_header()),
                strict=True,
            )
        )[mime_type]
        part = {"kind": "image", "mimeType": mime_type, "data": to_base64(raw)}
        assert len(ChatBody.model_validate({"conversationId": "c", "content": [part]}).to_blocks()) == 1

    @pytest.mark.parametrize(
        ("picture", "says"),
        [
            (make_jpeg_header(4001, 3000), "12,000,000 pixels in all; this one is 4,001 by 3,000"),
            (make_jpeg_header(65_000, 65_000), "this one is 65,000 by 65,000"),
        ],
    )
    def test_an_image_that_is_too_large_is_a_413(self, picture: bytes, says: str) -> None:
        with pytest.raises(PayloadTooLarge, match=says):
            ChatBody.model_validate({"conversationId": "c", "content": [IMAGE | {"data": to_base64(picture)}]})

    def test_the_largest_image_is_accepted(self) -> None:
        for size in ((4000, 3000), (12_000, 1000)):
            image = IMAGE | {"data": to_base64(make_jpeg_header(*size, filler=3_000_000))}
            assert ChatBody.model_validate({"conversationId": "c", "content": [image]})

    @pytest.mark.parametrize(
        ("part", "says"),
        [
            ({}, "'content.0' must hold its image: either 'data' or 'uploadRef'."),
            ({"data": JPEG, "uploadRef": "r"}, "must hold its image: either 'data' or 'uploadRef'."),
            ({"uploadRef": ""}, "'content.0.uploadRef' must not be empty."),
        ],
    )
    def test_an_image_has_one_source(self, part: dict[str, Any], says: str) -> None:
        image = {"kind": "image", "mimeType": "image/jpeg"} | part
        assert says in get_error(ChatBody, {"conversationId": "c", "content": [image]})

    def test_the_path_of_each_image_is_known(self) -> None:
        uploaded = {"kind": "image", "mimeType": "image/png", "uploadRef": "r"}
        body = ChatBody.model_validate({"conversationId": "c", "content": [IMAGE, TEXT, uploaded]})
        assert [block.kind for block in body.to_blocks()] == ["text", "image", "image"]
        assert body.image_places() == ("content.0.data", "content.2.uploadRef")


def test_a_snapshot_has_one_source() -> None:
    both = {"snapshot": {}, "snapshotRef": "r"}
    for model, rest in (
        (ChatBody, {"conversationId": "c", "prompt": "x"}),
        (ToolResultBody, {"bridgeId": "b", "requestId": "r", "result": {"ok": True}}),
    ):
        assert get_error(model, rest | both) == "Send either 'snapshot' or 'snapshotRef'."
        assert model.model_validate(rest | both | {"snapshot": None}).snapshot_ref == "r"


class TestToolResult:
    @pytest.mark.parametrize("more", [{}, {"data": [1]}, {"error": None}, {"images": [], "inverse": [], "took": 7}])
    def test_a_result_stays_as_it_was_posted_and_unknown_members_are_ignored(self, more: dict[str, Any]) -> None:
        result = {"ok": True} | more
        body = ToolResultBody.model_validate({"bridgeId": "b", "requestId": "r", "result": result, "generation": 7})
        assert body.result.posted == result

    @pytest.mark.parametrize("wrong", [{"bridgeId": ""}, {"requestId": ""}, {"result": None}, {"result": [1]}])
    def test_empty_ids_and_results_that_are_no_object_are_refused(self, wrong: dict[str, Any]) -> None:
        error = get_error(ToolResultBody, {"bridgeId": "b", "requestId": "r", "result": {"ok": True}} | wrong)
        assert error.startswith(f"'{next(iter(wrong))}")


class TestOtherBodies:
    def test_an_error_about_an_unknown_scope_names_the_scopes(self) -> None:
        assert get_error(NewConversation, {"scope": "shop"}) == (
            f"'scope' must be {', '.join(map(repr, SCOPES))} or 'agent:' and the id of an agent of the workspace."
        )

    def test_a_title_is_trimmed_and_not_blank(self) -> None:
        assert NewConversation.model_validate({"scope": "site", "title": "  Home "}).title == "Home"
        assert NewConversation.model_validate({"scope": "site", "title": "  "}).title == ""
        assert "must not be empty" in get_error(ConversationChange, {"title": "  "})

    def test_a_key_is_trimmed(self) -> None:
        key = {"providerId": "anthropic", "authMode": "apiKey", "displayLabel": "Mine", "apiKey": "sk-1\n"}
        assert NewCredential.model_validate(key).api_key == "sk-1"

    @pytest.mark.parametrize("key", ["sk 1", "sk-\u00e9", "sk-1\r\nx-evil: 1"])
    def test_a_key_that_cannot_be_sent_in_a_header_is_refused(self, key: str) -> None:
        value = {"providerId": "anthropic", "authMode": "apiKey", "displayLabel": "Mine", "apiKey": key}
        assert get_error(NewCredential, value) == "'apiKey' must be a key: printable ASCII without spaces."

    def test_a_change_that_changes_nothing_is_refused(self) -> None:
        assert get_error(CredentialChange, {}) == "Send what is to change: 'displayLabel', 'apiKey' or 'baseUrl'."


class TestBudgets:
    @pytest.mark.parametrize("usd", [0, 0.000001, 0.5, 1_000_000_000])
    def test_a_limit_is_zero_or_at_least_a_millionth(self, usd: float) -> None:
        assert NewBudgets.model_validate({"tenant": {"dailyUsd": usd}}).tenant.daily_usd == usd

    @pytest.mark.parametrize("usd", [1e-289, 0.0000009])
    def test_a_limit_that_would_be_rounded_to_zero_is_refused(self, usd: float) -> None:
        said = get_error(NewBudgets, {"tenant": {"dailyUsd": usd}})
        assert said == "'tenant.dailyUsd' must be 0, or 0.000001 at least."
