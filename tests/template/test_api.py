"""The way in: routes, streaming, and the answers that API Gateway gives by itself."""

import json
from typing import Any

import pytest

from tests.template import templates
from tests.template.templates import Template, resources_of_type

ROUTES = {
    "/admin/api/ai/chat/{scope}": "StreamFunction",
    "/admin/api/ai/bridges/{bridgeId}/events": "StreamFunction",
    "/admin/api/ai/bridges/{bridgeId}/undo": "StreamFunction",
    "/admin/api/ai/editor-bridge": "StreamFunction",
    "/admin/api/ai/conversations/{id}/messages/{messageId}/images/{index}": "StreamFunction",
    "/admin/api/ai/tool-result": "ToolResultFunction",
    "/admin/api/ai/conversations": "ApiFunction",
    "/admin/api/ai/conversations/{id}": "ApiFunction",
    "/admin/api/ai/uploads": "ApiFunction",
    "/admin/api/ai/tools/{scope}": "ApiFunction",
    "/admin/api/ai/mcp/connectors": "ApiFunction",
    "/admin/api/ai/defaults": "ApiFunction",
    "/admin/api/ai/defaults/{scope}": "ApiFunction",
    "/admin/api/ai/bridges/{bridgeId}": "ApiFunction",
    "/admin/api/ai/bridges/{bridgeId}/cancel": "ApiFunction",
    "/admin/api/ai/bridges/{bridgeId}/journal": "ApiFunction",
    "/admin/api/ai/audit": "ApiFunction",
    "/admin/api/ai/budgets": "ApiFunction",
    "/admin/api/ai/openapi.json": "ApiFunction",
    "/admin/api/ai/healthz": "ApiFunction",
    "/admin/api/ai/version": "ApiFunction",
    "/healthz": "ApiFunction",
    "/version": "ApiFunction",
    "/{proxy+}": "ApiFunction",
    "/admin/api/ai/credentials": "CredentialsFunction",
    "/admin/api/ai/credentials/{id}": "CredentialsFunction",
    "/admin/api/ai/credentials/{id}/test": "CredentialsFunction",
    "/admin/api/ai/providers/{id}/models": "CredentialsFunction",
}
STREAMS = {path for path, function in ROUTES.items() if function == "StreamFunction"}
STATUS = {"MISSING_AUTHENTICATION_TOKEN": "404", "REQUEST_TOO_LARGE": "413", "THROTTLED": "429"}


def api(deployed: Template) -> Template:
    (found,) = resources_of_type(deployed, "AWS::ApiGateway::RestApi").values()
    return found


def integrations(template: Template) -> dict[str, Template]:
    """What stands behind each path, for every method."""
    found = {}
    for path, methods in api(template)["Body"]["paths"].items():
        assert list(methods) == ["x-amazon-apigateway-any-method"], path
        found[path] = methods["x-amazon-apigateway-any-method"]["x-amazon-apigateway-integration"]
    return found


@pytest.fixture(scope="session")
def gateway_responses(deployed: Template) -> dict[str, Any]:
    found: dict[str, Any] = api(deployed)["Body"]["x-amazon-apigateway-gateway-responses"]
    return found


def test_every_route_leads_to_its_door_whatever_the_method(deployed: Template) -> None:
    found = integrations(deployed)
    assert set(found) == set(ROUTES)
    for path, integration in found.items():
        assert f"${{{ROUTES[path]}.Arn}}" in integration["uri"]["Fn::Sub"], path


def test_every_route_is_written_once(source: Template) -> None:
    functions = resources_of_type(source, "AWS::Serverless::Function").values()
    events = [event for function in functions for event in function.get("Events", {}).values()]
    paths = [event["Properties"]["Path"] for event in events if event["Type"] == "Api"]
    assert sorted(paths) == sorted(ROUTES)


def test_streams_leave_as_they_come_for_up_to_a_quarter_of_an_hour(deployed: Template) -> None:
    for path, integration in integrations(deployed).items():
        if path in STREAMS:
            assert integration["responseTransferMode"] == "STREAM", path
            assert integration["timeoutInMillis"] == 900_000, path
            assert integration["uri"]["Fn::Sub"].endswith("/response-streaming-invocations"), path
        else:
            assert "responseTransferMode" not in integration, path


def test_the_spelling_that_sam_ignores_in_silence_would_not_pass() -> None:
    """SAM wants RESPONSE_STREAM; with API Gateway's own word, STREAM, it deploys a buffered route and says nothing."""
    text = templates.TEMPLATE.read_text().replace(
        "ResponseTransferMode: RESPONSE_STREAM", "ResponseTransferMode: STREAM"
    )
    with pytest.raises(KeyError, match="responseTransferMode"):
        test_streams_leave_as_they_come_for_up_to_a_quarter_of_an_hour(templates.transform_template(text))


def test_the_api_is_regional_because_the_edge_cuts_silent_streams(deployed: Template) -> None:
    assert api(deployed)["EndpointConfiguration"]["Types"] == ["REGIONAL"]


def test_no_route_begins_with_a_stage_name_which_the_web_adapter_would_cut_off(source: Template) -> None:
    for path in ROUTES:
        for stage in source["Parameters"]["Stage"]["AllowedValues"]:
            assert not path.startswith(f"/{stage}"), path


def test_the_stream_function_listens_to_the_web_adapter_only(deployed: Template) -> None:
    variables = resources_of_type(deployed, "AWS::Lambda::Function")["StreamFunction"]["Environment"]["Variables"]
    assert variables["AWS_LAMBDA_EXEC_WRAPPER"] == "/opt/bootstrap"
    assert variables["AWS_LWA_INVOKE_MODE"] == "response_stream"
    assert variables["AWS_LWA_REMOVE_BASE_PATH"] == {"Fn::Sub": "/${Stage}"}
    run = templates.ROOT / "functions" / "stream" / "run.sh"
    assert "--host 127.0.0.1" in run.read_text()
    assert run.stat().st_mode & 0o111, "run.sh must be executable"


def test_a_reader_ends_before_its_function_does(source: Template) -> None:
    stream = resources_of_type(source, "AWS::Serverless::Function")["StreamFunction"]
    assert source["Parameters"]["ReaderSeconds"]["MaxValue"] < stream["Timeout"]


@pytest.mark.parametrize("kind", [*STATUS, "INTEGRATION_FAILURE", "INTEGRATION_TIMEOUT", "DEFAULT_4XX", "DEFAULT_5XX"])
def test_an_answer_of_the_gateway_itself_is_an_error_that_a_browser_can_read(
    gateway_responses: dict[str, Any], kind: str
) -> None:
    response = gateway_responses[kind]
    (body,) = response["responseTemplates"].values()
    assert set(json.loads(body.replace("$context.error.messageString", '"Why"'))) == {"error"}
    headers = response["responseParameters"]
    assert headers["gatewayresponse.header.Access-Control-Allow-Origin"] == "'*'"
    assert headers["gatewayresponse.header.x-request-id"] == "context.requestId"


@pytest.mark.parametrize(("kind", "status"), STATUS.items())
def test_an_answer_of_the_gateway_itself_has_the_status_a_client_expects(
    gateway_responses: dict[str, Any], kind: str, status: str
) -> None:
    assert str(gateway_responses[kind]["statusCode"]) == status


def test_a_throttled_client_hears_when_to_come_back(gateway_responses: dict[str, Any]) -> None:
    headers = gateway_responses["THROTTLED"]["responseParameters"]
    assert headers["gatewayresponse.header.Retry-After"] == "'1'"
