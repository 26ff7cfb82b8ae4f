"""The credentials door as API Gateway calls it."""

import json
from typing import Any

import pytest

from fermata.aws.desk import Desk
from functions.credentials import app
from tests.callers import Signer, make_tenant
from tests.events import call

CREDENTIALS = "/admin/api/ai/credentials"
NEW = {"providerId": "anthropic", "authMode": "apiKey", "displayLabel": "Mine", "apiKey": "sk-ant-secret"}


@pytest.fixture
def bakery(desk: Desk, deployed: None) -> Signer:
    return make_tenant(desk)


def ask(method: str, path: str, signer: Signer, body: Any = None, **claims: Any) -> tuple[int, Any]:
    answer = app.handler(call(method, path, signer.bearer(**claims), body), None)
    return answer["statusCode"], json.loads(answer["body"])


def enter(signer: Signer, **members: Any) -> Any:
    status, body = ask("POST", CREDENTIALS, signer, NEW | members)
    assert status == 201
    return body["credential"]


def test_a_credential_is_entered_shown_listed_changed_and_removed(bakery: Signer) -> None:
    entered = enter(bakery)
    one = f"{CREDENTIALS}/{entered['id']}"
    assert ask("GET", one, bakery) == (200, {"credential": entered})
    assert ask("GET", CREDENTIALS, bakery) == (200, {"credentials": [entered]})
    renamed = entered | {"displayLabel": "Renamed"}
    assert ask("PUT", one, bakery, {"displayLabel": "Renamed", "apiKey": "sk-newer"}) == (200, {"credential": renamed})
    assert ask("DELETE", one, bakery) == (200, {"ok": True})
    assert ask("GET", one, bakery)[0] == 404


def test_the_key_never_comes_back(bakery: Signer) -> None:
    answer = app.handler(call("POST", CREDENTIALS, bakery.bearer(), NEW), None)
    assert "secret" not in json.dumps(answer)


@pytest.mark.parametrize(
    ("members", "status", "says"),
    [
        ({"providerId": "openai"}, 400, "is not served"),
        ({"authMode": "baseUrl", "baseUrl": "https://llm.example"}, 400, "is not served"),
        ({"apiKey": None}, 400, "apiKey"),
        ({"displayLabel": " "}, 400, "'displayLabel' must not be empty"),
        ({"authMode": "magic"}, 400, "'authMode' must be 'apiKey' or 'baseUrl'"),
        ({"apikey": "sk"}, 400, "'apikey' is not known here"),
    ],
)
def test_what_cannot_be_stored_is_refused(bakery: Signer, members: dict[str, Any], status: int, says: str) -> None:
    answer = ask("POST", CREDENTIALS, bakery, NEW | members)
    assert answer[0] == status
    assert says in answer[1]["error"]


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
