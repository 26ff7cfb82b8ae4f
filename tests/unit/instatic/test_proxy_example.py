"""The proxy in examples/instatic puts a CMS and the service behind one address, on real sockets."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.instatic.proxy import make_proxy
from fermata.usage.audit.user_labels import load_user_labels
from fermata.wire.auth.tenant_store import add_tenant
from tests.unit.turns.stage import ADA, Stage, reply_with_text
from tests.waiting import BACKSTOP_SECONDS

ORIGIN = "https://cms.example.com"
SESSION = {"cookie": "instatic_admin_session=opaque", "origin": ORIGIN}
CHAT = "/admin/api/ai/conversations"


async def answer_as_cms(request: Request) -> Response:
    is_signed_in = "instatic_admin_session=opaque" in request.headers.get("cookie", "")
    if request.url.path == "/admin/api/me":
        user = {"id": ADA.user, "displayName": "Ada Lovelace", "capabilities": sorted(ADA.capabilities)}
        return JSONResponse(user if is_signed_in else {}, 200 if is_signed_in else 401)
    response = Response(f"cms {request.method} {request.url.path}?{request.url.query} {await request.body()!r}")
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
    answer = browser.post("/admin/api/pages?draft=1", content=b"x")
    assert answer.text == "cms POST /admin/api/pages?draft=1 b'x'"
    assert answer.headers["set-cookie"].startswith("instatic_admin_session=renewed")
