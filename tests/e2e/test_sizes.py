"""Large things: they go through the bucket, they are cut for the model, or they are refused with a clear 413."""

import json
from typing import Any

import httpx
import pytest

from local.cloud import LocalCloud
from tests.e2e import checks
from tests.e2e.model import calls, says
from tests.e2e.reader import AI
from tests.e2e.talk import DOCUMENTS, INSERT, OK, READ, Talk, http, said, snapshot_of

KB, MB = 1000, 1_000_000


def large(prefix: str, size: int) -> str:
    """Text that does not repeat, so that nothing can hide in a compression."""
    lines = [f"{prefix} {number} " for number in range(size // 8)]
    return "".join(lines)[:size]


@pytest.mark.parametrize("size", [300 * KB, 3 * MB])
def test_a_large_tool_result_is_taken_and_cut_for_the_model(talk: Talk, size: int) -> None:
    html = large("line", size)
    reader = talk.start(calls(READ), says("That was long."))
    talk.answer(reader.wait("toolRequest"), {"ok": True, "data": {"html": html}})
    reader.finish()
    text = said(talk.results()[0])
    assert len(text) < 110 * KB
    assert html[: 10 * KB] in text
    checks.sound(talk, reader)


def test_a_page_of_300_kb_to_insert_reaches_the_browser_whole_and_the_pending_list_too(talk: Talk) -> None:
    html = f"<p>{large('word', 300 * KB)}</p>"
    reader = talk.start(calls(("insertHtml", {"parentId": "root", "html": html})), says("Done."))
    request = reader.wait("toolRequest")
    assert request["input"]["html"] == html
    (pending,) = talk.client.bridge(talk.bridge)["pending"]
    assert pending["input"]["html"] == html
    talk.answer(request)
    reader.finish()
    sent = [block for block in talk.requests()[1]["body"]["messages"][1]["content"] if block["type"] == "tool_use"]
    assert sent[0]["input"]["html"] == html
    checks.sound(talk, reader)


def test_several_large_calls_in_one_round(talk: Talk) -> None:
    pages = [f"<p>{large(f'page{number}', 150 * KB)}</p>" for number in range(4)]
    named = [("insertHtml", {"parentId": "root", "html": page}) for page in pages]
    reader = talk.start(calls(*named), says("Done."))
    for number, page in enumerate(pages, 1):
        request = reader.wait("toolRequest", number)
        assert request["input"]["html"] == page
        talk.answer(request, {"ok": True, "data": {"html": page}})
    reader.finish()
    checks.sound(talk, reader)


def test_a_snapshot_of_3_mb_comes_with_the_prompt_and_with_an_answer(talk: Talk) -> None:
    def big(title: str) -> dict[str, Any]:
        return snapshot_of(title) | {"files": [{"blob": large("blob", 3 * MB)}]}

    reader = talk.start(calls(DOCUMENTS), calls(INSERT, DOCUMENTS), says("Done."), snapshot=big("Before"))
    talk.answer(reader.wait("toolRequest"), OK, snapshot=big("After"))
    reader.finish()
    before, _, after = (said(block) for block in talk.results())
    assert "Before" in before
    assert "After" in after
    checks.sound(talk, reader)


@pytest.mark.parametrize("size", [7 * MB, 20 * MB])
@pytest.mark.parametrize("path", ["/chat/site", "/tool-result", "/conversations", "/credentials"])
def test_a_body_over_the_platforms_limits_is_a_413(cloud: LocalCloud, path: str, size: int) -> None:
    with http(cloud) as bare:
        answer = bare.post(path, content=b'{"prompt":"' + b"x" * size + b'"}')
    assert answer.status_code == 413
    assert answer.json().keys() == {"error"}
    assert answer.headers["x-request-id"]


def test_a_prompt_of_6_mb_is_refused_and_the_conversation_goes_on(talk: Talk) -> None:
    with http(talk.cloud) as bare:
        body = {"conversationId": talk.conversation, "prompt": "x", "snapshot": large("x", 7 * MB)}
        assert bare.post("/chat/site", json=body).status_code == 413
    checks.the_next_prompt_works(talk)


def test_a_body_that_escapes_to_more_than_a_lambda_event_is_a_413(talk: Talk) -> None:
    """Every quote becomes two characters in the event."""
    body = json.dumps({"scope": "site", "title": '"' * (2 * MB)}).encode()
    assert len(body) < 6 * MB
    with http(talk.cloud) as bare:
        assert bare.post("/conversations", content=body).status_code == 413


def test_the_gateways_own_limit_holds_where_no_front_door_stands(cloud: LocalCloud, gateway: str) -> None:
    headers = {"authorization": f"Bearer {cloud.token}"}
    with httpx.Client(base_url=gateway, headers=headers, trust_env=False, verify=False, timeout=30) as bare:
        answer = bare.post(f"{AI}/tool-result", content=b'{"x":"' + b"y" * (7 * MB) + b'"}')
    assert answer.status_code == 413
    assert "bytes" in answer.json()["error"]
