"""The credentials function as API Gateway invokes it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.credentials import scope_defaults
from fermata.domain.agent_ids import SCOPES
from fermata.domain.caller import Caller
from functions.credentials import app
from tests.proxy_events import make_proxy_event
from tests.strict.model_lists import ACCEPTED_KEY, ModelListServer, run_model_list_server
from tests.tenant_tokens import TokenSigner, make_tenant

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())
AI = "/admin/api/ai"
CREDENTIALS = f"{AI}/credentials"
NEW = {"providerId": "anthropic", "authMode": "apiKey", "displayLabel": "Mine", "apiKey": ACCEPTED_KEY}


@pytest.fixture
def server() -> Iterator[ModelListServer]:
    with run_model_list_server() as server:
        server.set_response("/v1/models", {"data": [{"id": "claude-opus-5", "display_name": "Claude Opus 5"}]})
        yield server


@pytest.fixture
def bakery(
    resources: Resources, deployed: None, server: ModelListServer, monkeypatch: pytest.MonkeyPatch
) -> TokenSigner:
    monkeypatch.setenv("PROVIDER_URLS", json.dumps({"anthropic": server.url}))
    return make_tenant(resources)


def send(method: str, path: str, signer: TokenSigner, body: Any = None, **claims: Any) -> tuple[int, Any]:
    answer = app.handler(make_proxy_event(method, path, signer.bearer_headers(**claims), body), None)
    return answer["statusCode"], json.loads(answer["body"])


def create_credential(signer: TokenSigner, **members: Any) -> Any:
    status, body = send("POST", CREDENTIALS, signer, NEW | members)
    assert status == 201
    return body["credential"]


def test_a_credential_is_created_shown_listed_changed_and_deleted(resources: Resources, bakery: TokenSigner) -> None:
    entered = create_credential(bakery)
    one = f"{CREDENTIALS}/{entered['id']}"
    assert send("GET", one, bakery) == (200, {"credential": entered})
    assert send("GET", CREDENTIALS, bakery) == (200, {"credentials": [entered]})
    for scope in SCOPES:
        scope_defaults.clear_default(resources, ADA, scope)
    renamed = entered | {"displayLabel": "Renamed"}
    assert send("PUT", one, bakery, {"displayLabel": "Renamed", "apiKey": "sk-newer"}) == (200, {"credential": renamed})
    assert send("DELETE", one, bakery) == (200, {"ok": True})
    assert send("GET", one, bakery)[0] == 404


def test_the_key_is_never_returned(bakery: TokenSigner) -> None:
    answer = app.handler(make_proxy_event("POST", CREDENTIALS, bakery.bearer_headers(), NEW), None)
    assert ACCEPTED_KEY not in json.dumps(answer)


@pytest.mark.parametrize(
    ("members", "status", "says"),
    [
        ({"providerId": "requesty"}, 400, "Unknown provider: requesty"),
        ({"authMode": "baseUrl", "baseUrl": "https://10.0.0.1"}, 400, "not public"),
        ({"authMode": "baseUrl", "baseUrl": "http://models.example"}, 400, "must begin with https"),
        ({"authMode": "baseUrl"}, 400, "'baseUrl'"),
        ({"providerId": "ollama"}, 400, "send authMode 'baseUrl'"),
        ({"apiKey": None}, 400, "apiKey"),
        ({"apiKey": ""}, 400, "apiKey"),
        ({"displayLabel": " "}, 400, "'displayLabel' must not be empty"),
        ({"authMode": "magic"}, 400, "'authMode' must be 'apiKey' or 'baseUrl'"),
        ({"apikey": "sk"}, 400, "'apikey' is not known here"),
    ],
)
def test_an_invalid_credential_is_refused(bakery: TokenSigner, members: dict[str, Any], status: int, says: str) -> None:
    answer = send("POST", CREDENTIALS, bakery, NEW | members)
    assert answer[0] == status
    assert says in answer[1]["error"]


def test_unknown_members_of_an_instatic_browser_are_ignored(resources: Resources, bakery: TokenSigner) -> None:
    cms = make_tenant(resources, "cms", dialect="instatic")
    mine = create_credential(cms, surprise=1)["id"]
    assert send("PUT", f"{CREDENTIALS}/{mine}", cms, {"displayLabel": "Ours", "authMode": "apiKey"})[0] == 200
    status, body = send("PUT", f"{CREDENTIALS}/{mine}", cms, {"authMode": "apiKey"})
    assert (status, "Send what is to change" in body["error"]) == (400, True)
    assert send("POST", CREDENTIALS, cms, NEW | {"displayLabel": 7, "surprise": 1})[0] == 400


def test_the_same_label_twice_is_a_conflict(bakery: TokenSigner) -> None:
    create_credential(bakery)
    answer = app.handler(make_proxy_event("POST", CREDENTIALS, bakery.bearer_headers(), NEW), None)
    assert answer["statusCode"] == 409
    assert "Retry-After" not in answer["headers"], "waiting would not help"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_managing_credentials_needs_its_own_capability(bakery: TokenSigner, method: str) -> None:
    assert send(method, CREDENTIALS, bakery, NEW, capabilities=("ai.chat",)) == (403, {"error": "Forbidden"})


def test_tenants_never_see_each_others_credentials(resources: Resources, bakery: TokenSigner) -> None:
    florist = make_tenant(resources, "florist")
    entered = create_credential(bakery)
    assert send("GET", CREDENTIALS, florist) == (200, {"credentials": []})
    assert send("GET", f"{CREDENTIALS}/{entered['id']}", florist)[0] == 404
    assert send("DELETE", f"{CREDENTIALS}/{entered['id']}", florist)[0] == 404


def test_other_methods_are_refused(bakery: TokenSigner) -> None:
    answer = app.handler(make_proxy_event("PATCH", CREDENTIALS, bakery.bearer_headers()), None)
    assert (answer["statusCode"], answer["headers"]["Allow"]) == (405, "GET, POST, OPTIONS")


class TestDefaults:
    def test_the_first_credential_becomes_the_default_of_every_scope(
        self, resources: Resources, bakery: TokenSigner
    ) -> None:
        entered = create_credential(bakery)
        seeded = {"credentialId": entered["id"], "modelId": "claude-opus-5"}
        assert scope_defaults.get_defaults_view(resources, "bakery") == dict.fromkeys(SCOPES, seeded)

    def test_a_credential_is_created_although_its_provider_does_not_answer(
        self, resources: Resources, bakery: TokenSigner, server: ModelListServer
    ) -> None:
        server.set_error("/v1/models", 500, {})
        create_credential(bakery)
        assert scope_defaults.get_defaults_view(resources, "bakery") == {}

    def test_a_default_credential_cannot_be_deleted(self, bakery: TokenSigner) -> None:
        status, body = send("DELETE", f"{CREDENTIALS}/{create_credential(bakery)['id']}", bakery)
        assert (status, body["error"]) == (
            409,
            f"This credential is the default of {', '.join(SCOPES)}. Choose another default there first.",
        )


class TestTestingACredential:
    def test_a_working_credential_counts_its_models(self, bakery: TokenSigner) -> None:
        path = f"{CREDENTIALS}/{create_credential(bakery)['id']}/test"
        assert send("POST", path, bakery) == (200, {"ok": True, "modelCount": 1})

    def test_the_result_for_a_failing_credential_does_not_contain_the_key(
        self, bakery: TokenSigner, server: ModelListServer
    ) -> None:
        path = f"{CREDENTIALS}/{create_credential(bakery)['id']}/test"
        server.set_error("/v1/models", 500, {"error": {"message": f"{ACCEPTED_KEY} is odd"}})
        status, body = send("POST", path, bakery)
        assert (status, body["ok"], "[redacted] is odd" in body["error"]) == (200, False, True)

    def test_a_missing_credential_is_not_found(self, bakery: TokenSigner) -> None:
        assert send("POST", f"{CREDENTIALS}/none/test", bakery)[0] == 404

    def test_testing_needs_the_capability_to_manage_providers(self, bakery: TokenSigner) -> None:
        assert send("POST", f"{CREDENTIALS}/none/test", bakery, capabilities=("ai.chat",))[0] == 403

    def test_no_other_method_is_allowed(self, bakery: TokenSigner) -> None:
        answer = app.handler(make_proxy_event("GET", f"{CREDENTIALS}/none/test", bakery.bearer_headers()), None)
        assert (answer["statusCode"], answer["headers"]["Allow"]) == (405, "POST, OPTIONS")


class TestModels:
    def models(self, bakery: TokenSigner, provider: str, credential: str | None, **claims: Any) -> tuple[int, Any]:
        event = make_proxy_event("GET", f"{AI}/providers/{provider}/models", bakery.bearer_headers(**claims))
        event["queryStringParameters"] = None if credential is None else {"credentialId": credential}
        answer = app.handler(event, None)
        return answer["statusCode"], json.loads(answer["body"])

    def test_a_caller_who_may_chat_sees_the_models(self, bakery: TokenSigner) -> None:
        entered = create_credential(bakery)
        status, body = self.models(bakery, "anthropic", entered["id"], user="bob", capabilities=("ai.chat",))
        assert status == 200
        assert [(model["id"], model["tier"]) for model in body["models"]] == [("claude-opus-5", "smartest")]

    @pytest.mark.parametrize(
        ("provider", "credential", "status", "says"),
        [
            ("requesty", "mine", 400, "Unknown provider: requesty"),
            ("openai", "mine", 400, "is for anthropic"),
            ("anthropic", None, 400, "?credentialId="),
            ("anthropic", "", 400, "?credentialId="),
            ("anthropic", "none", 404, "no longer accessible"),
        ],
    )
    def test_an_invalid_request_for_models_is_explained(
        self, bakery: TokenSigner, provider: str, credential: str | None, status: int, says: str
    ) -> None:
        mine = create_credential(bakery)["id"]
        answer = self.models(bakery, provider, mine if credential == "mine" else credential)
        assert (answer[0], says in answer[1]["error"]) == (status, True)

    @pytest.mark.parametrize(("failure", "status"), [(401, 502), (400, 502), (529, 503), (429, 503)])
    def test_a_provider_failure_is_a_502_without_details(
        self, bakery: TokenSigner, server: ModelListServer, failure: int, status: int
    ) -> None:
        entered = create_credential(bakery)
        server.set_error("/v1/models", failure, {"error": {"message": f"no {ACCEPTED_KEY}"}})
        told, body = self.models(bakery, "anthropic", entered["id"])
        assert told == status
        assert ACCEPTED_KEY not in body["error"]
        assert body["error"].startswith("Anthropic ")

    def test_listing_models_needs_a_capability(self, bakery: TokenSigner) -> None:
        assert self.models(bakery, "anthropic", "mine", capabilities=("ai.audit.read",))[0] == 403
