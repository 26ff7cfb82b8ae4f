"""Images and large snapshots on their whole way: browser, door, bucket, round, provider."""

import base64
import hashlib
import json
from typing import Any

import httpx
import pytest

from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.conversation_driver import (
    DOCUMENTS_CALL,
    INSERT_CALL,
    OK_RESULT,
    ConversationDriver,
    make_snapshot,
    open_http,
    result_text,
)
from tests.e2e.demo_model_client import text_step, tool_call_step
from tests.e2e.stream_reader import StreamReader
from tests.e2e.test_every_provider import use
from tests.e2e.test_sizes import MB, large
from tests.images import make_image, open_image, to_base64

LOOK = ("render_snapshot", {"breakpointId": "all"})


def image(raw: bytes, kind: str = "image/png") -> dict[str, Any]:
    return {"kind": "image", "mimeType": kind, "data": to_base64(raw)}


def start(talk: ConversationDriver, *steps: Any, parts: list[Any], snapshot: Any = None) -> StreamReader:
    """A turn whose prompt has more than words."""
    content = [*parts, {"kind": "text", "text": talk.scripted_prompt(*steps)}]
    started = talk.client.start_turn_detached(
        "site", content=content, conversation_id=talk.conversation, snapshot=snapshot
    )
    talk.bridge = str(started["bridgeId"])
    return talk.open_reader()


def shown(talk: ConversationDriver, number: int = -1) -> list[bytes]:
    """Every image in what the provider was sent, in whatever its protocol calls one."""
    found: list[bytes] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if value.get("type") == "base64":
                found.append(base64.b64decode(value["data"]))
            for child in value.values():
                walk(child)
        elif isinstance(value, list):
            for child in value:
                walk(child)
        elif isinstance(value, str) and value.startswith("data:image/"):
            found.append(base64.b64decode(value.partition(",")[2]))

    walk(talk.model_requests()[number]["body"])
    return found


class TestAPromptsImages:
    @pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter", "openai-compatible"])
    def test_they_reach_each_provider_in_its_own_words(self, talk: ConversationDriver, provider: str) -> None:
        use(talk, provider)
        parts = [image(make_image(70, 40, "PNG")), talk.client.image_part(make_image(1600, 1200, "WEBP"), "image/webp")]
        reader = start(talk, text_step("I see two."), parts=parts)
        reader.wait_for_end()
        assert reader.event_types[-1] == "done", reader.events[-1]
        assert [open_image(raw).size for raw in shown(talk)] == [(70, 40), (1414, 1060)]
        assert {open_image(raw).format for raw in shown(talk)} == {"JPEG"}

    def test_a_large_one_is_uploaded_and_all_can_be_seen_again(self, talk: ConversationDriver) -> None:
        noise = make_image(1700, 1700, "PNG", compress_level=0)
        assert len(noise) > 8 * MB
        part = talk.client.image_part(noise, "image/png")
        assert "uploadRef" in part
        reader = start(talk, text_step("Nice."), parts=[part])
        reader.wait_for_end()
        (message, *_) = talk.client.get_conversation(talk.conversation)["messages"]
        url = next(block["url"] for block in message["content"] if block["kind"] == "image")
        with open_http(talk.cloud, talk.token) as bare:
            answer = bare.get(talk.cloud.url + url)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")
        assert open_image(answer.content).size == (1224, 1224)

    @pytest.mark.parametrize(
        ("raw", "status", "says_"),
        [
            (make_image(60, 40, "PNG")[:-40], 400, "'content.0.data' is damaged, or cut off"),
            (b"<svg/>", 400, "does not hold the image/png it says it does"),
        ],
    )
    def test_one_that_is_none_is_refused_by_its_place_and_the_conversation_goes_on(
        self, talk: ConversationDriver, raw: bytes, status: int, says_: str
    ) -> None:
        body = {"conversationId": talk.conversation, "content": [image(raw)]}
        with open_http(talk.cloud, talk.token) as bare:
            answer = bare.post("/chat/site", json=body)
        assert (answer.status_code, says_ in answer.json()["error"]) == (status, True)
        turn_checks.check_next_prompt(talk)


