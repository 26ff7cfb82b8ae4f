"""Handlers of sample events, and the paths that the template routes to each function."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from fermata.aws.resources import Resources
from fermata.wire.http.routing import Routes
from fermata.wire.operations.surface import OPERATIONS
from functions.api import app as api
from functions.credentials import app as credentials
from functions.redraw_images import app as redraw_images
from functions.stream_turns import app as stream_turns
from functions.tool_result import app as tool_result
from tests.tenant_tokens import TokenSigner, make_tenant

ROOT = Path(__file__).parents[3]
ROUTES_OF_FUNCTIONS: dict[str, Routes] = {
    "ApiFunction": api.router.routes,
    "CredentialsFunction": credentials.router.routes,
    "RedrawImagesFunction": redraw_images.router.routes,
    "StreamFunction": stream_turns.router.routes,
    "ToolResultFunction": tool_result.router.routes,
}


@pytest.fixture
def bakery(resources: Resources, deployed: None) -> TokenSigner:
    return make_tenant(resources)


@pytest.mark.parametrize(
    ("name", "function", "status"),
    [
        ("api_create_conversation", api, 201),
        ("credentials_create", credentials, 201),
        ("tool_result", tool_result, 404),
        ("api_cancel_turn", api, 404),
    ],
)
def test_a_sample_event_is_handled_by_its_function(bakery: TokenSigner, name: str, function: Any, status: int) -> None:
    event = json.loads((ROOT / "events" / f"{name}.json").read_text())
    token = bakery.bearer_headers()["authorization"]
    event["headers"]["Authorization"] = token
    event["multiValueHeaders"]["Authorization"] = [token]
    answer = function.handler(event, None)
    assert answer["statusCode"] == status, answer["body"]


@pytest.mark.parametrize("function", ROUTES_OF_FUNCTIONS)
def test_a_function_handles_exactly_the_paths_that_the_template_routes_to_it(function: str) -> None:
    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor("!", lambda *_: None)
    template = yaml.load((ROOT / "template.yaml").read_text(), Loader)
    events = template["Resources"][function]["Properties"]["Events"].values()
    template_paths = {event["Properties"]["Path"] for event in events if event["Type"] == "Api"}
    streamed = {operation.route_path for operation in OPERATIONS if operation.function == "stream_turns"}
    own_paths = {route.operation.route_path for route in ROUTES_OF_FUNCTIONS[function]}
    routed = {(path, one) for one in template_paths for path in own_paths if leads_to(one, path)}
    assert {path for path, _ in routed} == own_paths
    others = template_paths - {one for _, one in routed}
    assert not others or function == "ToolResultFunction", "It answers the preflights of what is streamed."
    assert [one for one in others if not any(leads_to(one, path) for path in streamed)] == []


def leads_to(template_path: str, path: str) -> bool:
    """Return whether a path of the template, maybe that of a subtree, leads to an operation's path."""
    subtree = template_path.removesuffix("{proxy+}")
    return path.startswith(subtree) if subtree != template_path else path == template_path
