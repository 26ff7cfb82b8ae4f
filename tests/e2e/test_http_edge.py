"""Test the HTTP edge through the front door and through the emulator's own API Gateway."""

import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from local.cloud import LocalCloud
from local.signed_pages import RunSignature
from tests.e2e.chat_session import ChatSession, open_http
from tests.e2e.demo_model_client import text_step
from tests.e2e.fault_rules import FaultRules
from tests.e2e.stream_reader import API_PREFIX
from tests.waiting import BACKSTOP_SECONDS, wait_until

Headers = dict[str, str]
FRONT, GATEWAY = "front door", "gateway"
HOME = "http://127.0.0.1:8787"
ABROAD = "https://evil.example"
BEHIND_BOTH = [
    ("POST", f"{API_PREFIX}/conversations"),
    ("GET", f"{API_PREFIX}/conversations/some"),
    ("GET", f"{API_PREFIX}/defaults"),
    ("PUT", f"{API_PREFIX}/defaults/site"),
    ("DELETE", f"{API_PREFIX}/defaults/site"),
    ("GET", f"{API_PREFIX}/bridges/some"),
    ("POST", f"{API_PREFIX}/bridges/some/cancel"),
    ("POST", f"{API_PREFIX}/tool-result"),
    ("GET", f"{API_PREFIX}/credentials"),
    ("POST", f"{API_PREFIX}/credentials"),
    ("PUT", f"{API_PREFIX}/credentials/some"),
    ("DELETE", f"{API_PREFIX}/credentials/some"),
]
STREAMED = [("POST", f"{API_PREFIX}/chat/site"), ("GET", f"{API_PREFIX}/bridges/some/events")]
EVERYWHERE = [(FRONT, *route) for route in BEHIND_BOTH + STREAMED] + [(GATEWAY, *route) for route in BEHIND_BOTH]
UNKNOWN = [
    "/nope",
    API_PREFIX,
    f"{API_PREFIX}/nope",
    f"{API_PREFIX}/conversations/a/b",
    f"{API_PREFIX}/defaults/a/b",
    "/admin/",
]
ALMOST = [
    "/",
    f"{API_PREFIX}/chat/nowhere",
    f"{API_PREFIX}/chat/site/",
    f"{API_PREFIX}/chat/site/more",
    "//",
    "/%2e%2e/",
]
TAKES_A_BODY = [
    (way, method, path) for way, method, path in EVERYWHERE if method in ("POST", "PUT") and "cancel" not in path
]
BODIES = [b"", b"{", b"[]", b'"text"', b"\xff\xfe", b'{"a":1,"a":2}', b'{"a":NaN}', b"[" * 100_000]


@pytest.fixture(scope="module")
def ways(cloud: LocalCloud, gateway: str) -> Iterator[dict[str, httpx.Client]]:
    options: dict[str, Any] = {"trust_env": False, "timeout": BACKSTOP_SECONDS, "verify": False}
    with (
        httpx.Client(base_url=cloud.url, **options) as front,
        httpx.Client(base_url=gateway, auth=RunSignature(), **options) as behind,
    ):
        yield {FRONT: front, GATEWAY: behind}


@pytest.fixture
def mine(cloud: LocalCloud) -> Headers:
    return {"authorization": f"Bearer {cloud.token}"}


def is_error_response(answer: httpx.Response, status: int) -> bool:
    """Return whether a response is a JSON error with a sentence and the request's id."""
    assert answer.status_code == status, answer.text
    assert answer.json().keys() == {"error"}
    assert answer.json()["error"]
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    return True


@pytest.mark.parametrize("way", [FRONT, GATEWAY])
@pytest.mark.parametrize(
    "path",
    [
        "/nope",
        API_PREFIX,
        f"{API_PREFIX}/nope",
        f"{API_PREFIX}/conversations/a/b",
        f"{API_PREFIX}/defaults/a/b",
        "/admin/",
    ],
)
def test_an_unknown_path_is_a_404(ways: dict[str, httpx.Client], mine: Headers, way: str, path: str) -> None:
    assert is_error_response(ways[way].get(path, headers=mine), 404)


@pytest.mark.parametrize(
    "path",
    [f"{API_PREFIX}/chat/nowhere", f"{API_PREFIX}/chat/site/", f"{API_PREFIX}/chat/site/more", "/x", "/%2e%2e/"],
)
def test_a_path_similar_to_a_known_one_is_a_404(ways: dict[str, httpx.Client], mine: Headers, path: str) -> None:
    answer = ways[FRONT].request("GET" if "chat" not in path else "POST", path, headers=mine, json={})
    assert is_error_response(answer, 404)


