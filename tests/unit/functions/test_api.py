"""The api function as API Gateway invokes it."""

import json
from typing import Any

import pytest

import fermata
from fermata.aws.resources import Resources
from fermata.credentials import credential_store
from fermata.domain.agent_ids import SCOPES
from fermata.domain.caller import Caller
from functions.api import app
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant

AI = "/admin/api/ai"
ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources)


def send(method: str, path: str, signer: TokenSigner, body: Any = None, **claims: Any) -> tuple[int, Any]:
    answer = app.handler(make_proxy_event(method, path, signer.bearer_headers(**claims), body), None)
    return answer["statusCode"], json.loads(answer["body"] or "null")


def create_conversation(signer: TokenSigner, **members: Any) -> Any:
    status, body = send("POST", f"{AI}/conversations", signer, {"scope": "site"} | members)
    assert status == 201
    return body["conversation"]


class TestConversations:
    def test_a_new_conversation_has_no_messages(self, resources: Resources, bakery: TokenSigner) -> None:
        mine = credential_store.create_credential(resources, ADA, "anthropic", "apiKey", "Mine", "sk-ant-secret").id
        begun = create_conversation(bakery, title="Home", credentialId=mine, modelId="m")
        assert (begun["title"], begun["credentialId"], begun["modelId"]) == ("Home", mine, "m")
        answer = app.handler(
            make_proxy_event("GET", f"{AI}/conversations/{begun['id']}", bakery.bearer_headers()), None
        )
        assert answer["statusCode"] == 200
        assert answer["headers"]["Cache-Control"] == "private, no-store"
        assert json.loads(answer["body"]) == {"conversation": begun | {"messages": []}}

    @pytest.mark.parametrize("title", [None, "", "  ", "New conversation"])
    def test_a_conversation_without_a_title_is_called_new_until_its_first_prompt(
        self, bakery: TokenSigner, title: str | None
    ) -> None:
        assert create_conversation(bakery, title=title)["title"] == "New conversation"

    def test_only_the_scope_is_needed(self, bakery: TokenSigner) -> None:
        assert create_conversation(bakery)["credentialId"] is None

    @pytest.mark.parametrize(
        ("body", "says"),
        [
            (None, "It is empty"),
            ({}, "'scope' is missing"),
            ({"scope": "shop"}, "'cms', 'studio' or 'agent:' and the id of an agent"),
            ({"scope": "site", "title": 7}, "'title' must be a string"),
            ({"scope": "site", "title": "x" * 201}, "'title' may have at most 200 characters"),
            ({"scope": "site", "model": "m"}, "'model' is not known here"),
        ],
    )
    def test_an_error_names_the_wrong_member_of_a_body(self, bakery: TokenSigner, body: Any, says: str) -> None:
        status, answer = send("POST", f"{AI}/conversations", bakery, body)
        assert status == 400
        assert says in answer["error"]

    def test_conversations_of_another_user_or_tenant_are_not_found(
        self, resources: Resources, bakery: TokenSigner
    ) -> None:
        path = f"{AI}/conversations/{create_conversation(bakery)['id']}"
        florist = make_tenant(resources, "florist")
        for signer, user in ((bakery, "bob"), (florist, "ada")):
            assert send("GET", path, signer, user=user) == (404, {"error": "Conversation not found"})

    def test_a_conversation_needs_the_capability_to_chat(self, bakery: TokenSigner) -> None:
        assert send("POST", f"{AI}/conversations", bakery, {}, capabilities=()) == (403, {"error": "Forbidden"})


class TestDefaults:
    def test_a_default_is_set_shown_and_cleared(self, resources: Resources, bakery: TokenSigner) -> None:
        mine = credential_store.create_credential(resources, ADA, "anthropic", "apiKey", "Mine", "sk-ant-secret").id
        status, body = send("PUT", f"{AI}/defaults/site", bakery, {"credentialId": mine, "modelId": "m"})
        assert status == 200
        assert set(body["default"]) == {"scope", "credentialId", "modelId", "updatedAt", "updatedBy"}
        shown = {"site": {"credentialId": mine, "modelId": "m"}}
        assert send("GET", f"{AI}/defaults", bakery) == (200, {"defaults": shown})
        for _ in range(2):
            assert send("DELETE", f"{AI}/defaults/site", bakery) == (204, None)
        assert send("GET", f"{AI}/defaults", bakery) == (200, {"defaults": {}})

    def test_a_missing_credential_is_refused_with_instatics_text(self, bakery: TokenSigner) -> None:
        answer = send("PUT", f"{AI}/defaults/site", bakery, {"credentialId": "none", "modelId": "m"})
        assert answer == (400, {"error": "Credential not found. Pick an existing credential."})

    def test_an_unknown_scope_is_refused_before_authentication(self, bakery: TokenSigner) -> None:
        answer = app.handler(make_proxy_event("PUT", f"{AI}/defaults/shop", {}, {}), None)
        assert answer["statusCode"] == 400
        assert ", ".join(SCOPES) in answer["body"]

    def test_setting_needs_more_than_chatting(self, bakery: TokenSigner) -> None:
        chatting = {"capabilities": ("ai.chat",)}
        assert send("GET", f"{AI}/defaults", bakery, **chatting)[0] == 200
        assert send("PUT", f"{AI}/defaults/site", bakery, {}, **chatting)[0] == 403
        assert send("DELETE", f"{AI}/defaults/site", bakery, **chatting)[0] == 403


class TestBridges:
    @pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", "/cancel"), ("GET", "/journal")])
    @pytest.mark.parametrize("name", ["none", "x" * 3_000, "é"])
    def test_an_unknown_turn_is_not_found(self, bakery: TokenSigner, method: str, path: str, name: str) -> None:
        assert send(method, f"{AI}/bridges/{name}{path}", bakery)[0] == 404


class TestServiceOperations:
    def test_health_and_version_are_public(self, resources: Resources, bakery: TokenSigner) -> None:
        assert json.loads(app.handler(make_proxy_event("GET", "/healthz"), None)["body"]) == {"ok": True}
        told = json.loads(app.handler(make_proxy_event("GET", "/version"), None)["body"])
        assert told == {"version": fermata.__version__, "stage": "dev"}

    def test_an_unknown_path_is_not_found(self, bakery: TokenSigner) -> None:
        assert send("GET", f"{AI}/no/such/thing", bakery) == (404, {"error": "Not found"})

    def test_a_response_to_a_wrong_method_names_the_right_one(self, bakery: TokenSigner) -> None:
        answer = app.handler(make_proxy_event("DELETE", f"{AI}/conversations"), None)
        assert (answer["statusCode"], answer["headers"]["Allow"]) == (405, "GET, POST, OPTIONS")

    def test_a_preflight_is_answered(self, bakery: TokenSigner) -> None:
        answer = app.handler(make_proxy_event("OPTIONS", f"{AI}/conversations", {"Origin": bakery.origin}), None)
        assert (answer["statusCode"], answer["body"]) == (204, "")
        assert answer["headers"]["Access-Control-Allow-Origin"] == bakery.origin
