"""The credentials door as API Gateway calls it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.credentials import defaults
from fermata.words.caller import Caller
from fermata.words.scopes import SCOPES
from functions.credentials import app
from tests.callers import Signer, make_tenant
from tests.events import call
from tests.strict.listings import KEY, Listings, listings

ADA = Caller(tenant="bakery", user="ada", capabilities=frozenset())
AI = "/admin/api/ai"
CREDENTIALS = f"{AI}/credentials"
NEW = {"providerId": "anthropic", "authMode": "apiKey", "displayLabel": "Mine", "apiKey": KEY}


@pytest.fixture
def server() -> Iterator[Listings]:
    with listings() as server:
        server.lists("/v1/models", {"data": [{"id": "claude-opus-5", "display_name": "Claude Opus 5"}]})
        yield server


@pytest.fixture
def bakery(desk: Desk, deployed: None, server: Listings, monkeypatch: pytest.MonkeyPatch) -> Signer:
    monkeypatch.setenv("ANTHROPIC_URL", server.url)
    return make_tenant(desk)


def ask(method: str, path: str, signer: Signer, body: Any = None, **claims: Any) -> tuple[int, Any]:
    answer = app.handler(call(method, path, signer.bearer(**claims), body), None)
    return answer["statusCode"], json.loads(answer["body"])


def enter(signer: Signer, **members: Any) -> Any:
    status, body = ask("POST", CREDENTIALS, signer, NEW | members)
    assert status == 201
    return body["credential"]


def test_a_credential_is_entered_shown_listed_changed_and_removed(desk: Desk, bakery: Signer) -> None:
    entered = enter(bakery)
    one = f"{CREDENTIALS}/{entered['id']}"
    assert ask("GET", one, bakery) == (200, {"credential": entered})
    assert ask("GET", CREDENTIALS, bakery) == (200, {"credentials": [entered]})
    for scope in SCOPES:
        defaults.clear_default(desk, ADA, scope)
    renamed = entered | {"displayLabel": "Renamed"}
    assert ask("PUT", one, bakery, {"displayLabel": "Renamed", "apiKey": "sk-newer"}) == (200, {"credential": renamed})
    assert ask("DELETE", one, bakery) == (200, {"ok": True})
    assert ask("GET", one, bakery)[0] == 404


def test_the_key_never_comes_back(bakery: Signer) -> None:
    answer = app.handler(call("POST", CREDENTIALS, bakery.bearer(), NEW), None)
    assert KEY not in json.dumps(answer)


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
def test_what_cannot_be_stored_is_refused(bakery: Signer, members: dict[str, Any], status: int, says: str) -> None:
    answer = ask("POST", CREDENTIALS, bakery, NEW | members)
    assert answer[0] == status
    assert says in answer[1]["error"]


def test_an_instatic_browser_may_say_more_than_we_know(desk: Desk, bakery: Signer) -> None:
    cms = make_tenant(desk, "cms", dialect="instatic")
    mine = enter(cms, surprise=1)["id"]
    assert ask("PUT", f"{CREDENTIALS}/{mine}", cms, {"displayLabel": "Ours", "authMode": "apiKey"})[0] == 200
    status, body = ask("PUT", f"{CREDENTIALS}/{mine}", cms, {"authMode": "apiKey"})
    assert (status, "Send what is to change" in body["error"]) == (400, True)
    assert ask("POST", CREDENTIALS, cms, NEW | {"displayLabel": 7, "surprise": 1})[0] == 400


def test_the_same_label_twice_is_a_conflict(bakery: Signer) -> None:
    enter(bakery)
    answer = app.handler(call("POST", CREDENTIALS, bakery.bearer(), NEW), None)
    assert answer["statusCode"] == 409
    assert answer["headers"]["Retry-After"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_managing_keys_needs_its_own_capability(bakery: Signer, method: str) -> None:
    assert ask(method, CREDENTIALS, bakery, NEW, capabilities=("ai.chat",)) == (403, {"error": "Forbidden"})


def test_tenants_never_see_each_others_keys(desk: Desk, bakery: Signer) -> None:
    florist = make_tenant(desk, "florist")
    entered = enter(bakery)
    assert ask("GET", CREDENTIALS, florist) == (200, {"credentials": []})
    assert ask("GET", f"{CREDENTIALS}/{entered['id']}", florist)[0] == 404
    assert ask("DELETE", f"{CREDENTIALS}/{entered['id']}", florist)[0] == 404


def test_other_methods_are_told_so(bakery: Signer) -> None:
    answer = app.handler(call("PATCH", CREDENTIALS, bakery.bearer()), None)
    assert (answer["statusCode"], answer["headers"]["Allow"]) == (405, "GET, POST, OPTIONS")


class TestDefaults:
    def test_the_first_credential_becomes_the_default_of_every_scope(self, desk: Desk, bakery: Signer) -> None:
        entered = enter(bakery)
        seeded = {"credentialId": entered["id"], "modelId": "claude-opus-5"}
        assert defaults.defaults_view(desk, "bakery") == dict.fromkeys(SCOPES, seeded)

    def test_one_whose_provider_does_not_answer_is_created_all_the_same(
        self, desk: Desk, bakery: Signer, server: Listings
    ) -> None:
        server.fails("/v1/models", 500, {})
        enter(bakery)
        assert defaults.defaults_view(desk, "bakery") == {}

    def test_what_a_default_points_at_cannot_be_removed(self, bakery: Signer) -> None:
        status, body = ask("DELETE", f"{CREDENTIALS}/{enter(bakery)['id']}", bakery)
        assert (status, body["error"]) == (
            409,
            "This credential is the default of site, content, data, plugin. Choose another default there first.",
        )


class TestTrying:
    def test_a_good_one_counts_its_models(self, bakery: Signer) -> None:
        path = f"{CREDENTIALS}/{enter(bakery)['id']}/test"
        assert ask("POST", path, bakery) == (200, {"ok": True, "modelCount": 1})

    def test_a_bad_one_is_an_answer_without_the_key(self, bakery: Signer, server: Listings) -> None:
        path = f"{CREDENTIALS}/{enter(bakery)['id']}/test"
        server.fails("/v1/models", 500, {"error": {"message": f"{KEY} is odd"}})
        status, body = ask("POST", path, bakery)
        assert (status, body["ok"], "[redacted] is odd" in body["error"]) == (200, False, True)

    def test_a_missing_one_is_not_found(self, bakery: Signer) -> None:
        assert ask("POST", f"{CREDENTIALS}/none/test", bakery)[0] == 404

    def test_it_needs_more_than_chatting(self, bakery: Signer) -> None:
        assert ask("POST", f"{CREDENTIALS}/none/test", bakery, capabilities=("ai.chat",))[0] == 403

    def test_nothing_else_is_done_there(self, bakery: Signer) -> None:
        answer = app.handler(call("GET", f"{CREDENTIALS}/none/test", bakery.bearer()), None)
        assert (answer["statusCode"], answer["headers"]["Allow"]) == (405, "POST, OPTIONS")


class TestModels:
    def models(self, bakery: Signer, provider: str, credential: str | None, **claims: Any) -> tuple[int, Any]:
        event = call("GET", f"{AI}/providers/{provider}/models", bakery.bearer(**claims))
        event["queryStringParameters"] = None if credential is None else {"credentialId": credential}
        answer = app.handler(event, None)
        return answer["statusCode"], json.loads(answer["body"])

    def test_whoever_may_chat_sees_them(self, bakery: Signer) -> None:
        entered = enter(bakery)
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
    def test_who_asks_wrongly_is_told_how_to_ask(
        self, bakery: Signer, provider: str, credential: str | None, status: int, says: str
    ) -> None:
        mine = enter(bakery)["id"]
        answer = self.models(bakery, provider, mine if credential == "mine" else credential)
        assert (answer[0], says in answer[1]["error"]) == (status, True)

    @pytest.mark.parametrize(("failure", "status"), [(401, 502), (400, 502), (529, 503), (429, 503)])
    def test_a_provider_that_fails_is_a_clean_error(
        self, bakery: Signer, server: Listings, failure: int, status: int
    ) -> None:
        entered = enter(bakery)
        server.fails("/v1/models", failure, {"error": {"message": f"no {KEY}"}})
        told, body = self.models(bakery, "anthropic", entered["id"])
        assert told == status
        assert KEY not in body["error"]
        assert body["error"].startswith("Anthropic ")

    def test_it_needs_a_capability(self, bakery: Signer) -> None:
        assert self.models(bakery, "anthropic", "mine", capabilities=("ai.audit.read",))[0] == 403