class TestAScreenshot:
    def test_it_is_asked_for_seen_by_the_model_and_gone_in_the_next_turn(self, talk: ConversationDriver) -> None:
        reader = talk.start_turn(tool_call_step(LOOK), tool_call_step(LOOK), text_step("Better now."))
        for number, width in enumerate((60, 2000), 1):
            request = reader.wait_for_event("toolRequest", number)
            assert request["input"] == {"breakpointId": "all", "captureScreenshot": True}
            shot = {"mimeType": "image/png", "data": to_base64(make_image(width, 50, "PNG"))}
            talk.answer_request(request, {"ok": True, "data": {"layout": [width]}, "images": [shot]})
        reader.wait_for_end()
        assert [[open_image(raw).size for raw in shown(talk, number)] for number in (1, 2)] == [
            [(60, 50)],
            [(1568, 39)],
        ]
        turn_checks.check_turn(talk, reader)
        reader = talk.start_turn(text_step("What screenshot?"))
        reader.wait_for_end()
        assert shown(talk) == []

    def test_where_results_are_read_as_text_none_is_asked_for_and_one_that_comes_is_told_of(
        self, talk: ConversationDriver
    ) -> None:
        use(talk, "openai")
        reader = talk.start_turn(tool_call_step(LOOK), text_step("I read the layout."))
        request = reader.wait_for_event("toolRequest")
        assert request["input"]["captureScreenshot"] is False
        shot = {"mimeType": "image/png", "data": to_base64(make_image(60, 50, "PNG"))}
        talk.answer_request(request, {"ok": True, "data": {"layout": []}, "images": [shot]})
        reader.wait_for_end()
        assert reader.event_types[-1] == "done"
        outputs = [item["output"] for item in talk.model_requests()[-1]["body"]["input"] if "output" in item]
        assert outputs[0].endswith("[1 screenshot(s) omitted: this provider delivers tool results as text only.]")

    def test_a_provider_that_refuses_the_images_is_asked_again_without_those_of_earlier_turns(
        self, talk: ConversationDriver
    ) -> None:
        reader = start(talk, text_step("I see."), parts=[image(make_image(60, 40, "PNG"))])
        reader.wait_for_end()
        error = {"type": "invalid_request_error", "message": "too many images in this request"}
        reader = start(
            talk,
            text_step("", status=400, error=error),
            text_step("One is enough."),
            parts=[image(make_image(30, 20, "PNG"))],
        )
        reader.wait_for_end()
        assert [[open_image(raw).size for raw in shown(talk, number)] for number in (0, 1)] == [
            [(60, 40), (30, 20)],
            [(30, 20)],
        ]
        assert reader.event_types[-1] == "done"


class TestALargeSnapshot:
    def test_one_of_10_mb_goes_with_the_prompt_and_a_new_one_with_an_answer(self, talk: ConversationDriver) -> None:
        def big(title: str) -> dict[str, Any]:
            assets = [{"blob": f"data:image/png;base64,{large('blob', MB)}"} for _ in range(10)]
            return make_snapshot(title) | {"files": assets, "note": "🦀"}

        reader = talk.start_turn(
            tool_call_step(DOCUMENTS_CALL),
            tool_call_step(INSERT_CALL, DOCUMENTS_CALL),
            text_step("Done."),
            snapshot=big("Before"),
        )
        talk.answer_request(reader.wait_for_event("toolRequest"), OK_RESULT, snapshot=big("After"))
        reader.wait_for_end()
        before, _, after = (result_text(block) for block in talk.tool_results())
        assert "Before" in before
        assert "After" in after
        turn_checks.check_turn(talk, reader)

    def test_its_address_leads_through_the_service_and_takes_only_what_was_announced(
        self, talk: ConversationDriver
    ) -> None:
        raw = json.dumps(make_snapshot("Home")).encode()
        told = announce(talk, raw)
        assert told["url"].startswith(f"{talk.cloud.url}/")
        for body, headers, status in (
            (raw, {}, 403),
            (raw + b" ", told["headers"], 403),
            (raw[::-1], told["headers"], 400),
            (raw, told["headers"], 200),
        ):
            assert httpx.put(told["url"], content=body, headers=headers, trust_env=False).status_code == status
        used = {
            "conversationId": talk.conversation,
            "prompt": talk.scripted_prompt(tool_call_step(DOCUMENTS_CALL), text_step("Ok.")),
        }
        with open_http(talk.cloud, talk.token) as bare:
            answer = bare.post(
                "/chat/site", json=used | {"snapshotRef": told["ref"]}, headers={"accept": "application/json"}
            )
        talk.bridge = answer.json()["bridgeId"]
        talk.open_reader().wait_for_end()
        assert "Home" in result_text(talk.tool_results()[0])

    def test_one_that_never_came_is_a_404_and_anothers_too(self, talk: ConversationDriver, cloud: LocalCloud) -> None:
        raw = json.dumps(make_snapshot("Never")).encode()
        told = announce(talk, raw)
        body = {"conversationId": talk.conversation, "prompt": "Hi", "snapshotRef": told["ref"]}
        with open_http(talk.cloud, talk.token) as bare:
            assert bare.post("/chat/site", json=body).status_code == 404
            httpx.put(told["url"], content=raw, headers=told["headers"], trust_env=False)
        with open_http(cloud, cloud.sign_token(sub="somebody else")) as other:
            answer = {"bridgeId": "b", "requestId": "r", "result": {"ok": True}, "snapshotRef": told["ref"]}
            assert "uploaded" in other.post("/tool-result", json=answer).json()["error"]

    def test_a_page_of_another_origin_may_put_it(self, talk: ConversationDriver) -> None:
        told = announce(talk, b"{}")
        asked = {
            "origin": "https://editor.example",
            "access-control-request-method": "PUT",
            "access-control-request-headers": "content-type,x-amz-checksum-sha256",
        }
        answer = httpx.options(told["url"], headers=asked, trust_env=False)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "PUT" in answer.headers["access-control-allow-methods"]


def announce(talk: ConversationDriver, raw: bytes) -> dict[str, Any]:
    body = {"kind": "snapshot", "bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    with open_http(talk.cloud, talk.token) as bare:
        answer = bare.post("/uploads", json=body)
    assert answer.status_code == 201, answer.text
    told: dict[str, Any] = answer.json()
    return told
