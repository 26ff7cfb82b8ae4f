"""Clients of the planner list sites, sessions and editions, and let a model write variations of a block."""

import json
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import ServiceUnavailable
from fermata.planner_api import vary_block
from fermata.planner_api.sessions import open_session
from fermata.plans.drafts import site_registry
from fermata.plans.drafts.draft_history import import_pages
from fermata.plans.drafts.draft_store import load_draft
from functions.api import app as api
from functions.credentials import app as credentials
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant
from tests.unit.plans.page_samples import SITE

PLANNER = "/admin/api/ai/planner"
RIGHTS = ["ai.chat", "ai.tools.write"]
ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset(RIGHTS))
VARIATION = {"title": "Short", "summary": "Shorter.", "patch": {"heading": "Hello"}}


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    signer = make_tenant(resources, "bakery")
    import_pages(resources, open_session(resources, ADA, "today", None), SITE.pages, overwrite=False)
    return signer


def send(method: str, path: str, signer: TokenSigner, body: Any = None, **query: str) -> tuple[int, Any]:
    event = make_proxy_event(method, f"{PLANNER}/{path}", signer.bearer_headers(user="ada", capabilities=RIGHTS), body)
    event["queryStringParameters"] = query or None
    answer = (credentials if "variations" in path else api).handler(event, None)
    is_json = "json" in answer["headers"].get("Content-Type", "json")
    return answer["statusCode"], json.loads(answer["body"]) if is_json else answer["body"]


def test_a_site_is_registered_listed_changed_and_removed(bakery: TokenSigner) -> None:
    body = {"siteId": "My-Bakery", "name": "Bakery", "port": 3000, "config": {"locale": "de"}}
    status, made = send("POST", "sites/register", bakery, body)
    assert (status, made["status"], made["siteId"]) == (200, "registered", "my-bakery")
    assert made["config"]["previewUrl"] == "http://localhost:3000"
    assert send("POST", "sites/register", bakery, body)[1]["status"] == "unchanged"
    assert send("POST", "sites/register", bakery, body | {"name": "Bread"})[1]["status"] == "registered"
    [listed] = send("GET", "sites", bakery)[1]["sites"]
    assert (listed["id"], listed["name"], listed["locale"]) == ("my-bakery", "Bread", "de")
    assert send("DELETE", "sites/My-Bakery", bakery)[0] == 200
    assert send("GET", "sites", bakery)[1] == {"sites": []}
    assert send("DELETE", "sites/My-Bakery", bakery)[0] == 404


def test_the_same_request_under_a_key_has_one_answer_and_another_one_is_refused_as_documented(
    bakery: TokenSigner,
) -> None:
    def send_with(key: str, path: str, **members: Any) -> tuple[int, Any]:
        headers = bakery.bearer_headers(user="ada", capabilities=RIGHTS) | {"Idempotency-Key": key}
        body = {"session": "today"} | members
        answer = api.handler(make_proxy_event("POST", f"{PLANNER}/{path}", headers, body), None)
        return answer["statusCode"], answer["body"]

    def rename(slug: str) -> list[dict[str, str]]:
        return [{"op": "rename_page", "pageSlug": "/faq", "newPageSlug": slug}]

    made = send_with("k", "ops", ops=rename("/questions"))
    assert made[0] == 200
    assert send_with("k", "ops", ops=rename("/questions")) == made
    assert send_with("k", "ops", ops=rename("/answers"))[0] == 409
    assert send_with("k2", "ops", ops=rename("/answers"))[0] == 404
    undone = send_with("u", "history/undo", slug="/questions")
    assert (undone[0], send_with("u", "history/undo", slug="/questions")) == (200, undone)
    for path, members in (("undo", {"slug": "/"}), ("redo", {"slug": "/questions"}), ("restore", {"version": 1})):
        assert send_with("u", f"history/{path}", **members)[0] == 409


def test_another_workspace_sees_and_removes_no_site(resources: Resources, bakery: TokenSigner) -> None:
    send("POST", "sites/register", bakery, {"siteId": "shop", "name": "Shop"})
    rival = make_tenant(resources, "rival-bakery")
    assert send("GET", "sites", rival)[1] == {"sites": []}
    assert send("DELETE", "sites/shop", rival)[0] == 404
    assert len(send("GET", "sites", bakery)[1]["sites"]) == 1


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"siteId": "shop"}, 400),
        ({"siteId": "a/b", "name": "Shop"}, 400),
        ({"siteId": "shop", "name": "Shop", "previewUrl": "javascript:alert(1)"}, 400),
        ({"siteId": "shop", "name": "Shop", "config": {"text": "x" * 20_000}}, 413),
    ],
)
def test_a_wrong_site_is_refused(bakery: TokenSigner, body: Any, status: int) -> None:
    assert send("POST", "sites/register", bakery, body)[0] == status
    assert send("GET", "sites", bakery)[1] == {"sites": []}


def test_a_workspace_has_a_limited_number_of_sites(bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_registry, "MAX_SITES", 1)
    assert send("POST", "sites/register", bakery, {"siteId": "one", "name": "One"})[0] == 200
    assert send("POST", "sites/register", bakery, {"siteId": "two", "name": "Two"})[0] == 409
    assert send("POST", "sites/register", bakery, {"siteId": "one", "name": "First"})[0] == 200


