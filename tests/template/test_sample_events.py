"""The sample events in events/, for `sam local invoke`: routed, complete and handled."""

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from fermata.aws.resources import Resources, get_resources
from fermata.usage.audit.audit_from_rollups import audit_usage
from fermata.wire.http.api_gateway import request_from_event
from fermata.wire.http.dispatch import handle_request
from functions.stream_turns import app as stream_turns
from tests.fixed_response_server import run_fixed_response_server
from tests.resources import environment_from_resources
from tests.template.templates import FUNCTION_FOLDERS, ROOT, Template, resources_of_type
from tests.template.test_api import ROUTES
from tests.tenant_tokens import make_tenant

EVENTS = sorted((ROOT / "events").glob("*.json"))
WORKFLOW = {"round", "store_hold_token"}


def function_of_event(name: str) -> str:
    """Find the function of an event, whose file name begins with the function's folder."""
    (folder,) = [folder for folder in FUNCTION_FOLDERS if name == folder or name.startswith(f"{folder}_")]
    return folder


def load_event(name: str) -> Any:
    return json.loads((ROOT / "events" / f"{name}.json").read_text())


def test_every_function_has_a_sample_event() -> None:
    assert {function_of_event(path.stem) for path in EVENTS} == set(FUNCTION_FOLDERS)


@pytest.mark.parametrize(
    "path", [path for path in EVENTS if "resource" in json.loads(path.read_text())], ids=lambda p: p.stem
)
def test_an_http_event_is_one_that_the_template_routes_to_its_function(path: Any, source: Template) -> None:
    event = json.loads(path.read_text())
    functions = resources_of_type(source, "AWS::Serverless::Function")
    assert functions[ROUTES[event["resource"]]]["CodeUri"] == f"functions/{function_of_event(path.stem)}"
    filled = event["resource"].format(**(event["pathParameters"] or {}))
    assert filled == event["path"]
    assert event["requestContext"]["resourcePath"] == event["resource"]
    if event["body"] is not None:
        assert isinstance(json.loads(event["body"]), dict)


@pytest.mark.parametrize("name", sorted(WORKFLOW))
def test_a_workflow_event_has_exactly_the_members_that_the_workflow_sends(name: str, machine: Template) -> None:
    assert set(load_event(name)) == set(machine["States"]["RunRound"]["Arguments"]["Payload"])


def test_the_recovery_has_an_event_for_each_of_its_triggers(source: Template, machine: Template) -> None:
    recover = resources_of_type(source, "AWS::Serverless::Function")["RecoverFunction"]["Events"]
    assert set(load_event("recover_caught")) == set(machine["States"]["Recover"]["Arguments"]["Payload"])
    assert load_event("recover_sweep") == json.loads(recover["Sweep"]["Properties"]["Input"])
    pattern, event = recover["ExecutionEnded"]["Properties"]["Pattern"], load_event("recover_execution")
    assert event["source"] in pattern["source"]
    assert event["detail-type"] in pattern["detail-type"]
    assert event["detail"]["status"] in pattern["detail"]["status"]
    assert set(json.loads(event["detail"]["input"])) == {"v", "tenant", "turn", "n"}


class Context:
    aws_request_id = "c6af9ac6-7b61-11e6-9a41-93e8deadbeef"

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


