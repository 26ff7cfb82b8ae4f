"""Versions and aliases of the functions: what publishes one, what invokes one, and how traffic moves to one."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.quick_suite_samples import sample_for_quick_suite
from tests.template import templates
from tests.template.templates import Template, resources_of_type

TABLES_AND_BUCKET = {
    "ConversationsTable",
    "BridgesTable",
    "PricingTable",
    "UsageTable",
    "SettingsTable",
    "ContentTable",
    "Bucket",
}
GRADUAL = "Canary10Percent10Minutes"
ROLLBACK_ALARMS = {
    "ApiErrorsAlarm",
    "RequestErrorsAlarm",
    "TurnErrorsAlarm",
    "BackgroundErrorsAlarm",
    "FailedTurnsAlarm",
    "StuckTurnsAlarm",
    "UnreadableRowsAlarm",
}


@pytest.fixture(scope="module")
def gradual() -> Template:
    return templates.transform_template(templates.TEMPLATE.read_text(), Rollout=GRADUAL)


def iter_references(value: Any) -> Iterator[str]:
    """Yield the logical ids that a value refers to by Ref, GetAtt or Sub."""
    if isinstance(value, list):
        for one in value:
            yield from iter_references(one)
    elif isinstance(value, dict):
        if "Ref" in value:
            yield value["Ref"]
        elif "Fn::GetAtt" in value:
            yield str(value["Fn::GetAtt"][0]).partition(".")[0]
        elif "Fn::Sub" in value:
            text, given = value["Fn::Sub"] if isinstance(value["Fn::Sub"], list) else (value["Fn::Sub"], {})
            yield from (name for name in re.findall(r"\$\{([\w:]+)", text) if name not in given)
            yield from iter_references(list(given.values()))
        else:
            yield from iter_references(list(value.values()))


def version_ids(template: Template) -> dict[str, str]:
    """Return the logical id of each function's version."""
    versions = resources_of_type(template, "AWS::Lambda::Version")
    return {found["FunctionName"]["Ref"]: name for name, found in versions.items()}


def test_every_function_has_an_alias_at_the_version_that_this_deployment_publishes(deployed: Template) -> None:
    functions, versions = set(resources_of_type(deployed, "AWS::Lambda::Function")), version_ids(deployed)
    aliases = resources_of_type(deployed, "AWS::Lambda::Alias").values()
    assert set(versions) == functions
    assert {found["FunctionName"]["Ref"] for found in aliases} == functions
    for found in aliases:
        assert found["Name"] == "live"
        assert found["FunctionVersion"] == {"Fn::GetAtt": [versions[found["FunctionName"]["Ref"]], "Version"]}


def test_nothing_invokes_a_function_except_by_its_alias(deployed: Template) -> None:
    functions = set(resources_of_type(deployed, "AWS::Lambda::Function"))
    invokers = {
        kind: found
        for kind in (
            "AWS::ApiGateway::RestApi",
            "AWS::Lambda::Permission",
            "AWS::Lambda::EventSourceMapping",
            "AWS::Events::Rule",
            "AWS::StepFunctions::StateMachine",
        )
        for found in resources_of_type(deployed, kind).values()
        if functions & set(iter_references(found))
    }
    assert invokers == {}


def test_a_changed_parameter_of_the_functions_replaces_the_settings_and_so_every_version(deployed: Template) -> None:
    """SAM compares the template's text, so a parameter that is missing here would reach no version."""
    source = templates.read_template(templates.TEMPLATE.read_text())
    variables = source["Globals"]["Function"]["Environment"]["Variables"]
    conditions = [value["Fn::If"][0] for value in variables.values() if isinstance(value, dict) and "Fn::If" in value]
    references = {*iter_references(variables), *iter_references([source["Conditions"][name] for name in conditions])}
    used = references & set(source["Parameters"])
    numbered = source["Resources"]["FunctionSettings"]["Properties"]["Content"]
    assert {name for name in iter_references(numbered) if name in source["Parameters"]} == used
    for version in resources_of_type(deployed, "AWS::Lambda::Version").values():
        assert "FunctionSettings" in set(iter_references(version["Description"]))


def test_a_parameter_that_only_one_function_has_is_in_the_description_of_its_versions(
    source: Template, deployed: Template
) -> None:
    """Lambda refuses a version of an unchanged function, so it must not be in the settings of all."""
    everywhere = set(iter_references(source["Resources"]["FunctionSettings"]["Properties"]["Content"]))
    versions = version_ids(deployed)
    for name, function in resources_of_type(deployed, "AWS::Lambda::Function").items():
        configured = {key: value for key, value in function.items() if key != "ReservedConcurrentExecutions"}
        own = {found for found in iter_references(configured) if found in source["Parameters"]} - everywhere
        description = deployed["Resources"][versions[name]]["Properties"]["Description"]
        assert own == {found for found in iter_references(description) if found in source["Parameters"]}, name


