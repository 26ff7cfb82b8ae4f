"""`fermata doctor` on accounts as AWS describes them: every finding, in words."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore import xform_name
from botocore.exceptions import ClientError
from botocore.validate import validate_parameters
from click.testing import CliRunner, Result

from fermata_client.cli import main
from fermata_client.stack.doctor.alarm_checks import summarize_alarms
from fermata_client.stack.resources import StackLocation
from tests.copied_clients import copy_client
from tests.template.templates import ROOT

REGION = "eu-central-1"
LAYER = f"arn:aws:lambda:{REGION}:753240598075:layer:LambdaAdapterLayerArm64:27"
STATES = [
    "StateTransition throttle token refill rate per second",
    "StartExecution throttle token refill rate per second",
    "SendTaskSuccess throttle token refill rate per second",
]
SAMCONFIG = """version = 0.1
[default.global.parameters]
stack_name = "fermata-dev"
[default.deploy.parameters]
parameter_overrides = [{overrides}]
"""
REFUSED = {"error": "AccessDeniedException", "text": "You may not."}


def quotas(**values: float) -> dict[str, Any]:
    return {"Quotas": [{"QuotaName": name.replace("_", " "), "Value": value} for name, value in values.items()]}


def state_quotas(value: float) -> dict[str, Any]:
    return {"Quotas": [{"QuotaName": name, "Value": value} for name in STATES]}


def healthy_account() -> dict[tuple[str, str], list[Any]]:
    """Return AWS's answers by service and operation, in the order of the calls."""
    return {
        ("sts", "get_caller_identity"): [{"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/ada"}],
        ("lambda", "get_layer_version_by_arn"): [{"LayerVersionArn": LAYER, "CompatibleArchitectures": ["arm64"]}],
        ("lambda", "get_account_settings"): [{"AccountLimit": {"ConcurrentExecutions": 1000}}],
        ("cloudformation", "describe_stacks"): [
            {"error": "ValidationError", "text": "Stack with id fermata-dev does not exist"}
        ],
        ("service-quotas", "list_aws_default_service_quotas"): [state_quotas(800), quotas(Throttle_rate=10000)],
        ("service-quotas", "list_service_quotas"): [state_quotas(800), quotas(Throttle_rate=10000)],
    }


@functools.cache
def create_client_once(service: Any, region: str | None) -> Any:
    return boto3.client(service, region_name=region, aws_access_key_id="a", aws_secret_access_key="b")


class ScriptedLocation(StackLocation):
    """A location whose clients get scripted answers, each of which boto3 checks against AWS's own description."""

    answers: dict[tuple[str, str], list[Any]]

    def create_client(self, service: Any, config: Any = None) -> Any:
        client = copy_client(create_client_once(service, self.region))

        def answer(name: str, parameters: dict[str, Any]) -> Any:
            shapes = client.meta.service_model.operation_model(name)
            validate_parameters(parameters, shapes.input_shape)
            scripted = self.answers[service, xform_name(name)]
            response = scripted.pop(0) if len(scripted) > 1 else scripted[0]
            if "error" in response:
                raise ClientError({"Error": {"Code": response["error"], "Message": response["text"]}}, name)
            validate_parameters(response, shapes.output_shape)
            return response

        client._make_api_call = answer
        return client


Examine = Callable[..., Result]


@pytest.fixture
def examine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Examine:
    (tmp_path / "template.yaml").write_text((ROOT / "template.yaml").read_text())
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    def run(
        *overrides: str, region: str | None = REGION, answers: dict[tuple[str, str], list[Any]] | None = None
    ) -> Result:
        text = SAMCONFIG.format(overrides=", ".join(f'"{one}"' for one in overrides))
        (tmp_path / "samconfig.toml").write_text(text)
        ScriptedLocation.answers = healthy_account() | (answers or {})
        monkeypatch.setattr("fermata_client.commands.deployment.doctor.StackLocation", ScriptedLocation)
        where = ["--region", region] if region else []
        return CliRunner().invoke(main, ["doctor", "--folder", str(tmp_path), *where])

    return run


def test_a_healthy_account_has_no_problem(examine: Examine) -> None:
    result = examine("Stage=dev")
    assert result.exit_code == 0, result.output
    assert f"ok       layer: {LAYER}." in result.output
    assert "ok       quotas: apigateway: Throttle rate is 10,000." in result.output
    assert "About 500 turns can stream at once." in result.output


def test_without_a_region_the_one_parameter_that_is_missing_is_named(examine: Examine) -> None:
    result = examine(region=None)
    assert result.exit_code == 1
    assert "PROBLEM  region: No region is set. Give one: `sam deploy --region" in result.output