@pytest.mark.parametrize(("way", "method", "path"), EVERYWHERE)
def test_a_wrong_method_is_a_405_that_lists_the_allowed_methods(
    ways: dict[str, httpx.Client], mine: Headers, way: str, method: str, path: str
) -> None:
    answer = ways[way].request("PATCH", path, headers=mine)
    assert is_error_response(answer, 405)
    assert method in answer.headers["allow"]


@pytest.mark.parametrize(("way", "method", "path"), EVERYWHERE)
def test_a_request_without_a_token_is_a_401(ways: dict[str, httpx.Client], way: str, method: str, path: str) -> None:
    answer = ways[way].request(method, path, json={})
    assert is_error_response(answer, 401)
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("way", "method", "path"), EVERYWHERE)
def test_a_token_without_capabilities_allows_nothing(
    ways: dict[str, httpx.Client], cloud: LocalCloud, way: str, method: str, path: str
) -> None:
    powerless = {"authorization": f"Bearer {cloud.sign_token(capabilities=[])}"}
    assert is_error_response(ways[way].request(method, path, headers=powerless, json={}), 403)


@pytest.mark.parametrize("way", [FRONT, GATEWAY])
@pytest.mark.parametrize(
    "claims", [{"exp": 1}, {"aud": "another"}, {"iss": "https://evil.example"}, {"iat": None}, {"tenant": "other"}]
)
def test_an_altered_token_is_refused(
    ways: dict[str, httpx.Client], cloud: LocalCloud, way: str, claims: dict[str, Any]
) -> None:
    token = cloud.sign_token(**claims)
    for bad in (token, token[:-3], f"{token}.", "x.y.z"):
        answer = ways[way].get(f"{API_PREFIX}/defaults", headers={"authorization": f"Bearer {bad}"})
        assert is_error_response(answer, 401)


@pytest.mark.parametrize(("way", "method", "path"), TAKES_A_BODY)
def test_a_body_that_is_no_json_object_is_a_400(
    ways: dict[str, httpx.Client], mine: Headers, way: str, method: str, path: str
) -> None:
    for body in BODIES:
        assert is_error_response(ways[way].request(method, path, headers=mine, content=body), 400)


@pytest.mark.parametrize("way", [FRONT, GATEWAY])
def test_an_unknown_member_is_refused_by_name(ways: dict[str, httpx.Client], mine: Headers, way: str) -> None:
    new = {"providerId": "anthropic", "authMode": "apiKey", "displayLabel": "x", "apiKey": "y"}
    bodies = {
        f"{API_PREFIX}/conversations": {"scope": "site", "surprise": 1},
        f"{API_PREFIX}/credentials": new | {"surprise": 1},
    }
    for path, body in bodies.items():
        answer = ways[way].post(path, headers=mine, json=body)
        assert is_error_response(answer, 400)
        assert "surprise" in answer.json()["error"]


def test_other_generations_of_clients_may_send_more_to_chat_and_tool_result(session: ChatSession) -> None:
    prompt = session.scripted_prompt(text_step("Fine."))
    body = {"conversationId": session.conversation, "prompt": prompt, "surprise": {"deep": [1]}}
    with open_http(session.cloud) as bare:
        started = bare.post("/chat/site", json=body, headers={"accept": "application/json"})
        assert started.status_code == 202
        result = {"ok": True, "surprise": 1}
        answer = bare.post("/tool-result", json={"bridgeId": "x", "requestId": "1.0.y", "result": result, "more": 1})
        assert is_error_response(answer, 404)
    session.bridge = started.json()["bridgeId"]
    assert session.open_reader().wait_for_end()[-1]["type"] == "done"


@pytest.mark.parametrize("way", [FRONT, GATEWAY])
@pytest.mark.parametrize("origin", [ABROAD, "null", "", "http://127.0.0.1:1"])
def test_a_cookie_from_another_origin_is_refused(
    ways: dict[str, httpx.Client], cloud: LocalCloud, way: str, origin: str
) -> None:
    headers = {"cookie": f"fermata_session={cloud.token}"} | ({"origin": origin} if origin else {})
    answer = ways[way].post(f"{API_PREFIX}/conversations", headers=headers, json={"scope": "site"})
    assert is_error_response(answer, 403)
    assert "origin" in answer.json()["error"]
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("way", [FRONT, GATEWAY])
def test_a_cookie_from_the_tenants_origin_authenticates(
    ways: dict[str, httpx.Client], cloud: LocalCloud, way: str
) -> None:
    headers = {"cookie": f"a=b; fermata_session={cloud.token}", "origin": HOME}
    answer = ways[way].post(f"{API_PREFIX}/conversations", headers=headers, json={"scope": "site"})
    assert answer.status_code == 201
    assert answer.headers["access-control-allow-origin"] == HOME
    assert answer.headers["access-control-allow-credentials"] == "true"


