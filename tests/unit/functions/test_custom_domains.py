"""A custom domain with a base path, and the methods of streamed paths that another function answers."""

import asyncio
import json
import re
from functools import cache
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.wire.http.asgi import request_from_asgi_scope
from fermata.wire.operations.operation import BaseOperation
from fermata.wire.operations.surface import OPERATIONS
from functions.api import app as api
from functions.credentials import app as credentials
from functions.redraw_images import app as redraw_images
from functions.stream_turns import app as stream_turns
from functions.tool_result import app as tool_result
from local.front_door.api_gateway_routing import ApiGateway
from local.template import load_template
from tests.proxy_events import make_proxy_event
from tests.quick_suite_samples import sample_for_quick_suite
from tests.tenant_tokens import TokenSigner, make_tenant

BUFFERED = {"api": api, "credentials": credentials, "redraw_images": redraw_images, "tool_result": tool_result}
STREAMED = [operation for operation in OPERATIONS if operation.function == "stream_turns"]
BASE_PATHS = ["", "/fermata", "/fermata/v2", "/admin/api/ai"]


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources)


def list_methods(operation: BaseOperation) -> str:
    """Return the methods of all streamed operations on the path of one."""
    return ", ".join(one.method for one in STREAMED if one.path == operation.path)


def fill(operation: BaseOperation) -> tuple[str, dict[str, str]]:
    """Return a path of the operation that nothing is found at, and its parameters."""
    names = re.findall(r"\{(\w+)\}", operation.path)
    values = {name: "site" if name == "scope" else f"no-such-{name}" for name in names}
    return operation.path.format(**values), values


def find_resource(method: str, path: str) -> tuple[str, dict[str, str]]:
    """Return the path of the template's route, which may be one for a subtree, and the values of its parameters."""
    route = get_gateway().find_route(method, path)
    assert route is not None
    segments, values = path.strip("/").split("/"), dict[str, str]()
    for index, part in enumerate(route.path_parts):
        if part.endswith("+}"):
            values[part[1:-2]] = "/".join(segments[index:])
        elif part.startswith("{"):
            values[part[1:-1]] = segments[index]
    return "/" + "/".join(route.path_parts), values


@cache
def get_gateway() -> ApiGateway:
    return ApiGateway(load_template())


def make_custom_domain_event(operation: BaseOperation, base_path: str, method: str = "") -> dict[str, Any]:
    """Make an event of a custom domain: the path has the base path, the resource and the parameters do not."""
    path, _ = fill(operation)
    event = make_proxy_event(method or operation.method, base_path + path)
    resource, values = find_resource(method or operation.method, path)
    event |= {"resource": resource, "pathParameters": values or None}
    event["requestContext"] |= {"path": base_path + path, "resourcePath": resource, "domainName": "ai.example"}
    return event


def make_streamed_scope(operation: BaseOperation, base_path: str, context: str | None = None) -> dict[str, Any]:
    """Make the scope of a request that the web adapter passes on, without the stage and with the base path."""
    path, _ = fill(operation)
    event = make_custom_domain_event(operation, base_path)
    header = json.dumps(event["requestContext"]) if context is None else context
    return {
        "type": "http",
        "method": operation.method,
        "path": base_path + path,
        "query_string": b"",
        "headers": [(b"x-amzn-request-context", header.encode("latin-1"))],
    }


async def call_app(scope: dict[str, Any]) -> tuple[int, Any]:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await stream_turns.app(scope | {"raw_path": scope["path"].encode(), "root_path": ""}, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


@pytest.mark.parametrize("base_path", BASE_PATHS)
@pytest.mark.parametrize("operation", sample_for_quick_suite(OPERATIONS, every=8), ids=lambda operation: operation.name)
def test_an_operation_is_found_under_any_base_path(
    bakery: TokenSigner, operation: BaseOperation, base_path: str
) -> None:
    if operation.function == "stream_turns":
        status, body = asyncio.run(call_app(make_streamed_scope(operation, base_path)))
    else:
        answer = BUFFERED[operation.function].handler(make_custom_domain_event(operation, base_path), None)
        status, body = answer["statusCode"], json.loads(answer["body"])
    assert status == 401 or not operation.capabilities, "it asks for a token, unless it is public"
    assert body != {"error": "Not found"}


@pytest.mark.parametrize(
    "odd", ["", "no json", "[]", "7", "null", "{}", '{"resourcePath": 7}', '{"resourcePath": "/{proxy+}"}']
)
def test_a_request_context_that_says_nothing_about_the_path_leaves_it(odd: str) -> None:
    for operation in STREAMED:
        scope = make_streamed_scope(operation, "/base", odd)
        assert request_from_asgi_scope(scope).path == scope["path"]


@pytest.mark.parametrize("operation", STREAMED, ids=lambda operation: operation.name)
def test_a_preflight_of_a_streamed_path_is_answered_by_the_buffered_function(
    bakery: TokenSigner, operation: BaseOperation
) -> None:
    event = make_custom_domain_event(operation, "/fermata", "OPTIONS")
    event["multiValueHeaders"] |= {"Origin": [bakery.origin], "Access-Control-Request-Method": [operation.method]}
    answer = tool_result.handler(event, None)
    assert answer["statusCode"] == 204
    assert answer["headers"]["Access-Control-Allow-Origin"] == bakery.origin
    assert answer["headers"]["Access-Control-Allow-Methods"] == list_methods(operation)


@pytest.mark.parametrize("operation", STREAMED, ids=lambda operation: operation.name)
def test_a_wrong_method_of_a_streamed_path_is_answered_by_the_buffered_function(
    bakery: TokenSigner, operation: BaseOperation
) -> None:
    wrong = next(method for method in ("DELETE", "PUT") if method not in list_methods(operation))
    answer = tool_result.handler(make_custom_domain_event(operation, "", wrong), None)
    assert answer["statusCode"] == 405
    assert answer["headers"]["Allow"] == f"{list_methods(operation)}, OPTIONS"
