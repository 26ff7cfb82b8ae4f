"""The HTTP API: routes, streaming, and the responses of API Gateway itself."""

import json
from typing import Any

import pytest

from fermata.wire.operations.surface import OPERATIONS
from local.generate_template_routes import find_route_path, list_streamed_routes, merge_subtrees, update_routes
from tests.template import templates
from tests.template.templates import ALIAS_SUFFIX, Template, resources_of_type

FUNCTIONS = {
    "api": "ApiFunction",
    "credentials": "CredentialsFunction",
    "redraw_images": "RedrawImagesFunction",
    "stream_turns": "StreamFunction",
    "tool_result": "ToolResultFunction",
}
"""The functions that serve HTTP requests: their logical ids by their folders."""
ROUTES = {
    path: FUNCTIONS[function]
    for function in {operation.function for operation in OPERATIONS}
    for path in merge_subtrees([it for it in OPERATIONS if it.function == function], OPERATIONS).values()
} | {"/{proxy+}": "ApiFunction"}
STREAMS = {path for path, function in ROUTES.items() if function == "StreamFunction"}
BUFFERED = {path: "ToolResultFunction" if path in STREAMS else function for path, function in ROUTES.items()}
STREAMED = {(path, method.lower()) for path, method in list_streamed_routes(OPERATIONS).values()}
INTEGRATION = "x-amazon-apigateway-integration"
MAX_POLICY_BYTES = 20480
"""Limit of a function's resource policy (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html)."""
SMALLEST_QUOTA = 2500
"""API requests a second of an account in the smaller Regions (docs/scale.md)."""
LAMBDA_TURNS, REQUESTS_PER_TURN_SECOND = 560, 7 / 61
"""Concurrent turns of an account with 1,000 functions at once, and the requests of each a second (docs/scale.md)."""
STATUS = {"MISSING_AUTHENTICATION_TOKEN": "404", "REQUEST_TOO_LARGE": "413", "THROTTLED": "429"}


def get_rest_api(deployed: Template) -> Template:
    (found,) = resources_of_type(deployed, "AWS::ApiGateway::RestApi").values()
    return found


def get_integrations(template: Template) -> dict[tuple[str, str], Template]:
    """Return the integration of each method of each path; the method is "any" for those that are not written out."""
    return {
        (path, method.removeprefix("x-amazon-apigateway-").removesuffix("-method")): found[INTEGRATION]
        for path, methods in get_rest_api(template)["Body"]["paths"].items()
        for method, found in methods.items()
    }


@pytest.fixture(scope="session")
def gateway_responses(deployed: Template) -> dict[str, Any]:
    found: dict[str, Any] = get_rest_api(deployed)["Body"]["x-amazon-apigateway-gateway-responses"]
    return found


def test_every_path_leads_to_the_function_of_its_operations_with_any_method(deployed: Template) -> None:
    found = get_integrations(deployed)
    assert set(found) == {(path, "any") for path in ROUTES} | STREAMED
    for (path, method), integration in found.items():
        function = "StreamFunction" if (path, method) in STREAMED else BUFFERED[path]
        assert f"${{{function}{ALIAS_SUFFIX}}}" in integration["uri"]["Fn::Sub"], path


def test_a_preflight_of_a_streamed_path_is_answered_by_a_function_that_does_not_stream(deployed: Template) -> None:
    found = get_integrations(deployed)
    assert STREAMS
    for path in STREAMS:
        assert (path, "options") not in found
        assert f"${{ToolResultFunction{ALIAS_SUFFIX}}}" in found[path, "any"]["uri"]["Fn::Sub"]
        assert "responseTransferMode" not in found[path, "any"]


def test_what_may_invoke_a_function_fits_into_its_policy(deployed: Template) -> None:
    sizes: dict[str, int] = {}
    for name, permission in resources_of_type(deployed, "AWS::Lambda::Permission").items():
        function = permission["FunctionName"]["Ref"]
        source = permission.get("SourceArn", {}).get("Fn::Sub", ["", {}])[0]
        statement = f"{name}-0123456789AB" + source.replace("${__ApiId__}", "abcdefghij") + "x" * 350
        sizes[function] = sizes.get(function, 0) + len(statement)
    assert max(sizes.values()) < MAX_POLICY_BYTES, sizes


def test_the_routes_are_those_that_make_template_writes() -> None:
    template = templates.TEMPLATE.read_text()
    assert update_routes(template) == template, "run `make template`"


def test_all_operations_on_a_path_are_served_by_one_function() -> None:
    by_path: dict[str, set[str]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.route_path, set()).add(operation.function)
    assert [path for path, functions in by_path.items() if len(functions) > 1] == []


def test_every_operation_is_caught_by_a_route_of_its_function() -> None:
    for operation in OPERATIONS:
        caught_by = find_route_path(operation, ROUTES)
        assert ROUTES[caught_by] == FUNCTIONS[operation.function], operation.path


