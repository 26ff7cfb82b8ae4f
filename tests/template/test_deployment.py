"""How the template is deployed, and the requests that `sam local invoke` gives its functions."""

import json
import tomllib
from typing import Any

import pytest

from tests.template.stack import ROOT, Template, of_type
from tests.template.test_api import ROUTES

EVENTS = sorted((ROOT / "events").glob("*.json"))
DOORS = ("stream", "tool_result", "api", "credentials", "round", "hold", "recover")
WORKFLOW = {"round", "hold"}


def door(event: str) -> str:
    """tool_result.json and recover_sweep.json: named for the door, and for the case where there are several."""
    (found,) = [name for name in DOORS if event == name or event.startswith(f"{name}_")]
    return found


def request(name: str) -> Any:
    return json.loads((ROOT / "events" / f"{name}.json").read_text())


@pytest.fixture(scope="session")
def samconfig() -> dict[str, Any]:
    return tomllib.loads((ROOT / "samconfig.toml").read_text())


def test_every_door_has_a_request_to_try_it_with() -> None:
    assert {door(path.stem) for path in EVENTS} == set(DOORS)


@pytest.mark.parametrize(
    "path", [path for path in EVENTS if "resource" in json.loads(path.read_text())], ids=lambda p: p.stem
)
def test_a_request_over_http_is_one_that_the_template_routes_to_that_door(path: Any, source: Template) -> None:
    event = json.loads(path.read_text())
    functions = of_type(source, "AWS::Serverless::Function")
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
    recover = of_type(source, "AWS::Serverless::Function")["RecoverFunction"]["Events"]
    assert set(request("recover_caught")) == set(machine["States"]["Recover"]["Arguments"]["Payload"])
    assert request("recover_sweep") == json.loads(recover["Sweep"]["Properties"]["Input"])
    pattern, event = recover["ExecutionEnded"]["Properties"]["Pattern"], request("recover_execution")
    assert event["source"] in pattern["source"]
    assert event["detail-type"] in pattern["detail-type"]
    assert event["detail"]["status"] in pattern["detail"]["status"]
    assert set(json.loads(event["detail"]["input"])) == {"v", "tenant", "turn", "n"}


@pytest.mark.parametrize("environment", ["default", "dev", "prod"])
def test_a_deployment_sets_parameters_that_the_template_has(
    samconfig: dict[str, Any], source: Template, environment: str
) -> None:
    deploy = samconfig[environment]["deploy"]["parameters"]
    given = dict(pair.split("=", 1) for pair in deploy["parameter_overrides"])
    assert set(given) <= set(source["Parameters"])
    for name, value in given.items():
        allowed = source["Parameters"][name].get("AllowedValues")
        assert allowed is None or value in map(str, allowed), name


def test_dev_and_prod_are_two_stacks_and_prod_asks_first(samconfig: dict[str, Any]) -> None:
    names = {samconfig[environment]["global"]["parameters"]["stack_name"] for environment in ("dev", "prod")}
    assert len(names) == 2
    assert samconfig["prod"]["deploy"]["parameters"]["confirm_changeset"] is True


def test_prod_keeps_answers_from_being_starved_by_open_streams(samconfig: dict[str, Any]) -> None:
    given = dict(pair.split("=", 1) for pair in samconfig["prod"]["deploy"]["parameters"]["parameter_overrides"])
    assert int(given["ToolResultConcurrency"]) > 0
    assert 0 < int(given["StreamConcurrency"]) + int(given["ToolResultConcurrency"]) <= 900
