"""Test images and large snapshots on their whole way from the browser to the provider."""

import base64
import hashlib
import json
from typing import Any

import httpx
import pytest

from local.cloud import LocalCloud
from tests.e2e import turn_checks
from tests.e2e.chat_session import (
    DOCUMENTS_CALL,
    INSERT_CALL,
    OK_RESULT,
    ChatSession,
    make_snapshot,
    open_http,
    result_text,
)
from tests.e2e.demo_model_client import text_step, tool_call_step
from tests.e2e.stream_reader import StreamReader
from tests.e2e.test_every_provider import use
from tests.e2e.test_large_payloads import MB, large
from tests.images import make_image, open_image, to_base64

LOOK = ("render_snapshot", {"breakpointId": "all"})


def image(raw: bytes, kind: str = "image/png") -> dict[str, Any]:
    return {"kind": "image", "mimeType": kind, "data": to_base64(raw)}


def start(session: ChatSession, *steps: Any, parts: list[Any], snapshot: Any = None) -> StreamReader:
    """Start a turn whose prompt has images."""
    content = [*parts, {"kind": "text", "text": session.scripted_prompt(*steps)}]
    started = session.client.start_turn_detached(
        "site", content=content, conversation_id=session.conversation, snapshot=snapshot
    )
    session.bridge = str(started["bridgeId"])
    return session.open_reader()


def shown(session: ChatSession, number: int = -1) -> list[bytes]:
    """Get the images of a provider request, in any protocol."""
    found: list[bytes] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if value.get("type") == "base64" or "mimeType" in value:
                found.append(base64.b64decode(value["data"]))
            for child in value.values():
                walk(child)
        elif isinstance(value, list):
            for child in value:
                walk(child)
        elif isinstance(value, str) and value.startswith("data:image/"):
            found.append(base64.b64decode(value.partition(",")[2]))

    walk(session.model_requests()[number]["body"])
    return found


class TestAPromptsImages:
    @pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter", "gemini", "openai-compatible"])
    def test_images_reach_each_provider_in_its_own_format(self, session: ChatSession, provider: str) -> None:
        use(session, provider)
        parts = [
            image(make_image(70, 40, "PNG")),
            session.client.image_part(make_image(1600, 1200, "WEBP"), "image/webp"),
        ]
        reader = start(session, text_step("I see two."), parts=parts)
        reader.wait_for_end()
        assert reader.event_types[-1] == "done", reader.events[-1]
        assert [open_image(raw).size for raw in shown(session)] == [(70, 40), (1414, 1060)]
        assert {open_image(raw).format for raw in shown(session)} == {"JPEG"}

    def test_a_large_image_is_uploaded_and_all_images_can_be_viewed(self, session: ChatSession) -> None:
        noise = make_image(1700, 1700, "PNG", compress_level=0)
        assert len(noise) > 8 * MB
        part = session.client.image_part(noise, "image/png")
        assert "uploadRef" in part
        reader = start(session, text_step("Nice."), parts=[part])
        reader.wait_for_end()
        (message, *_) = session.client.get_conversation(session.conversation)["messages"]
        url = next(block["url"] for block in message["content"] if block["kind"] == "image")
        with open_http(session.cloud, session.token) as bare:
            answer = bare.get(session.cloud.url + url)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")
        assert open_image(answer.content).size == (1224, 1224)

    @pytest.mark.parametrize(
        ("raw", "status", "says_"),
        [
            (make_image(60, 40, "PNG")[:-40], 400, "'content.0.data' is damaged, or cut off"),
            (b"<svg/>", 400, "does not hold the image/png it says it does"),
        ],
    )
    def test_an_invalid_image_is_refused_with_its_position(
        self, session: ChatSession, raw: bytes, status: int, says_: str
    ) -> None:
        body = {"conversationId": session.conversation, "content": [image(raw)]}
        with open_http(session.cloud, session.token) as bare:
            answer = bare.post("/chat/site", json=body)
        assert (answer.status_code, says_ in answer.json()["error"]) == (status, True)
        turn_checks.check_next_prompt(session)


class TestAScreenshot:
    def test_a_screenshot_reaches_the_model_and_is_left_out_in_the_next_turn(self, session: ChatSession) -> None:
        reader = session.start_turn(tool_call_step(LOOK), tool_call_step(LOOK), text_step("Better now."))
        for number, width in enumerate((60, 2000), 1):
            request = reader.wait_for_event("toolRequest", number)
            assert request["input"] == {"breakpointId": "all", "captureScreenshot": True}
            shot = {"mimeType": "image/png", "data": to_base64(make_image(width, 50, "PNG"))}
            session.answer_request(request, {"ok": True, "data": {"layout": [width]}, "images": [shot]})
        reader.wait_for_end()
        assert [[open_image(raw).size for raw in shown(session, number)] for number in (1, 2)] == [
            [(60, 50)],
            [(1568, 39)],
        ]
        turn_checks.check_turn(session, reader)
        reader = session.start_turn(text_step("What screenshot?"))
        reader.wait_for_end()
        assert shown(session) == []

    def test_a_provider_with_text_results_gets_no_screenshot(self, session: ChatSession) -> None:
        use(session, "openai")
        reader = session.start_turn(tool_call_step(LOOK), text_step("I read the layout."))
        request = reader.wait_for_event("toolRequest")
        assert request["input"]["captureScreenshot"] is False
        shot = {"mimeType": "image/png", "data": to_base64(make_image(60, 50, "PNG"))}
        session.answer_request(request, {"ok": True, "data": {"layout": []}, "images": [shot]})
        reader.wait_for_end()
        assert reader.event_types[-1] == "done"
        outputs = [item["output"] for item in session.model_requests()[-1]["body"]["input"] if "output" in item]
        assert outputs[0].endswith("[1 screenshot(s) omitted: this provider delivers tool results as text only.]")

    def test_after_a_refusal_of_images_those_of_earlier_turns_are_left_out(self, session: ChatSession) -> None:
        reader = start(session, text_step("I see."), parts=[image(make_image(60, 40, "PNG"))])
        reader.wait_for_end()
        error = {"type": "invalid_request_error", "message": "too many images in this request"}
        reader = start(
            session,
            text_step("", status=400, error=error),
            text_step("One is enough."),
            parts=[image(make_image(30, 20, "PNG"))],
        )
        reader.wait_for_end()
        assert [[open_image(raw).size for raw in shown(session, number)] for number in (0, 1)] == [
            [(60, 40), (30, 20)],
            [(30, 20)],
        ]
        assert reader.event_types[-1] == "done"