def test_a_chat_with_a_cookie_needs_the_tenants_origin(ways: dict[str, httpx.Client], cloud: LocalCloud) -> None:
    cookie = {"cookie": f"fermata_session={cloud.token}"}
    body = {"conversationId": "some", "prompt": "Hello"}
    assert is_error_response(
        ways[FRONT].post(f"{API_PREFIX}/chat/site", headers=cookie | {"origin": ABROAD}, json=body), 403
    )
    assert is_error_response(
        ways[FRONT].post(f"{API_PREFIX}/chat/site", headers=cookie | {"origin": HOME}, json=body), 404
    )


@pytest.mark.parametrize(("way", "method", "path"), EVERYWHERE)
def test_a_preflight_is_answered_for_the_tenants_origin_only(
    ways: dict[str, httpx.Client], way: str, method: str, path: str
) -> None:
    asks = {"access-control-request-method": method, "access-control-request-headers": "authorization"}
    answer = ways[way].options(path, headers=asks | {"origin": HOME})
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == HOME
    assert method in answer.headers["access-control-allow-methods"]
    assert "authorization" in answer.headers["access-control-allow-headers"]
    assert answer.headers["x-request-id"]
    assert is_error_response(ways[way].options(path, headers=asks | {"origin": ABROAD}), 403)


@pytest.mark.parametrize("way", [FRONT, GATEWAY])
def test_health_and_version_need_no_token(ways: dict[str, httpx.Client], way: str) -> None:
    assert ways[way].get("/healthz").json() == {"ok": True}
    assert ways[way].get("/version").json()["stage"] == "local"


@pytest.mark.parametrize(("way", "method", "path"), EVERYWHERE)
def test_a_valid_request_id_is_kept_and_an_invalid_one_replaced(
    ways: dict[str, httpx.Client], way: str, method: str, path: str
) -> None:
    own = f"mine-{uuid.uuid4()}"
    assert ways[way].request(method, path, headers={"x-request-id": own}).headers["x-request-id"] == own
    odd = ways[way].request(method, path, headers={"x-request-id": "not sane"}).headers["x-request-id"]
    assert odd
    assert " " not in odd


@pytest.mark.parametrize(
    ("door", "path"),
    [("api", "conversations/some"), ("credentials", "credentials"), ("stream_turns", "bridges/some/events")],
)
def test_the_request_id_is_in_the_log_lines(
    cloud: LocalCloud, ways: dict[str, httpx.Client], door: str, path: str
) -> None:
    own = f"mine-{uuid.uuid4()}"
    ways[FRONT].get(f"{API_PREFIX}/{path}", headers={"x-request-id": own, "authorization": "Bearer a.b.c"})
    refused = '"security.token_refused"'
    wait_until(
        lambda: [line for line in cloud.read_log_lines(door) if own in line and refused in line], f"{own} is logged"
    )


def test_an_internal_error_is_a_500_with_the_request_id_and_is_logged_whole(
    ways: dict[str, httpx.Client], cloud: LocalCloud, mine: Headers, faults: FaultRules
) -> None:
    own = f"mine-{uuid.uuid4()}"
    with faults.expect_fault("dynamodb.GetItem", "error:AccessDeniedException", contains="#c#some"):
        answer = ways[FRONT].get(f"{API_PREFIX}/conversations/some", headers=mine | {"x-request-id": own})
    assert is_error_response(answer, 500)
    assert own in answer.json()["error"]
    assert "AccessDenied" not in answer.text
    wait_until(
        lambda: [line for line in cloud.read_log_lines("api") if own in line and "AccessDenied" in line], "it is logged"
    )


def test_a_throttled_table_is_a_503_with_retry_after(
    ways: dict[str, httpx.Client], mine: Headers, faults: FaultRules
) -> None:
    with faults.expect_fault("dynamodb.GetItem", "error:ThrottlingException", contains="#c#some"):
        answer = ways[FRONT].get(f"{API_PREFIX}/conversations/some", headers=mine)
    assert is_error_response(answer, 503)
    assert int(answer.headers["retry-after"]) >= 1


def test_a_function_that_dies_is_a_502_with_our_error_text(
    ways: dict[str, httpx.Client], mine: Headers, faults: FaultRules
) -> None:
    with faults.expect_fault("dynamodb.GetItem", "exit", contains="#c#some"):
        answer = ways[FRONT].get(f"{API_PREFIX}/conversations/some", headers=mine)
    assert is_error_response(answer, 502)