@pytest.mark.parametrize(
    ("region", "words"),
    [
        ("eu-central-9", "AWS has no region eu-central-9. Did you mean eu-central-"),
        ("frankfurt", "AWS has no region frankfurt. If it is newer"),
        ("eu-central-1a", "Did you mean eu-central-1?"),
        ("EU-CENTRAL-1", "AWS has no region EU-CENTRAL-1."),
    ],
)
def test_a_region_that_is_none_is_named_before_anything_is_asked(examine: Examine, region: str, words: str) -> None:
    result = examine(region=region)
    assert result.exit_code == 1
    assert f"PROBLEM  region: {words}" in result.output or words in result.output
    assert "credentials" not in result.output


@pytest.mark.parametrize(("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")])
def test_another_partition_is_noted_with_the_layer_that_it_needs(examine: Examine, region: str, partition: str) -> None:
    result = examine(region=region)
    assert "note     region: " in result.output
    assert "named by WebAdapterLayerArn" in result.output
    assert f"arn:{partition}:lambda:{region}:" in result.output


@pytest.mark.parametrize(
    ("account", "line"),
    [
        ({}, "PROBLEM  access logs: API Gateway has no role"),
        ({"cloudwatchRoleArn": "arn:aws:iam::123456789012:role/logs"}, "ok       access logs: API Gateway writes them"),
        (REFUSED, "note     access logs: API Gateway cannot be asked"),
    ],
)
def test_access_logs_need_a_role_of_the_account(examine: Examine, account: dict[str, str], line: str) -> None:
    result = examine("AccessLogDays=30", answers={("apigateway", "get_account"): [account]})
    assert line in result.output
    assert result.exit_code == (1 if line.startswith("PROBLEM") else 0)


def test_an_account_is_not_asked_for_access_logs_that_nobody_wants(examine: Examine) -> None:
    assert "access logs" not in examine("Stage=dev").output


def test_a_new_account_whose_reservations_would_roll_the_stack_back(examine: Examine) -> None:
    new_account = {("lambda", "get_account_settings"): [{"AccountLimit": {"ConcurrentExecutions": 10}}]}
    result = examine("StreamConcurrency=500", "ToolResultConcurrency=100", answers=new_account)
    assert result.exit_code == 1
    assert "PROBLEM  Lambda: StreamConcurrency and ToolResultConcurrency reserve 600 of the" in result.output
    assert "The deployment would be rolled back." in result.output


def test_a_new_account_without_reservations_can_be_deployed_to(examine: Examine) -> None:
    new_account = {("lambda", "get_account_settings"): [{"AccountLimit": {"ConcurrentExecutions": 10}}]}
    result = examine("Stage=dev", answers=new_account)
    assert result.exit_code == 0, result.output
    assert "note     Lambda: The account may run 10 functions at once" in result.output
    assert "About 5 turns can stream at once" in result.output


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("Nothing=1", "template.yaml has no parameter Nothing"),
        ("Stage=staging", "Stage is 'staging': it must be one of dev, prod, local."),
        ("PollMs=soon", "PollMs is 'soon': it must be a number."),
        ("PollMs=0", "PollMs is '0': it must be at least 1."),
        ("HeartbeatSeconds=9999", "it must be at most 3600."),
        ("WebAdapterLayerArn=latest", "The ARN of a version of a Lambda layer, or nothing."),
    ],
)
def test_a_parameter_that_cloudformation_would_refuse(examine: Examine, override: str, words: str) -> None:
    result = examine(override)
    assert result.exit_code == 1
    assert words in result.output


def test_credentials_that_aws_refuses(examine: Examine) -> None:
    expired = {"error": "ExpiredToken", "text": "The security token included in the request is expired"}
    result = examine(answers={("sts", "get_caller_identity"): [expired]})
    assert result.exit_code == 1
    assert "PROBLEM  credentials: AWS does not accept your credentials: The security token" in result.output
    assert "layer:" not in result.output


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (REFUSED, "cannot be used: You may not. Publish the web adapter's arm64 layer in eu-central-1"),
        ({"CompatibleArchitectures": ["x86_64"]}, "is for x86_64. The functions run on arm64."),
    ],
)
def test_a_layer_that_cannot_be_used(examine: Examine, layer: dict[str, Any], words: str) -> None:
    result = examine(answers={("lambda", "get_layer_version_by_arn"): [layer]})
    assert result.exit_code == 1
    assert words in result.output


@pytest.mark.parametrize(
    ("status", "mark", "words"),
    [
        ("ROLLBACK_COMPLETE", "PROBLEM", "Delete it: `sam delete --stack-name fermata-dev`."),
        ("UPDATE_ROLLBACK_FAILED", "PROBLEM", "continue-update-rollback"),
        ("UPDATE_IN_PROGRESS", "note   ", "Wait until that is over."),
        ("CREATE_COMPLETE", "ok     ", "will be updated."),
    ],
)
def test_a_stack_that_exists(examine: Examine, status: str, mark: str, words: str) -> None:
    stack = {"StackName": "fermata-dev", "CreationTime": "2026-11-28T00:00:00Z", "StackStatus": status}
    result = examine(answers={("cloudformation", "describe_stacks"): [{"Stacks": [stack]}]})
    (line,) = [line for line in result.output.splitlines() if " stack: " in line]
    assert line.startswith(mark)
    assert words in line


