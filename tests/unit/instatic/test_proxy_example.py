"""The proxy in examples/instatic puts a CMS and the service behind one address, on real sockets."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.instatic import proxy
from examples.instatic.proxy import make_proxy
from fermata.usage.audit.user_labels import load_user_labels
from fermata.wire.auth.tenant_store import add_tenant
from local.seed import EDITOR_ORIGINS, ISSUER
from tests.tenant_tokens import make_tenant
from tests.unit.instatic.live_service import AdjustableClock
from tests.unit.turns.stage import ADA, Stage, reply_with_calls, reply_with_text, tool_call_block
from tests.waiting import BACKSTOP_SECONDS

ORIGIN = "https://cms.example.com"
SESSION = {"cookie": "instatic_admin_session=opaque", "origin": ORIGIN}
CHAT = "/admin/api/ai/conversations"


async def answer_as_cms(request: Request) -> Response:
    is_signed_in = "instatic_admin_session=opaque" in request.headers.get("cookie", "")
    if request.url.path == "/admin/api/me":
        user = {"id": ADA.user, "displayName": "Ada Lovelace", "capabilities": sorted(ADA.capabilities)}
        return JSONResponse(user if is_signed_in else {}, 200 if is_signed_in else 401)
    path = request.scope["raw_path"].decode()
    response = Response(f"cms {request.method} {path}?{request.url.query} {await request.body()!r}")
    response.set_cookie("instatic_admin_session", "renewed", path="/admin")
    return response


@contextmanager
def serve(app: Starlette) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="on"))
    thread = threading.Thread(target=server.run, name="proxied", daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        thread.join(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(BACKSTOP_SECONDS)


@pytest.fixture
def browser(stage: Stage, service: str) -> Iterator[httpx.Client]:
    names: Any = {"dialect": "instatic", "tool_names": "prefixed", "origins": [ORIGIN]}
    _, secret = add_tenant(stage.resources, ADA.tenant, issuer=ORIGIN, audience="fermata", **names)
    assert secret is not None
    cms = Starlette(routes=[Route("/{path:path}", answer_as_cms, methods=["GET", "POST"])])
    with (
        serve(cms) as cms_url,
        serve(make_proxy(cms_url, service, ORIGIN, secret)) as url,
        httpx.Client(base_url=url, headers=SESSION, trust_env=False, timeout=BACKSTOP_SECONDS) as http,
    ):
        yield http


def test_a_prompt_streams_through_the_proxy_under_the_users_name(stage: Stage, browser: httpx.Client) -> None:
    gate = threading.Event()
    body = {"scope": "site", "credentialId": stage.credential.id, "modelId": "model-1"}
    conversation = browser.post(CHAT, json=body).json()["conversation"]["id"]
    stage.script_replies([lambda: gate.wait(BACKSTOP_SECONDS), *reply_with_text("Good morning.")])
    prompt = {"conversationId": conversation, "content": [{"kind": "text", "text": "Hello"}]}
    with browser.stream("POST", "/admin/api/ai/chat/site", json=prompt) as response:
        lines = response.iter_lines()
        first = next(line for line in lines if line)
        gate.set()  # so the first line has arrived before the answer was made
        kinds = [json.loads(line)["type"] for line in [first, *filter(None, lines)]]
    assert (response.status_code, kinds[0], kinds[-1]) == (200, "bridgeReady", "done")
    assert load_user_labels(stage.resources, ADA.tenant)[ADA.user] == "Ada Lovelace"


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 201), ({"origin": "https://evil.example"}, 403), ({"cookie": "instatic_admin_session=guessed"}, 401)],
)
def test_a_foreign_origin_and_an_unknown_session_are_refused(
    stage: Stage, browser: httpx.Client, headers: dict[str, str], status: int
) -> None:
    body = {"scope": "site", "credentialId": stage.credential.id, "modelId": "model-1"}
    assert browser.post(CHAT, json=body, headers=headers).status_code == status


def test_everything_else_reaches_the_cms_with_its_own_session(browser: httpx.Client) -> None:
    answer = browser.post("/admin/media/a%2Fb%3Fc%20d?draft=1", content=b"x")
    assert answer.text == "cms POST /admin/media/a%2Fb%3Fc%20d?draft=1 b'x'"
    assert answer.headers["set-cookie"].startswith("instatic_admin_session=renewed")


def test_the_refusal_of_the_editors_bridge_can_be_kept_by_the_browser(browser: httpx.Client) -> None:
    answer = browser.get("/admin/api/ai/editor-bridge", params={"scope": "site"})
    assert (answer.status_code, answer.headers.get_list("cache-control")) == (403, ["private, max-age=300"])


class TestOnAws:
    """No function sees a browser leave there. The proxy does."""

    @pytest.fixture
    def quick(self, quick: dict[str, object]) -> dict[str, object]:
        return quick | {"fermata_stage": "prod"}

    def test_a_user_who_stops_may_ask_again_at_once(self, stage: Stage, browser: httpx.Client) -> None:
        gate = threading.Event()
        prompt = make_prompt(stage, browser)
        text, reply = reply_with_text("A long answ")
        stage.script_replies([text, lambda: gate.wait(BACKSTOP_SECONDS), reply], "Second.")
        with browser.stream("POST", "/admin/api/ai/chat/site", json=prompt) as response:
            assert next(line for line in response.iter_lines() if line)
        second = browser.post("/admin/api/ai/chat/site", json=prompt)
        gate.set()
        assert (second.status_code, "Second." in second.text, '"done"' in second.text) == (200, True, True)

    def test_a_second_tabs_prompt_is_refused_while_the_first_tab_reads(
        self, stage: Stage, browser: httpx.Client, clock: AdjustableClock
    ) -> None:
        gate = threading.Event()
        prompt = make_prompt(stage, browser)
        stage.script_replies([lambda: gate.wait(BACKSTOP_SECONDS), *reply_with_text("A long answer.")])
        with browser.stream("POST", "/admin/api/ai/chat/site", json=prompt) as response:
            lines = response.iter_lines()
            assert next(line for line in lines if line)
            clock.advance(60)
            second = browser.post("/admin/api/ai/chat/site", json=prompt)
            gate.set()
            rest = "".join(lines)
        assert second.status_code == 409
        assert second.json()["error"].startswith("This conversation is already generating a response")
        assert second.headers["retry-after"]
        assert ("A long answer." in rest, '"done"' in rest) == (True, True)


def test_a_proxy_is_told_of_no_undo_to_cancel(stage: Stage, browser: httpx.Client) -> None:
    prompt = make_prompt(stage, browser)
    stage.script_replies(reply_with_calls(tool_call_block("site_insert_html", parentId="x", html="1")), "Done.")
    with browser.stream("POST", "/admin/api/ai/chat/site", json=prompt) as response:
        events = (json.loads(line) for line in response.iter_lines() if line)
        request = next(event for event in events if event["type"] == "toolRequest")
        bridge = response.headers["fermata-bridge"]
        inverse = [{"tool": "site_delete_node", "input": {"nodeId": "n"}}]
        result = {"ok": True, "data": {"nodeIds": ["n"]}, "inverse": inverse}
        body = {"bridgeId": bridge, "requestId": request["requestId"], "result": result}
        assert browser.post("/admin/api/ai/tool-result", json=body).status_code == 200
        assert list(events)[-1]["type"] == "done"
    with browser.stream("POST", f"/admin/api/ai/bridges/{bridge}/undo") as undo:
        assert undo.status_code == 200
        assert "fermata-bridge" not in undo.headers


def test_a_result_that_is_too_large_arrives_without_its_pictures(stage: Stage, browser: httpx.Client) -> None:
    prompt = make_prompt(stage, browser)
    call = tool_call_block("site_insert_html", parentId="x", html="1")
    stage.script_replies(reply_with_calls(call), "Done.")
    picture = {"mimeType": "image/png", "data": "A" * 7_000_000}
    with browser.stream("POST", "/admin/api/ai/chat/site", json=prompt) as response:
        events = (json.loads(line) for line in response.iter_lines() if line)
        bridge = next(events)["bridgeId"]
        request = next(event for event in events if event["type"] == "toolRequest")
        result = {"ok": True, "data": {"nodeIds": ["n"]}, "images": [picture]}
        body = {"bridgeId": bridge, "requestId": request["requestId"], "result": result}
        answer = browser.post("/admin/api/ai/tool-result", json=body)
        rest = list(events)
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert [event["ok"] for event in rest if event["type"] == "toolResult"] == [True]
    assert rest[-1]["type"] == "done"
    assert "left out" in stage.driver.requests[1].model_dump_json()


def make_prompt(stage: Stage, browser: httpx.Client) -> dict[str, Any]:
    body = {"scope": "site", "credentialId": stage.credential.id, "modelId": "model-1"}
    conversation = browser.post(CHAT, json=body).json()["conversation"]["id"]
    return {"conversationId": conversation, "content": [{"kind": "text", "text": "Hello"}]}


def test_only_a_known_promise_is_accepted(stage: Stage, service: str) -> None:
    signer = make_tenant(stage.resources, dialect="instatic")
    headers = signer.bearer_headers() | {"fermata-disconnects": "ignore"}
    body = {"conversationId": "c", "prompt": "Hello"}
    answer = httpx.post(f"{service}/admin/api/ai/chat/site", json=body, headers=headers, trust_env=False)
    assert (answer.status_code, "Fermata-Disconnects" in answer.json()["error"]) == (400, True)


def test_issuer_and_secret_are_taken_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ("http://cms.example/", "https://fermata.example/", "https://cms.example.com/", "c2VjcmV0/")
    for name, value in zip(("CMS_URL", "FERMATA_URL", "FERMATA_ISSUER", "FERMATA_SECRET"), settings, strict=True):
        monkeypatch.setenv(name, value)
    taken: list[str] = []
    monkeypatch.setattr(proxy, "make_proxy", lambda *values: taken.extend(values))
    proxy.make_proxy_from_environment()
    assert taken == ["http://cms.example", "https://fermata.example", *settings[2:]]


def test_the_documented_way_to_try_it_names_what_the_local_cloud_has() -> None:
    page = (Path(__file__).parents[3] / "docs" / "instatic.md").read_text()
    assert f"FERMATA_ISSUER={ISSUER} " in page
    (port,) = re.findall(r"uvicorn .*--port (\d+)", page)
    assert f"http://localhost:{port}" in EDITOR_ORIGINS
    assert re.search(r"fermata tenant add .* --stack ", page)
