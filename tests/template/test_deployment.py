"""The deployment configuration in samconfig.toml, and the parameters that it sets."""

import tomllib
from typing import Any

import pytest

from tests.template.templates import ROOT, Template


@pytest.fixture(scope="session")
def samconfig() -> dict[str, Any]:
    return tomllib.loads((ROOT / "samconfig.toml").read_text())


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
