"""Test that routes, limits and gateway responses are those of the template."""

import json

import pytest

from local import template
from local.front_door.api_gateway_routing import MAX_EVENT_BYTES, ApiGateway, fits_lambda_event


def function(*paths: str, method: str = "ANY", **more: str) -> dict[str, object]:
    events = {
        f"E{number}": {"Type": "Api", "Properties": {"Path": path, "Method": method} | more}
        for number, path in enumerate(paths)
    }
    return {"Type": "AWS::Serverless::Function", "Properties": {"Events": events}}


RESPONSES = {
    "MISSING_AUTHENTICATION_TOKEN": {
        "StatusCode": 404,
        "ResponseParameters": {"Headers": {"Access-Control-Allow-Origin": "'*'", "x-request-id": "context.requestId"}},
        "ResponseTemplates": {"application/json": '{"error":"Not found"}'},
    },
    "DEFAULT_4XX": {"ResponseTemplates": {"application/json": '{"error":$context.error.messageString}'}},
}
DOCUMENT = {
    "Resources": {
        "Api": {"Type": "AWS::Serverless::Api", "Properties": {"GatewayResponses": RESPONSES}},
        "Streaming": function("/chat/{scope}", ResponseTransferMode="RESPONSE_STREAM"),
        "Things": function("/things", "/things/{id}", "/things/new"),
        "Reader": function("/reports/{id}", method="get"),
        "Rest": function("/{proxy+}"),
    }
}


@pytest.fixture
def gateway() -> ApiGateway:
    return ApiGateway(DOCUMENT)


def found(gateway: ApiGateway, path: str, method: str = "GET") -> str | None:
    route = gateway.find_route(method, path)
    return route.function if route else None


def test_a_path_leads_to_its_function(gateway: ApiGateway) -> None:
    assert found(gateway, "/things") == "Things"
    assert found(gateway, "/things/7") == "Things"
    assert found(gateway, "/chat/site") == "Streaming"


def test_literal_parts_precede_parameters_and_those_a_greedy_parameter(gateway: ApiGateway) -> None:
    assert [gateway.find_route("GET", path).path_parts for path in ("/things/new", "/things/7", "/things/7/8")] == [  # type: ignore[union-attr]  # all are found
        ("things", "new"),
        ("things", "{id}"),
        ("{proxy+}",),
    ]


def test_another_method_matches_the_greedy_route(gateway: ApiGateway) -> None:
    assert found(gateway, "/reports/1") == "Reader"
    assert found(gateway, "/reports/1", "POST") == "Rest"


def test_the_root_path_has_no_route(gateway: ApiGateway) -> None:
    assert found(gateway, "/") is None


def test_only_the_streaming_function_streams(gateway: ApiGateway) -> None:
    assert gateway.streaming_functions() == {"Streaming"}


def test_a_gateway_response_is_the_templates(gateway: ApiGateway) -> None:
    refusal = gateway.gateway_response("MISSING_AUTHENTICATION_TOKEN", "id-1")
    assert (refusal.status, json.loads(refusal.body)) == (404, {"error": "Not found"})
    assert refusal.headers["access-control-allow-origin"] == "*"
    assert refusal.headers["x-request-id"] == "id-1"


def test_a_gateway_response_that_is_not_in_the_template_is_the_default_one(gateway: ApiGateway) -> None:
    refusal = gateway.gateway_response("REQUEST_TOO_LARGE", "id-1", 'too "large"')
    assert (refusal.status, json.loads(refusal.body)) == (413, {"error": 'too "large"'})


def test_the_projects_template_has_a_route_for_every_http_function() -> None:
    gateway = ApiGateway(template.load_template())
    assert found(gateway, "/admin/api/ai/chat/site", "POST") == "StreamFunction"
    assert found(gateway, "/admin/api/ai/bridges/b1/events") == "StreamFunction"
    assert found(gateway, "/admin/api/ai/bridges/b1") == "ApiFunction"
    assert found(gateway, "/admin/api/ai/tool-result", "OPTIONS") == "ToolResultFunction"
    assert found(gateway, "/nowhere/at/all") == "ApiFunction"


def test_every_gateway_response_of_the_project_is_a_clear_error() -> None:
    gateway = ApiGateway(template.load_template())
    for kind in (
        "MISSING_AUTHENTICATION_TOKEN",
        "REQUEST_TOO_LARGE",
        "THROTTLED",
        "INTEGRATION_FAILURE",
        "DEFAULT_5XX",
    ):
        refusal = gateway.gateway_response(kind, "id-1", "why")
        assert list(json.loads(refusal.body)) == ["error"]
        assert refusal.headers["access-control-allow-origin"] == "*"


HEADERS = [(b"content-type", b"application/json")]


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        (b"x" * (MAX_EVENT_BYTES - 10_000), True),
        (b"x" * MAX_EVENT_BYTES, False),
        (b'"' * (MAX_EVENT_BYTES // 2 - 10_000), True),
        (b'"' * (MAX_EVENT_BYTES // 2), False),
        (b"\x01" * (MAX_EVENT_BYTES // 6), False),
        ("é".encode() * (MAX_EVENT_BYTES // 2 - 10_000), True),
        (b"\xff" * (MAX_EVENT_BYTES // 2), False),
    ],
    ids=["plain", "plain over", "quotes", "quotes over", "control characters", "UTF-8", "not UTF-8"],
)
def test_a_body_must_fit_into_an_event_once_it_is_escaped(body: bytes, fits: bool) -> None:
    assert fits_lambda_event(HEADERS, b"", body) is fits