class TestALargeSnapshot:
    def test_snapshots_of_10_mb_are_sent_with_a_prompt_and_with_an_answer(self, session: ChatSession) -> None:
        def big(title: str) -> dict[str, Any]:
            assets = [{"blob": f"data:image/png;base64,{large('blob', MB)}"} for _ in range(10)]
            return make_snapshot(title) | {"files": assets, "note": "🦀"}

        reader = session.start_turn(
            tool_call_step(DOCUMENTS_CALL),
            tool_call_step(INSERT_CALL, DOCUMENTS_CALL),
            text_step("Done."),
            snapshot=big("Before"),
        )
        session.answer_request(reader.wait_for_event("toolRequest"), OK_RESULT, snapshot=big("After"))
        reader.wait_for_end()
        before, _, after = (result_text(block) for block in session.tool_results())
        assert "Before" in before
        assert "After" in after
        turn_checks.check_turn(session, reader)

    def test_an_upload_url_leads_through_the_service_and_accepts_only_the_announced_body(
        self, session: ChatSession
    ) -> None:
        raw = json.dumps(make_snapshot("Home")).encode()
        announced = announce(session, raw)
        assert announced["url"].startswith(f"{session.cloud.url}/")
        for body, headers, status in (
            (raw, {}, 403),
            (raw + b" ", announced["headers"], 403),
            (raw[::-1], announced["headers"], 400),
            (raw, announced["headers"], 200),
        ):
            assert httpx.put(announced["url"], content=body, headers=headers, trust_env=False).status_code == status
        used = {
            "conversationId": session.conversation,
            "prompt": session.scripted_prompt(tool_call_step(DOCUMENTS_CALL), text_step("Ok.")),
        }
        with open_http(session.cloud, session.token) as bare:
            answer = bare.post(
                "/chat/site", json=used | {"snapshotRef": announced["ref"]}, headers={"accept": "application/json"}
            )
        session.bridge = answer.json()["bridgeId"]
        session.open_reader().wait_for_end()
        assert "Home" in result_text(session.tool_results()[0])

    def test_a_missing_upload_and_another_users_upload_are_a_404(self, session: ChatSession, cloud: LocalCloud) -> None:
        raw = json.dumps(make_snapshot("Never")).encode()
        announced = announce(session, raw)
        body = {"conversationId": session.conversation, "prompt": "Hi", "snapshotRef": announced["ref"]}
        with open_http(session.cloud, session.token) as bare:
            assert bare.post("/chat/site", json=body).status_code == 404
            httpx.put(announced["url"], content=raw, headers=announced["headers"], trust_env=False)
        with open_http(cloud, cloud.sign_token(sub="somebody else")) as other:
            created = other.post("/conversations", json={"scope": "site"})
            response = other.post("/chat/site", json=body | {"conversationId": created.json()["conversation"]["id"]})
            assert response.status_code == 404
            assert "uploaded" in response.json()["error"]

    def test_an_address_takes_its_bytes_once(self, session: ChatSession) -> None:
        announced = announce(session, b"{}")
        without_condition = {
            name: announced["headers"][name] for name in announced["headers"] if name != "if-none-match"
        }
        sent = [without_condition, announced["headers"], announced["headers"]]
        answers = [httpx.put(announced["url"], content=b"{}", headers=each, trust_env=False) for each in sent]
        assert [answer.status_code for answer in answers] == [403, 200, 412]

    def test_an_editors_page_may_upload(self, session: ChatSession) -> None:
        announced = announce(session, b"{}")
        asked = {
            "origin": "http://localhost:5173",
            "access-control-request-method": "PUT",
            "access-control-request-headers": "content-type,if-none-match,x-amz-checksum-sha256",
        }
        answer = httpx.options(announced["url"], headers=asked, trust_env=False)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "http://localhost:5173"
        assert "PUT" in answer.headers["access-control-allow-methods"]


def announce(session: ChatSession, raw: bytes) -> dict[str, Any]:
    body = {"kind": "snapshot", "bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    with open_http(session.cloud, session.token) as bare:
        answer = bare.post("/uploads", json=body)
    assert answer.status_code == 201, answer.text
    announced: dict[str, Any] = answer.json()
    return announced


def test_a_model_that_reads_no_images_is_offered_them_once_in_a_conversation(session: ChatSession) -> None:
    words = "This model does not support image input."
    refusal = text_step("", status=400, error={"type": "invalid_request_error", "message": words})
    photo = image(make_image(30, 20, "PNG"))
    start(session, refusal, text_step("I cannot see it."), parts=[photo]).wait_for_end()
    assert [len(shown(session, number)) for number in range(2)] == [1, 0]
    assert turn_checks.check_turn(session).text == "I cannot see it."
    start(session, text_step("Nor this."), parts=[photo]).wait_for_end()
    assert [len(shown(session, number)) for number in range(len(session.model_requests()))] == [0]
    assert turn_checks.check_turn(session).text == "Nor this."