@pytest.mark.parametrize("layer", sample_for_quick_suite(["layers/fermata", "layers/dependencies"], every=2))
def test_changed_code_in_a_layer_publishes_a_version_of_every_function(layer: str, deployed: Template) -> None:
    text = templates.TEMPLATE.read_text()
    changed = templates.transform_template(text.replace(f"ContentUri: {layer}\n", "ContentUri: changed\n"))
    before, after = version_ids(deployed), version_ids(changed)
    assert all(before[name] != after[name] for name in before)


def test_a_first_deployment_needs_no_codedeploy(deployed: Template) -> None:
    kinds = {resource["Type"] for resource in deployed["Resources"].values()}
    assert not any(kind.startswith("AWS::CodeDeploy") for kind in kinds)
    assert deployed["Resources"]["RolloutRole"]["Condition"] == "IsGradual"
    assert not any("UpdatePolicy" in resource for resource in deployed["Resources"].values())


@pytest.mark.exhaustive
def test_a_gradual_rollout_moves_every_alias_and_goes_back_when_an_alarm_rings(gradual: Template) -> None:
    groups = resources_of_type(gradual, "AWS::CodeDeploy::DeploymentGroup")
    aliases = {
        name: resource["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]["DeploymentGroupName"]["Ref"]
        for name, resource in gradual["Resources"].items()
        if resource["Type"] == "AWS::Lambda::Alias"
    }
    assert set(aliases.values()) == set(groups)
    assert len(aliases) == len(groups) == len(resources_of_type(gradual, "AWS::Lambda::Function"))
    for group in groups.values():
        assert group["DeploymentConfigName"]["Fn::Sub"][1] == {"ConfigName": GRADUAL}
        assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
        assert {alarm["Name"]["Ref"] for alarm in group["AlarmConfiguration"]["Alarms"]} == ROLLBACK_ALARMS
        assert "RolloutRole" in set(iter_references(group["ServiceRoleArn"]))
    assert "CodeDeployServiceRole" not in gradual["Resources"]


def test_an_alarm_that_can_stop_a_rollout_does_not_ring_because_a_stack_is_new(gradual: Template) -> None:
    """A missing metric would stop the first rollout, as that of the sweep does until its first minute is over."""
    assert len(ROLLBACK_ALARMS) <= 10, "CodeDeploy takes ten alarms"
    for name in ROLLBACK_ALARMS:
        assert gradual["Resources"][name]["Properties"]["TreatMissingData"] == "notBreaching"


def test_every_gradual_rollout_that_can_be_chosen_is_one_of_codedeploys(source: Template) -> None:
    allowed = source["Parameters"]["Rollout"]["AllowedValues"]
    assert set(source["Mappings"]["Rollouts"]) == set(allowed)
    for name in allowed:
        expected = "false" if name == "AllAtOnce" else "true"
        assert source["Mappings"]["Rollouts"][name]["IsGradual"] == expected


def without_condition(gradual: Template) -> Template:
    """Resolve the condition as CloudFormation does. cfn-lint does not know that it holds where SAM makes groups."""
    resolved = copy.deepcopy(gradual)
    for group in resources_of_type(resolved, "AWS::CodeDeploy::DeploymentGroup").values():
        group["ServiceRoleArn"] = group["ServiceRoleArn"]["Fn::If"][1]
    del resolved["Resources"]["RolloutRole"]["Condition"]
    del resolved["Conditions"]["IsGradual"]
    del resolved["Mappings"], resolved["Parameters"]["Rollout"]
    return resolved


@pytest.mark.exhaustive
def test_a_gradual_rollout_passes_cfn_lint(gradual: Template, transformed: Template) -> None:
    """Only what differs from a rollout at once, which passes as a whole."""
    at_once, resolved = transformed["Resources"], without_condition(gradual)
    different = [name for name, found in resolved["Resources"].items() if found != at_once.get(name)]
    assert "RolloutRole" in different
    assert templates.lint_part(resolved, different) == []


@pytest.mark.exhaustive
def test_an_alarm_of_the_workflow_cannot_stop_a_rollout_because_it_depends_on_the_aliases() -> None:
    text = templates.TEMPLATE.read_text()
    circular = text.replace("        - !Ref StuckTurnsAlarm\n", "        - !Ref FailedExecutionsAlarm\n")
    assert circular != text
    found = templates.find_cycles(without_condition(templates.transform_template(circular, Rollout=GRADUAL)))
    assert any(complaint.startswith("E3004") for complaint in found), found
