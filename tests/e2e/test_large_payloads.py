"""Test large payloads: they are stored in the bucket, truncated for the model, or refused with 413."""

import json
from typing import Any

import httpx
import pytest

from local.cloud import LocalCloud
from local.signed_pages import RunSignature
from tests.e2e import turn_checks
from tests.e2e.chat_session import (
    DOCUMENTS_CALL,
    INSERT_CALL,
    OK_RESULT,
    READ_CALL,
    ChatSession,
    make_snapshot,
    open_http,
    result_text,
)
from tests.e2e.demo_model_client import text_step, tool_call_step
from tests.e2e.stream_reader import API_PREFIX
from tests.waiting import BACKSTOP_SECONDS

KB, MB = 1000, 1_000_000


def large(prefix: str, size: int) -> str:
    """Make a text without repetitions, which cannot be compressed."""
    lines = [f"{prefix} {number} " for number in range(size // 8)]
    return "".join(lines)[:size]


@pytest.mark.parametrize("size", [300 * KB, 3 * MB])
def test_a_large_tool_result_is_accepted_and_truncated_for_the_model(session: ChatSession, size: int) -> None:
    html = large("line", size)
    reader = session.start_turn(tool_call_step(READ_CALL), text_step("That was long."))
    session.answer_request(reader.wait_for_event("toolRequest"), {"ok": True, "data": {"html": html}})
    reader.wait_for_end()
    text = result_text(session.tool_results()[0])
    assert len(text) < 110 * KB
    assert html[: 10 * KB] in text
    turn_checks.check_turn(session, reader)


def test_a_call_of_300_kb_reaches_the_browser_and_the_pending_list_whole(
    session: ChatSession,
) -> None:
    html = f"<p>{large('word', 300 * KB)}</p>"
    reader = session.start_turn(tool_call_step(("insertHtml", {"parentId": "root", "html": html})), text_step("Done."))
    request = reader.wait_for_event("toolRequest")
    assert request["input"]["html"] == html
    (pending,) = session.client.get_bridge(session.bridge)["pending"]
    assert pending["input"]["html"] == html
    session.answer_request(request)
    reader.wait_for_end()
    sent = [
        block for block in session.model_requests()[1]["body"]["messages"][1]["content"] if block["type"] == "tool_use"
    ]
    assert sent[0]["input"]["html"] == html
    turn_checks.check_turn(session, reader)


def test_several_large_calls_in_one_round(session: ChatSession) -> None:
    pages = [f"<p>{large(f'page{number}', 150 * KB)}</p>" for number in range(4)]
    named = [("insertHtml", {"parentId": "root", "html": page}) for page in pages]
    reader = session.start_turn(tool_call_step(*named), text_step("Done."))
    for number, page in enumerate(pages, 1):
        request = reader.wait_for_event("toolRequest", number)
        assert request["input"]["html"] == page
        session.answer_request(request, {"ok": True, "data": {"html": page}})
    reader.wait_for_end()
    turn_checks.check_turn(session, reader)


def test_snapshots_of_3_mb_are_sent_with_a_prompt_and_with_an_answer(session: ChatSession) -> None:
    def big(title: str) -> dict[str, Any]:
        return make_snapshot(title) | {"files": [{"blob": large("blob", 3 * MB)}]}

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


@pytest.mark.parametrize("size", [7 * MB, 20 * MB])
@pytest.mark.parametrize("path", ["/chat/site", "/tool-result", "/conversations", "/credentials"])
def test_a_body_over_the_platforms_limits_is_a_413(cloud: LocalCloud, path: str, size: int) -> None:
    with open_http(cloud) as bare:
        answer = bare.post(path, content=b'{"prompt":"' + b"x" * size + b'"}')
    assert answer.status_code == 413
    assert answer.json().keys() == {"error"}
    assert answer.headers["x-request-id"]


def test_a_prompt_of_6_mb_is_refused_and_the_conversation_continues(session: ChatSession) -> None:
    with open_http(session.cloud) as bare:
        body = {"conversationId": session.conversation, "prompt": "x", "snapshot": large("x", 7 * MB)}
        assert bare.post("/chat/site", json=body).status_code == 413
    turn_checks.check_next_prompt(session)


def test_a_body_that_escapes_to_more_than_a_lambda_event_is_a_413(session: ChatSession) -> None:
    """Every quote becomes two characters in the event."""
    body = json.dumps({"scope": "site", "title": '"' * (2 * MB)}).encode()
    assert len(body) < 6 * MB
    with open_http(session.cloud) as bare:
        assert bare.post("/conversations", content=body).status_code == 413


def test_the_api_limits_bodies_without_the_front_door_too(cloud: LocalCloud, gateway: str) -> None:
    headers = {"authorization": f"Bearer {cloud.token}"}
    options: dict[str, Any] = {"auth": RunSignature(), "trust_env": False, "verify": False, "timeout": BACKSTOP_SECONDS}
    with httpx.Client(base_url=gateway, headers=headers, **options) as bare:
        answer = bare.post(f"{API_PREFIX}/tool-result", content=b'{"x":"' + b"y" * (7 * MB) + b'"}')
    assert answer.status_code == 413
    assert "it has more than 6.3 MB" in answer.json()["error"]
