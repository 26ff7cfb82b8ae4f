"""The tool_result function as API Gateway invokes it, without a turn."""

import json
from pathlib import Path
from typing import Any

import pytest

from fermata.aws.resources import Resources
from functions.tool_result import app
from tests.proxy_events import make_proxy_event
from tests.tenant_tokens import TokenSigner, make_tenant

PATH = "/admin/api/ai/tool-result"
CASES = Path(__file__).parents[1] / "wire" / "cases.json"
BODY = {"bridgeId": "b", "requestId": "r", "result": {"ok": True}}
IMAGE = {"mimeType": "image/png", "data": "QUJD"}


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources)


def send(signer: TokenSigner, body: Any, **claims: Any) -> tuple[int, Any]:
    answer = app.handler(make_proxy_event("POST", PATH, signer.bearer_headers(**claims), body), None)
    return answer["statusCode"], json.loads(answer["body"])


def test_an_answer_to_an_unknown_turn_is_not_found(bakery: TokenSigner) -> None:
    status, body = send(bakery, BODY)
    assert status == 404
    assert body["error"]


def test_a_404_for_an_instatic_browser_has_the_members_of_all_its_generations(
    resources: Resources, deployed: None
) -> None:
    """Case C103: older browsers read `ok`, the newest shows `error`."""
    case = next(case for case in json.loads(CASES.read_text()) if case["id"] == "C103")["expected"]
    status, body = send(make_tenant(resources, dialect="instatic"), BODY)
    assert status == case["status"]
    assert body == case["body_seed"] | case["body_head"]


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"bridgeId": ""}, "'bridgeId' must not be empty"),
        ({"requestId": 7}, "'requestId' must be a string"),
        ({"result": "done"}, "'result' must be an object"),
        ({"result": {}}, "'result.ok' is missing"),
        ({"result": {"error": "It failed."}}, "'result.ok' is missing"),
        ({"result": {"ok": "no", "error": "It failed."}}, "'result.ok' must be true or false"),
        ({"result": {"ok": None}}, "'result.ok' must be true or false"),
        ({"result": {"ok": 1}}, "'result.ok' must be true or false"),
        ({"result": {"ok": False, "error": 5}}, "'result.error' must be a string"),
        ({"result": {"ok": True, "images": {}}}, "'result.images' must be a list"),
        ({"result": {"ok": True, "images": ["QUJD"]}}, "'result.images.0' must be an object"),
        ({"result": {"ok": True, "images": [{"data": "QUJD"}]}}, "'result.images.0.mimeType' is missing"),
        (
            {"result": {"ok": True, "images": [IMAGE, {"mimeType": "image/png"}]}},
            "'result.images.1' must hold its image: either 'data' or 'uploadRef'",
        ),
        ({"result": {"ok": True, "revision": 7}}, "'result.revision' must be a string"),
        ({"result": {"ok": True, "revision": None}}, "'result.revision' must be a string"),
        ({"result": {"ok": True, "revision": ""}}, "'result.revision' must not be empty"),
        ({"result": {"ok": True, "revision": "x" * 201}}, "'result.revision' may have at most 200 characters"),
        ({"revision": "x" * 201}, "'revision'"),
    ],
)
def test_an_error_names_the_wrong_member_of_a_body(bakery: TokenSigner, members: dict[str, Any], says: str) -> None:
    status, body = send(bakery, BODY | members)
    assert status == 400
    assert body["error"].startswith("Invalid request body.")
    assert says in body["error"]


def test_an_answer_without_a_capability_is_refused(bakery: TokenSigner) -> None:
    assert send(bakery, BODY, capabilities=("ai.audit.read",)) == (403, {"error": "Forbidden"})


def test_a_cookie_from_a_page_of_another_origin_is_refused(bakery: TokenSigner) -> None:
    headers = bakery.cookie_headers() | {"Origin": "https://evil.example"}
    answer = app.handler(make_proxy_event("POST", PATH, headers, BODY), None)
    assert (answer["statusCode"], json.loads(answer["body"])) == (403, {"error": "Forbidden: invalid origin"})


def test_only_post_is_allowed(bakery: TokenSigner) -> None:
    assert app.handler(make_proxy_event("GET", PATH), None)["statusCode"] == 405
