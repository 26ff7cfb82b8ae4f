"""The deployment configuration in samconfig.toml, and the parameters that it sets."""

import re
import tomllib
from collections.abc import Iterator
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


@pytest.mark.parametrize("environment", ["default", "dev", "prod"])
def test_a_new_accounts_concurrency_rolls_no_deployment_back(
    samconfig: dict[str, Any], source: Template, environment: str
) -> None:
    overrides = samconfig[environment]["deploy"]["parameters"]["parameter_overrides"]
    given = dict(pair.split("=", 1) for pair in overrides)
    for name in ("StreamConcurrency", "ToolResultConcurrency"):
        assert int(given.get(name, source["Parameters"][name]["Default"])) == 0


def test_a_deployment_asks_nothing_but_the_region(samconfig: dict[str, Any], source: Template) -> None:
    deploy = samconfig["default"]["deploy"]["parameters"]
    assert samconfig["default"]["global"]["parameters"]["stack_name"]
    assert deploy["capabilities"] == "CAPABILITY_IAM"
    assert deploy["resolve_s3"] is True
    assert not deploy.get("confirm_changeset")
    given = {pair.partition("=")[0] for pair in deploy["parameter_overrides"]}
    assert [name for name, parameter in source["Parameters"].items() if "Default" not in parameter] == []
    assert given <= set(source["Parameters"])
    assert "--guided" not in (ROOT / "README.md").read_text()


def test_every_arn_of_the_template_follows_the_partition_of_its_stack(source: Template) -> None:
    """SAM writes the partition of the region that it runs in into what it generates."""
    found = list(iter_arns(source["Resources"]))
    assert found
    assert [arn for arn in found if not arn.startswith("arn:${AWS::Partition}:")] == []


def iter_arns(value: Any) -> Iterator[str]:
    """Yield each ARN that is written out anywhere inside a value."""
    if isinstance(value, str):
        yield from re.findall(r"\barn:[^\s\"']+", value)
    elif isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from iter_arns(member)


def test_the_web_adapters_layer_is_the_published_one_or_that_of_the_parameter(deployed: Template) -> None:
    (condition, own, published), *_ = [
        layer["Fn::If"]
        for layer in deployed["Resources"]["StreamFunction"]["Properties"]["Layers"]
        if "Fn::If" in layer
    ]
    assert deployed["Conditions"][condition] == {"Fn::Not": [{"Fn::Equals": [{"Ref": "WebAdapterLayerArn"}, ""]}]}
    assert own == {"Ref": "WebAdapterLayerArn"}
    assert published["Fn::Sub"].startswith("arn:${AWS::Partition}:lambda:${AWS::Region}:753240598075:layer:")
