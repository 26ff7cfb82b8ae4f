"""The template whose streams run on managed instances: it differs from the other in the stream function only."""

from typing import Any

import pytest

from bench.scaling_limits import PROCESSORS_PER_INSTANCE, READERS_PER_INSTANCE, STREAMS_PER_ENVIRONMENT
from local.instances_template import render_instances_template
from tests.template import templates
from tests.template.templates import ALIAS_SUFFIX, Template, resources_of_type

ADDED = {"StreamInstances", "StreamInstancesRole"}
DIFFERENT = {"StreamFunction", f"StreamFunction{ALIAS_SUFFIX}", "ApiStage"}
UNKNOWN_ARN = "E1010 'Arn' is not one of [] in ['us-east-1']"
"""cfn-lint does not know yet that a capacity provider has an ARN."""


@pytest.fixture(scope="module")
def instances_text() -> str:
    return render_instances_template(templates.TEMPLATE.read_text())


@pytest.fixture(scope="module")
def on_instances(instances_text: str) -> Template:
    values = {"StreamSubnets": "subnet-1,subnet-2", "StreamSecurityGroups": "sg-1"}
    return templates.transform_template(instances_text, **values)


@pytest.fixture(scope="module")
def stream(on_instances: Template) -> Template:
    return resources_of_type(on_instances, "AWS::Lambda::Function")["StreamFunction"]


def without_versions(template: Template) -> dict[str, Any]:
    """Return the resources, except those with a hash in their names. The stage of the API refers to one of them."""
    kinds = ("AWS::Lambda::Version", "AWS::ApiGateway::Deployment")
    return {name: found for name, found in template["Resources"].items() if found["Type"] not in kinds}


def test_nothing_but_the_stream_function_differs(on_instances: Template, transformed: Template) -> None:
    before, after = without_versions(transformed), without_versions(on_instances)
    assert set(after) - set(before) == ADDED
    assert set(before) - set(after) == set()
    different = {name for name in before if before[name] != after[name]}
    assert different == DIFFERENT


def test_the_stream_function_runs_beside_other_requests_in_one_process(stream: Template) -> None:
    provider = stream["CapacityProviderConfig"]["LambdaManagedInstancesCapacityProviderConfig"]
    assert provider == {
        "CapacityProviderArn": {"Fn::GetAtt": ["StreamInstances", "Arn"]},
        "PerExecutionEnvironmentMaxConcurrency": {"Ref": "StreamsPerEnvironment"},
        "ExecutionEnvironmentMemoryGiBPerVCpu": 2,
    }
    assert stream["MemorySize"] == 2048
    assert stream["Timeout"] == 900
    assert "ReservedConcurrentExecutions" not in stream
    assert stream["Environment"]["Variables"]["AWS_LWA_INVOKE_MODE"] == "response_stream"


def test_it_has_another_name_because_lambda_moves_no_function_to_instances(
    stream: Template, transformed: Template
) -> None:
    other = resources_of_type(transformed, "AWS::Lambda::Function")["StreamFunction"]
    assert stream["FunctionName"] != other["FunctionName"]
    assert str(stream["FunctionName"]["Fn::Sub"]).startswith("${AWS::StackName}-"), "the rollout's role names it so"


def test_a_version_that_no_alias_points_to_keeps_no_instances(on_instances: Template) -> None:
    policies = {
        found["Properties"]["FunctionName"]["Ref"]: found["DeletionPolicy"]
        for found in on_instances["Resources"].values()
        if found["Type"] == "AWS::Lambda::Version"
    }
    assert policies["StreamFunction"] == "Delete"
    assert policies["RoundFunction"] == "Retain"


def test_a_changed_number_of_streams_publishes_a_version(on_instances: Template) -> None:
    (version,) = [
        found
        for found in resources_of_type(on_instances, "AWS::Lambda::Version").values()
        if found["FunctionName"] == {"Ref": "StreamFunction"}
    ]
    assert "${StreamsPerEnvironment}" in version["Description"]["Fn::Sub"]


def test_instances_are_in_the_operators_network_and_limited(on_instances: Template) -> None:
    (provider,) = resources_of_type(on_instances, "AWS::Lambda::CapacityProvider").values()
    assert provider["VpcConfig"]["SubnetIds"] == {"Ref": "StreamSubnets"}
    assert provider["CapacityProviderScalingConfig"] == {
        "MaxVCpuCount": {"Ref": "StreamVCpus"},
        "ScalingMode": "Auto",
    }
    role = resources_of_type(on_instances, "AWS::IAM::Role")["StreamInstancesRole"]
    assert [str(arn["Fn::Sub"]).rpartition("/")[2] for arn in role["ManagedPolicyArns"]] == [
        "AWSLambdaManagedEC2ResourceOperator"
    ]


def test_the_readers_that_prices_assume_fit_into_the_processes_of_an_instance(instances_text: str) -> None:
    streams = templates.read_template(instances_text)["Parameters"]["StreamsPerEnvironment"]["Default"]
    assert streams == STREAMS_PER_ENVIRONMENT
    assert streams * PROCESSORS_PER_INSTANCE >= READERS_PER_INSTANCE


def test_a_template_without_a_place_to_change_is_an_error() -> None:
    text = templates.TEMPLATE.read_text()
    with pytest.raises(ValueError, match="MemorySize"):
        render_instances_template(text.replace("      MemorySize: 208\n", "", 1))


@pytest.mark.exhaustive
def test_the_template_with_instances_passes_cfn_lint(on_instances: Template) -> None:
    """Only what differs from the other template, which passes as a whole."""
    found = templates.lint_part(on_instances, {*ADDED, *DIFFERENT})
    assert [complaint for complaint in found if complaint != UNKNOWN_ARN] == []
