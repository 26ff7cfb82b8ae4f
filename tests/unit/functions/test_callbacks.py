"""Servers answer over HTTP without a session: with a callback token, or with a remote tool's signature."""

import json
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.signed_requests.signature import make_signing_secret, sign_request
from functions.tool_result import app
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant

AI = "/admin/api/ai"
RESULT = {"bridgeId": "b", "requestId": "1.0.abc", "result": {"ok": True}}
REMOTE_RESULT = {"tenant": "bakery", "bridgeId": "b", "requestId": "1.0.remote", "data": 1}


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources)


def send(path: str, headers: dict[str, str], body: Any) -> tuple[int, Any]:
    answer = app.handler(make_proxy_event("POST", f"{AI}/{path}", headers, body), None)
    return answer["statusCode"], json.loads(answer["body"])


@pytest.mark.parametrize("token", ["", "x", "fmc.bakery.b." + "x" * 43])
def test_a_result_without_a_valid_callback_token_is_refused(
    bakery: TokenSigner, token: str, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"fermata-callback-token": token} | bakery.bearer_headers()  # a session does not count here
    assert send("callback-results", headers, RESULT)[0] == 401
    assert "security.token_refused" in [record.getMessage() for record in caplog.records]


def test_a_remote_result_for_an_unknown_call_is_refused_like_one_with_a_wrong_signature(bakery: TokenSigner) -> None:
    body = json.dumps(REMOTE_RESULT)
    signed = sign_request([make_signing_secret()], "msg_1", 1_800_000_000, body.encode())
    for headers in ({}, signed, bakery.bearer_headers()):
        status, answer = send("tool-callbacks", headers, REMOTE_RESULT)
        assert (status, answer["error"]) == (401, "Unauthorized: no tool that was called has signed this.")


@pytest.mark.parametrize("tenant", ["bakery", "", "a/b", "x" * 300])
@pytest.mark.parametrize("request_id", ["1.0.remote", "x", "9999999.0.remote", "1.0.remote.more"])
def test_odd_ids_are_refused(bakery: TokenSigner, tenant: str, request_id: str) -> None:
    status, _ = send("tool-callbacks", {}, REMOTE_RESULT | {"tenant": tenant, "requestId": request_id})
    assert status in (400, 401)


def test_a_token_is_issued_for_a_turn_of_the_caller_only(bakery: TokenSigner) -> None:
    assert send("bridges/unknown/callback-tokens", bakery.bearer_headers(), {})[0] == 404
    assert send("bridges/unknown/callback-tokens", {}, {})[0] == 401
    assert send("bridges/unknown/callback-tokens", bakery.bearer_headers(), {"expiresInSeconds": 0})[0] == 400


@pytest.mark.parametrize("members", [{}, {"result": 1}, {"data": 1, "error": {"message": "No."}}])
def test_a_remote_result_without_data_and_error_or_with_both_is_refused_and_says_what_belongs_there(
    bakery: TokenSigner, members: dict[str, Any]
) -> None:
    named = {name: value for name, value in REMOTE_RESULT.items() if name != "data"}
    status, answer = send("tool-callbacks", {}, named | members)
    assert (status, "either 'data' or an 'error'" in answer["error"]) == (400, True)
