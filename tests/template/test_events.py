"""The requests in events/, which `sam local invoke` gives to the functions: routed, shaped and understood."""

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from fermata.aws.resources import Resources, get_resources
from fermata.usage.audit.audit_from_rollups import audit_usage
from fermata.wire.http.api_gateway import request_from_event
from fermata.wire.http.dispatch import handle_request
from functions.stream import app as stream
from tests.fixed_response_server import run_fixed_response_server
from tests.resources import environment_from_resources
from tests.template.templates import ROOT, Template, resources_of_type
from tests.template.test_api import ROUTES
from tests.tenant_tokens import make_tenant

EVENTS = sorted((ROOT / "events").glob("*.json"))
DOORS = ("stream", "tool_result", "api", "credentials", "round", "hold", "recover", "rollup", "refresh_prices", "purge")
WORKFLOW = {"round", "hold"}


def door(event: str) -> str:
    """tool_result.json and recover_sweep.json: named for the door, and for the case where there are several."""
    (found,) = [name for name in DOORS if event == name or event.startswith(f"{name}_")]
    return found


def request(name: str) -> Any:
    return json.loads((ROOT / "events" / f"{name}.json").read_text())


def test_every_door_has_a_request_to_try_it_with() -> None:
    assert {door(path.stem) for path in EVENTS} == set(DOORS)


@pytest.mark.parametrize(
    "path", [path for path in EVENTS if "resource" in json.loads(path.read_text())], ids=lambda p: p.stem
)
def test_a_request_over_http_is_one_that_the_template_routes_to_that_door(path: Any, source: Template) -> None:
    event = json.loads(path.read_text())
    functions = resources_of_type(source, "AWS::Serverless::Function")
    assert functions[ROUTES[event["resource"]]]["CodeUri"] == f"functions/{door(path.stem)}"
    filled = event["resource"].format(**(event["pathParameters"] or {}))
    assert filled == event["path"]
    assert event["requestContext"]["resourcePath"] == event["resource"]
    if event["body"] is not None:
        assert isinstance(json.loads(event["body"]), dict)


@pytest.mark.parametrize("name", sorted(WORKFLOW))
def test_a_workflows_request_has_exactly_what_the_workflow_sends(name: str, machine: Template) -> None:
    assert set(request(name)) == set(machine["States"]["RunRound"]["Arguments"]["Payload"])


def test_the_recovery_is_tried_in_each_of_its_three_ways(source: Template, machine: Template) -> None:
    recover = resources_of_type(source, "AWS::Serverless::Function")["RecoverFunction"]["Events"]
    assert set(request("recover_caught")) == set(machine["States"]["Recover"]["Arguments"]["Payload"])
    assert request("recover_sweep") == json.loads(recover["Sweep"]["Properties"]["Input"])
    pattern, event = recover["ExecutionEnded"]["Properties"]["Pattern"], request("recover_execution")
    assert event["source"] in pattern["source"]
    assert event["detail-type"] in pattern["detail-type"]
    assert event["detail"]["status"] in pattern["detail"]["status"]
    assert set(json.loads(event["detail"]["input"])) == {"v", "tenant", "turn", "n"}


class Context:
    aws_request_id = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


@pytest.fixture
def in_the_environment(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> Iterator[Resources]:
    """The doors open the resources that their environment names, as they do when deployed."""
    for name, value in environment_from_resources(resources).items():
        monkeypatch.setenv(name, value)
    get_resources.cache_clear()
    yield resources
    get_resources.cache_clear()


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("api", 201),
        ("api_cancel", 404),
        ("api_journal", 404),
        ("credentials", 201),
        ("credentials_test", 404),
        ("credentials_models", 404),
        ("tool_result", 404),
        ("stream", 404),
        ("stream_events", 404),
        ("stream_undo", 404),
    ],
)
def test_a_door_understands_its_request(in_the_environment: Resources, name: str, status: int) -> None:
    """Whoever signs it is known, and the body is right; what it is about does not exist in an empty table: 404."""
    event = request(name)
    bakery = make_tenant(in_the_environment, origins=["https://editor.example.com"])
    event["headers"]["Authorization"] = bakery.bearer_headers()["authorization"]
    event["multiValueHeaders"]["Authorization"] = [event["headers"]["Authorization"]]
    if door(name) == "stream":
        answered = handle_request(in_the_environment, stream.router.routes, request_from_event(event)).status
    else:
        answered = import_module(f"functions.{door(name)}.app").handler(event, Context())["statusCode"]
    assert answered == status


def test_the_refresh_of_prices_understands_its_schedule(
    in_the_environment: Resources, source: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = resources_of_type(source, "AWS::Serverless::Function")["RefreshPricesFunction"]["Events"]["Look"]
    assert request("refresh_prices") == json.loads(look["Properties"]["Input"])
    with run_fixed_response_server() as server:
        server.body = b'{"data":[{"id":"openai/gpt-5","pricing":{"prompt":"0.1","completion":"0.2"}}]}'
        monkeypatch.setenv("CATALOGUE_URL", server.url)
        handler = import_module("functions.refresh_prices.app").handler
        assert handler(request("refresh_prices"), Context()) == {"how": "fetched", "models": 1}
        assert handler(request("refresh_prices"), Context()) == {"how": "fresh", "models": 1}
        assert handler(request("refresh_prices") | {"force": True}, Context())["how"] == "fetched"


@pytest.mark.parametrize("name", ["recover_caught", "recover_execution", "recover_sweep"])
def test_the_recovery_understands_each_of_its_requests(in_the_environment: Resources, name: str) -> None:
    seen = import_module("functions.recover.app").handler(request(name), Context())
    assert seen == {"seen": 0 if name == "recover_sweep" else 1}


def test_the_rollup_counts_the_row_of_its_request(in_the_environment: Resources) -> None:
    assert import_module("functions.rollup.app").handler(request("rollup"), Context()) == {"batchItemFailures": []}
    totals = audit_usage(in_the_environment, "bakery", "2026-11-28")["totals"]
    assert (totals["promptTokens"], totals["costUsd"]) == (120, 0.02031)


def test_the_purge_understands_its_schedule(in_the_environment: Resources, source: Template) -> None:
    hourly = resources_of_type(source, "AWS::Serverless::Function")["PurgeFunction"]["Events"]["Hourly"]
    assert request("purge") == json.loads(hourly["Properties"]["Input"])
    assert import_module("functions.purge.app").handler(request("purge"), Context()) == {"purged": 0}


@pytest.mark.parametrize("name", sorted(WORKFLOW))
def test_a_round_or_a_hold_of_a_turn_that_is_gone_ends_quietly(
    in_the_environment: Resources, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(
        type(in_the_environment.workflow), "resume_execution", lambda _, token, goal: told.append((token, goal))
    )
    import_module(f"functions.{name}.app").handler(request(name), Context())
    assert told == [(request(name)["token"], "finish")]