@pytest.fixture
def deployed_resources(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> Iterator[Resources]:
    """The functions create their resources from the environment, as they do when deployed."""
    for name, value in environment_from_resources(resources).items():
        monkeypatch.setenv(name, value)
    get_resources.cache_clear()
    yield resources
    get_resources.cache_clear()


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("api_create_conversation", 201),
        ("api_cancel_turn", 404),
        ("api_show_journal", 404),
        ("credentials_create", 201),
        ("credentials_try", 404),
        ("credentials_list_models", 404),
        ("tool_result", 404),
        ("stream_turns_start_turn", 404),
        ("stream_turns_follow_turn", 404),
        ("stream_turns_undo_turn", 404),
    ],
)
def test_a_function_handles_its_http_event(deployed_resources: Resources, name: str, status: int) -> None:
    """The caller is authenticated and the body is valid. An event about a missing item gets 404."""
    event = load_event(name)
    bakery = make_tenant(deployed_resources, origins=["https://editor.example.com"])
    event["headers"]["Authorization"] = bakery.bearer_headers()["authorization"]
    event["multiValueHeaders"]["Authorization"] = [event["headers"]["Authorization"]]
    if function_of_event(name) == "stream_turns":
        status_code = handle_request(deployed_resources, stream_turns.router.routes, request_from_event(event)).status
    else:
        status_code = import_module(f"functions.{function_of_event(name)}.app").handler(event, Context())["statusCode"]
    assert status_code == status


def test_the_price_refresh_handles_its_scheduled_event(
    deployed_resources: Resources, source: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = resources_of_type(source, "AWS::Serverless::Function")["RefreshPricesFunction"]["Events"]["Look"]
    assert load_event("refresh_prices") == json.loads(look["Properties"]["Input"])
    with run_fixed_response_server() as server:
        server.body = b'{"data":[{"id":"openai/gpt-5","pricing":{"prompt":"0.1","completion":"0.2"}}]}'
        monkeypatch.setenv("CATALOGUE_URL", server.url)
        handler = import_module("functions.refresh_prices.app").handler
        assert handler(load_event("refresh_prices"), Context()) == {"how": "fetched", "models": 1}
        assert handler(load_event("refresh_prices"), Context()) == {"how": "fresh", "models": 1}
        assert handler(load_event("refresh_prices") | {"force": True}, Context())["how"] == "fetched"


@pytest.mark.parametrize("name", ["recover_caught", "recover_execution", "recover_sweep"])
def test_the_recovery_handles_each_of_its_events(deployed_resources: Resources, name: str) -> None:
    seen = import_module("functions.recover.app").handler(load_event(name), Context())
    assert seen == {"seen": 0 if name == "recover_sweep" else 1}


def test_a_message_about_a_turn_that_is_gone_is_done(deployed_resources: Resources) -> None:
    answer = import_module("functions.deliver_webhooks.app").handler(load_event("deliver_webhooks"), Context())
    assert answer == {"batchItemFailures": []}


def test_the_rollup_counts_the_row_of_its_event(deployed_resources: Resources) -> None:
    assert import_module("functions.rollup.app").handler(load_event("rollup"), Context()) == {"batchItemFailures": []}
    totals = audit_usage(deployed_resources, "bakery", "2026-11-28")["totals"]
    assert (totals["promptTokens"], totals["costUsd"]) == (120, 0.02031)


def test_the_consumers_of_content_take_the_change_of_their_event(deployed_resources: Resources) -> None:
    """Its document does not exist any more, so that there is nothing to index."""
    app = import_module("functions.consume_content.app")
    assert app.handler(load_event("consume_content"), Context()) == {"batchItemFailures": []}


def test_the_purge_handles_its_scheduled_event(deployed_resources: Resources, source: Template) -> None:
    hourly = resources_of_type(source, "AWS::Serverless::Function")["PurgeFunction"]["Events"]["Hourly"]
    assert load_event("purge") == json.loads(hourly["Properties"]["Input"])
    app = import_module("functions.purge.app")
    assert app.handler(load_event("purge"), Context()) == {"jobs": 0, "purged": 0, "swept": 0, "reported": 0}


@pytest.mark.parametrize("name", sorted(WORKFLOW))
def test_a_round_or_hold_of_a_missing_turn_finishes_the_execution(
    deployed_resources: Resources, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resumed: list[tuple[str, str]] = []
    monkeypatch.setattr(
        type(deployed_resources.workflow), "resume_execution", lambda _, token, goal: resumed.append((token, goal))
    )
    import_module(f"functions.{name}.app").handler(load_event(name), Context())
    assert resumed == [(load_event(name)["token"], "finish")]