def test_every_route_is_written_once(source: Template) -> None:
    functions = resources_of_type(source, "AWS::Serverless::Function").values()
    events = [event for function in functions for event in function.get("Events", {}).values()]
    routes = [
        (event["Properties"]["Path"], event["Properties"]["Method"].lower())
        for event in events
        if event["Type"] == "Api"
    ]
    assert sorted(routes) == sorted([*((path, "any") for path in ROUTES), *STREAMED])


def test_streams_are_passed_through_for_up_to_a_quarter_of_an_hour(deployed: Template) -> None:
    for route, integration in get_integrations(deployed).items():
        if route in STREAMED:
            assert integration["responseTransferMode"] == "STREAM", route
            assert integration["timeoutInMillis"] == 900_000, route
            assert integration["uri"]["Fn::Sub"].endswith("/response-streaming-invocations"), route
        else:
            assert "responseTransferMode" not in integration, route


def test_the_spelling_that_sam_silently_ignores_would_fail() -> None:
    """SAM wants RESPONSE_STREAM; with API Gateway's own word, STREAM, it deploys a buffered route and says nothing."""
    text = templates.TEMPLATE.read_text().replace(
        "ResponseTransferMode: RESPONSE_STREAM", "ResponseTransferMode: STREAM"
    )
    with pytest.raises(KeyError, match="responseTransferMode"):
        test_streams_are_passed_through_for_up_to_a_quarter_of_an_hour(templates.transform_template(text))


def test_the_api_is_regional_because_an_edge_closes_idle_streams(deployed: Template) -> None:
    assert get_rest_api(deployed)["EndpointConfiguration"]["Types"] == ["REGIONAL"]


def test_no_route_begins_with_a_stage_name_which_the_web_adapter_would_remove(source: Template) -> None:
    for path in ROUTES:
        for stage in source["Parameters"]["Stage"]["AllowedValues"]:
            assert not path.startswith(f"/{stage}"), path


def test_the_stream_function_listens_to_the_web_adapter_only(deployed: Template) -> None:
    variables = resources_of_type(deployed, "AWS::Lambda::Function")["StreamFunction"]["Environment"]["Variables"]
    assert variables["AWS_LAMBDA_EXEC_WRAPPER"] == "/opt/bootstrap"
    assert variables["AWS_LWA_INVOKE_MODE"] == "response_stream"
    assert variables["AWS_LWA_REMOVE_BASE_PATH"] == {"Fn::Sub": "/${Stage}"}
    run = templates.ROOT / "functions" / "stream_turns" / "run.sh"
    assert "--host 127.0.0.1" in run.read_text()
    assert run.stat().st_mode & 0o111, "run.sh must be executable"


def test_a_reader_ends_before_its_function_does(source: Template) -> None:
    stream = resources_of_type(source, "AWS::Serverless::Function")["StreamFunction"]
    assert source["Parameters"]["ReaderSeconds"]["MaxValue"] < stream["Timeout"]


@pytest.mark.parametrize("kind", [*STATUS, "INTEGRATION_FAILURE", "INTEGRATION_TIMEOUT", "DEFAULT_4XX", "DEFAULT_5XX"])
def test_a_response_of_the_gateway_itself_is_an_error_that_a_browser_can_read(
    gateway_responses: dict[str, Any], kind: str
) -> None:
    response = gateway_responses[kind]
    (body,) = response["responseTemplates"].values()
    assert set(json.loads(body.replace("$context.error.messageString", '"Why"'))) == {"error"}
    headers = response["responseParameters"]
    assert headers["gatewayresponse.header.Access-Control-Allow-Origin"] == "'*'"
    assert headers["gatewayresponse.header.x-request-id"] == "context.requestId"


@pytest.mark.parametrize(("kind", "status"), STATUS.items())
def test_a_response_of_the_gateway_itself_has_the_status_a_client_expects(
    gateway_responses: dict[str, Any], kind: str, status: str
) -> None:
    assert str(gateway_responses[kind]["statusCode"]) == status


def test_a_response_to_a_throttled_client_has_retry_after(gateway_responses: dict[str, Any]) -> None:
    headers = gateway_responses["THROTTLED"]["responseParameters"]
    assert headers["gatewayresponse.header.Retry-After"] == "'1'"


def test_the_api_is_throttled_below_the_quota_that_the_account_shares(source: Template, deployed: Template) -> None:
    (stage,) = resources_of_type(deployed, "AWS::ApiGateway::Stage").values()
    settings = {(found["ResourcePath"], found["HttpMethod"]): found for found in stage["MethodSettings"]}
    every_method = settings["/*", "*"]
    assert every_method["ThrottlingRateLimit"] == {"Ref": "RequestRate"}
    assert every_method["ThrottlingBurstLimit"] == {"Ref": "RequestBurst"}
    rate, burst = (source["Parameters"][name]["Default"] for name in ("RequestRate", "RequestBurst"))
    assert LAMBDA_TURNS * REQUESTS_PER_TURN_SECOND < rate < SMALLEST_QUOTA
    assert rate <= burst