def test_what_is_published_has_a_status_is_listed_and_goes_with_its_site(bakery: TokenSigner) -> None:
    assert send("GET", "publish/status", bakery)[0] == 404
    send("POST", "publish", bakery, {"session": "today"})
    status, published = send("GET", "publish/status", bakery)
    assert (status, published["status"], published["slugs"]) == (200, "ready", ["/", "/faq", "/pricing"])
    [snapshot] = send("GET", "restore/snapshots", bakery)[1]["snapshots"]
    assert (snapshot["number"], snapshot["slugs"]) == (1, published["slugs"])
    assert send("DELETE", "sites/default", bakery)[0] == 200
    assert send("GET", "published/pages", bakery, slug="/")[0] == 404
    assert send("GET", "draft/pages", bakery, session="today", slug="/")[0] == 200


def test_sessions_are_listed_by_their_names_and_those_with_another_title_are_not(
    resources: Resources, bakery: TokenSigner
) -> None:
    open_session(resources, ADA, "tomorrow", "Shop")
    open_session(resources, Caller(tenant="bakery", user="bo", capabilities=frozenset()), "secret", None)
    renamed = open_session(resources, ADA, "renamed", None)
    event = make_proxy_event(
        "PUT",
        f"/admin/api/ai/conversations/{renamed.conversation}",
        bakery.bearer_headers(user="ada", capabilities=RIGHTS),
        {"title": "Other"},
    )
    assert api.handler(event, None)["statusCode"] == 200
    listed = send("GET", "sessions", bakery)[1]["sessions"]
    assert {(one["session"], one["siteId"]) for one in listed} == {("today", "default"), ("tomorrow", "shop")}


def test_a_caller_is_told_who_asks_and_no_session_begins(bakery: TokenSigner) -> None:
    body = send("GET", "whoami", bakery, session="today")[1]
    assert (body["tenant"], body["user"], body["capabilities"]) == ("bakery", "ada", RIGHTS)
    assert (body["pageCount"], body["previewVersion"], body["publishedPageCount"]) == (3, 1, 0)
    assert send("GET", "whoami", bakery, session="none")[1]["pageCount"] == 0
    assert len(send("GET", "sessions", bakery)[1]["sessions"]) == 1


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Answer requests to the model with one variation, and record them."""
    requests: list[Any] = []

    def answer(_resources: Resources, _caller: Caller, request: Any) -> dict[str, Any]:
        requests.append(request)
        return {"object": {"variations": [VARIATION, VARIATION]}, "usage": {"totalTokens": 15}}

    monkeypatch.setattr(vary_block, "answer_generate_request", answer)
    return requests


def vary(signer: TokenSigner, path: str = "", **members: Any) -> tuple[int, Any]:
    body = {"session": "today", "message": "Two variations", "activeBlockId": "b_hero", **members}
    return send("POST", f"chat/variations{path}", signer, body)


def test_variations_of_a_block_are_patches_that_change_no_draft(
    resources: Resources, bakery: TokenSigner, asked: list[Any]
) -> None:
    status, body = vary(bakery, siteContext='{"tone": "warm"}', slug="/faq")
    assert (status, body["status"], body["pageSlug"], body["blockType"]) == (200, "ok", "/", "Hero")
    assert body["baseProps"]["heading"] == "Welcome"
    [variation] = body["variations"]
    assert (variation["patch"], variation["changedKeys"]) == ({"heading": "Hello"}, ["heading"])
    assert (asked[0].scope, "warm" in asked[0].messages[0][1]) == ("planner", True)
    assert load_draft(resources, open_session(resources, ADA, "today", None)).version == 1
    operation = {"op": "update_props", "pageSlug": "/", "blockId": "b_hero", "patch": variation["patch"]}
    assert send("POST", "ops", bakery, {"session": "today", "ops": [operation]})[1]["status"] == "applied"


def test_variations_come_as_events_too(bakery: TokenSigner, asked: list[Any]) -> None:
    status, text = vary(bakery, "/stream")
    assert status == 200
    frames = [json.loads(part.removeprefix("data: ")) for part in text.strip().split("\n\n")]
    assert [frame["event"] for frame in frames] == ["variations_ready", "done"]
    assert frames[0]["variations"][0]["title"] == "Short"


@pytest.mark.parametrize(
    ("members", "status"),
    [
        ({"message": "  "}, 400),
        ({"activeBlockId": "b_none"}, 404),
        ({"session": "none"}, 404),
        ({"activeBlockId": "b_header"}, 400),
        ({"siteContext": 5}, 400),
        ({"message": None}, 400),
    ],
)
def test_a_wrong_request_for_variations_asks_no_model(
    bakery: TokenSigner, asked: list[Any], members: Any, status: int
) -> None:
    assert vary(bakery, **members)[0] == status
    assert asked == []


def test_an_answer_without_a_usable_variation_is_told_as_such(
    bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vary_block, "answer_generate_request", lambda *_: {"object": {}, "usage": {}})
    status, body = vary(bakery)
    assert status == 422
    assert "no variation" in body["error"]


def test_a_provider_that_fails_is_told_as_such(bakery: TokenSigner, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise ServiceUnavailable("The provider failed.", retry_after=1)

    monkeypatch.setattr(vary_block, "answer_generate_request", fail)
    assert vary(bakery, "/stream")[0] == 503


@pytest.mark.parametrize("kind", [["add_block"], {"op": 1}, None, 5])
def test_operations_of_an_odd_kind_are_refused(bakery: TokenSigner, kind: Any) -> None:
    body = {"session": "today", "ops": [{"op": kind}], "siteCapabilities": {"allowStructuralEdits": False}}
    status, refused = send("POST", "ops", bakery, body)
    assert (status, refused["errorCode"]) == (400, "schema_violation")