def test_reduced_and_unknown_quotas_are_notes(examine: Examine) -> None:
    reduced = [state_quotas(100), REFUSED]
    result = examine(answers={("service-quotas", "list_service_quotas"): reduced})
    assert result.exit_code == 0, result.output
    assert "StateTransition throttle token refill rate per second is 100; 800 are usual. Request more" in result.output
    assert "The quotas of apigateway are not known: You may not." in result.output


def test_a_folder_that_is_no_clone(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["doctor", "--folder", str(tmp_path)])
    assert result.exit_code == 1
    assert "Run this in a clone of the project" in result.output


def test_an_environment_that_samconfig_does_not_have() -> None:
    result = CliRunner().invoke(main, ["doctor", "--folder", str(ROOT), "--config-env", "staging"])
    assert result.exit_code == 1
    assert "It has default, dev, prod." in result.output


def test_the_local_cloud_of_another_folder_is_looked_for_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fermata_client.commands.deployment.doctor.find_local_stack", lambda _region: None)
    result = CliRunner().invoke(main, ["doctor", "--local"])
    assert result.exit_code == 1
    assert result.stderr.startswith("fermata: No local cloud runs from this folder. Run this in the folder in which")


class CloudWatch:
    """Lists the metrics of a name one on a page."""

    def __init__(self, metrics: dict[str, list[dict[str, Any]]]) -> None:
        self.metrics = metrics
        self.asked: list[str] = []

    def list_metrics(self, **parameters: Any) -> dict[str, Any]:
        self.asked.append(parameters["MetricName"])
        found, page = self.metrics.get(parameters["MetricName"], []), int(parameters.get("NextToken", "0"))
        more = {"NextToken": str(page + 1)} if page + 1 < len(found) else {}
        return {"Metrics": found[page : page + 1], **more}


def test_an_alarm_that_computes_with_metrics_is_examined_by_each_of_them() -> None:
    queries = [
        {"Id": "failed", "MetricStat": {"Metric": {"Namespace": "AWS/States", "MetricName": "ExecutionsFailed"}}},
        {"Id": "started", "MetricStat": {"Metric": {"Namespace": "AWS/States", "MetricName": "ExecutionsStarted"}}},
        {"Id": "rate", "Expression": "failed / started"},
    ]
    cloudwatch = CloudWatch({"ExecutionsStarted": [{}]})
    (finding,) = summarize_alarms(cloudwatch, [{"AlarmName": "fermata-Rate", "StateValue": "OK", "Metrics": queries}])
    assert cloudwatch.asked == ["ExecutionsFailed", "ExecutionsStarted"]
    assert (finding.level, "fermata-Rate (AWS/States ExecutionsFailed)" in finding.text) == ("note", True)
    raised = {"AlarmName": "fermata-Rate", "StateValue": "ALARM", "AlarmDescription": "Look.", "StateReason": "0.5"}
    (finding,) = summarize_alarms(cloudwatch, [raised])
    assert (finding.level, finding.text) == ("problem", "fermata-Rate is raised: Look. 0.5")


def test_alarms_that_are_quiet_take_one_line_and_those_without_values_another() -> None:
    alarms = [
        {"AlarmName": f"fermata-{number}", "StateValue": "OK", "Namespace": "Fermata", "MetricName": f"M{number}"}
        for number in range(30)
    ]
    cloudwatch = CloudWatch({f"M{number}": [{}] for number in range(12)})
    quiet, without = summarize_alarms(cloudwatch, alarms)
    assert (quiet.level, quiet.text) == ("ok", "12 of 30 are not raised, and have metrics with values.")
    assert without.level == "note"
    assert without.text.startswith("18 of 30 watch metrics without a value in the last two weeks: fermata-12 (Fermata")


def test_a_metric_with_other_dimensions_is_not_the_one_that_an_alarm_watches() -> None:
    function, version = {"Name": "FunctionName", "Value": "f"}, {"Name": "Resource", "Value": "f:live"}
    alarm = {"AlarmName": "a", "Namespace": "AWS/Lambda", "MetricName": "Errors", "Dimensions": [function]}
    (finding,) = summarize_alarms(CloudWatch({"Errors": [{"Dimensions": [function, version]}]}), [alarm])
    assert finding.level == "note"
    (finding,) = summarize_alarms(CloudWatch({"Errors": [{}, {"Dimensions": [function]}]}), [alarm])
    assert finding.level == "ok", "also on the second page"
