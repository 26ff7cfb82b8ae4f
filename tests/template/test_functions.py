"""The configuration of each function: runtime, layers, environment, logs, failures."""

import json
import re
from typing import Any

import pytest

from fermata.aws.settings import Settings
from fermata.content.media.sweep_media import DEAD_SWEEP_SECONDS
from tests.template.templates import ROOT, Template, function_of_alias, resources_of_type

PROMISED = {
    "CONVERSATIONS_TABLE",
    "BRIDGES_TABLE",
    "PRICING_TABLE",
    "USAGE_TABLE",
    "CONTENT_TABLE",
    "SETTINGS_TABLE",
    "BUCKET",
    "KEY_ID",
    "STATE_MACHINE_ARN",
    "FERMATA_STAGE",
    "PROVIDER_URLS",
    "CATALOGUE_URL",
    "PUBLIC_URL",
    "TOOL_MANIFEST_PATH",
    "HEARTBEAT_SECONDS",
    "BROWSER_WAIT_SECONDS",
    "FLUSH_MS",
    "POLL_MS",
    "IDLE_POLL_MS",
    "READER_SECONDS",
    "READER_HEARTBEAT_SECONDS",
    "PROVIDER_STALL_SECONDS",
    "PROVIDER_SECONDS",
    "PROVIDER_ATTEMPTS",
    "MAX_ANSWER_TOKENS",
    "THINKING_TOKENS",
    "UNPRICED_MODELS",
    "MAX_ROUNDS",
    "MAX_REPEATED_CALLS",
    "MAX_FAILED_ROUNDS",
}
READ_BY_LIBRARIES = re.compile(r"POWERTOOLS_\w+|AWS_LWA_\w+|AWS_LAMBDA_EXEC_WRAPPER")
SECRET = re.compile(r"secret|token(?!s)|password|apikey|api_key|credential", re.IGNORECASE)
"""A name with "tokens" counts tokens; one with "token" would hold one."""


@pytest.fixture(scope="session")
def functions(deployed: Template) -> dict[str, Template]:
    return resources_of_type(deployed, "AWS::Lambda::Function")


def variables(function: Template) -> dict[str, Any]:
    found: dict[str, Any] = function["Environment"]["Variables"]
    return found


def resolve_default(source: Template, value: Any) -> str:
    """Return the value of a variable when the template is deployed with its defaults; a constant for a resource."""
    parameter = source["Parameters"].get(value.get("Ref", "")) if isinstance(value, dict) else None
    if parameter is not None:
        return str(parameter["Default"])
    return value if isinstance(value, str) else "a-resource"


def test_every_function_runs_on_python_3_13_and_arm(functions: dict[str, Template]) -> None:
    for name, function in functions.items():
        assert (function["Runtime"], function["Architectures"]) == ("python3.13", ["arm64"]), name


def test_every_function_has_our_code_and_its_packages_as_layers_once(functions: dict[str, Template]) -> None:
    for name, function in functions.items():
        layers = [layer["Ref"].rstrip("0123456789abcdef") for layer in function["Layers"] if "Ref" in layer]
        assert layers == ["DependenciesLayer", "FermataLayer"], name


def test_only_the_stream_function_has_the_web_adapter(functions: dict[str, Template]) -> None:
    adapted = [name for name, function in functions.items() if "LambdaAdapterLayerArm64" in str(function["Layers"])]
    assert adapted == ["StreamFunction"]


def test_a_round_and_a_stream_have_fifteen_minutes(functions: dict[str, Template]) -> None:
    assert functions["RoundFunction"]["Timeout"] == 900
    assert functions["StreamFunction"]["Timeout"] == 900


def test_a_sweep_that_is_taken_for_dead_has_been_stopped(functions: dict[str, Template]) -> None:
    assert functions["PurgeFunction"]["Timeout"] + 60 <= DEAD_SWEEP_SECONDS


def test_a_function_behind_the_api_ends_before_api_gateway_gives_up(functions: dict[str, Template]) -> None:
    for name in ("ToolResultFunction", "ApiFunction", "CredentialsFunction", "RedrawImagesFunction"):
        assert functions[name]["Timeout"] < 29, name


def test_every_function_has_the_promised_variables(functions: dict[str, Template]) -> None:
    for name, function in functions.items():
        assert set(variables(function)) >= PROMISED, name


def test_every_variable_is_read_by_the_settings_or_a_library(functions: dict[str, Template]) -> None:
    ours = {field.upper() for field in Settings.model_fields}
    for name, function in functions.items():
        unread = {variable for variable in set(variables(function)) - ours if not READ_BY_LIBRARIES.fullmatch(variable)}
        assert unread == set(), name


def test_the_templates_defaults_are_the_settings_defaults(source: Template, functions: dict[str, Template]) -> None:
    deployed = {name: resolve_default(source, value) for name, value in variables(functions["RoundFunction"]).items()}
    settings = Settings.from_environment(deployed)
    for name, field in Settings.model_fields.items():
        if not field.is_required() and name not in ("webhook_queue_url", "vector_bucket_arn"):  # both are of the stack
            assert getattr(settings, name) == field.default, name


def test_functions_name_the_workflow_and_the_template_gives_it_that_name(
    deployed: Template, functions: dict[str, Template]
) -> None:
    (machine,) = resources_of_type(deployed, "AWS::StepFunctions::StateMachine").values()
    name = machine["StateMachineName"]["Fn::Sub"]
    for function in functions.values():
        assert variables(function)["STATE_MACHINE_ARN"]["Fn::Sub"].endswith(f":stateMachine:{name}")


def test_every_log_is_kept_for_a_limited_time(deployed: Template, functions: dict[str, Template]) -> None:
    groups = resources_of_type(deployed, "AWS::Logs::LogGroup")
    (machine,) = resources_of_type(deployed, "AWS::StepFunctions::StateMachine").values()
    (destination,) = machine["LoggingConfiguration"]["Destinations"]
    used = {function["LoggingConfig"]["LogGroup"]["Ref"] for function in functions.values()}
    used.add(destination["CloudWatchLogsLogGroup"]["LogGroupArn"]["Fn::GetAtt"][0])
    assert used == set(groups) - {"ApiAccessLogs"}
    assert all(groups[name]["RetentionInDays"] == {"Ref": "LogDays"} for name in used)
    assert groups["ApiAccessLogs"]["RetentionInDays"] == {"Ref": "AccessLogDays"}


def test_logs_are_structured(functions: dict[str, Template]) -> None:
    assert all(function["LoggingConfig"]["LogFormat"] == "JSON" for function in functions.values())


def test_an_asynchronous_function_sends_its_failures_to_a_queue(deployed: Template) -> None:
    permissions = resources_of_type(deployed, "AWS::Lambda::Permission").values()
    asynchronous = {
        function_of_alias(found["FunctionName"])
        for found in permissions
        if found["Principal"] != "apigateway.amazonaws.com"
    }
    configured = resources_of_type(deployed, "AWS::Lambda::EventInvokeConfig").values()
    assert {found["Qualifier"] for found in configured} == {"live"}
    queues = {found["FunctionName"]["Ref"]: found["DestinationConfig"]["OnFailure"] for found in configured}
    assert asynchronous == {"RecoverFunction", "RefreshPricesFunction", "PurgeFunction"}
    assert set(queues) == asynchronous
    for rule in resources_of_type(deployed, "AWS::Events::Rule").values():
        assert all("DeadLetterConfig" in target for target in rule["Targets"])


def test_dead_letters_are_encrypted_and_kept_as_long_as_possible(deployed: Template) -> None:
    for queue in resources_of_type(deployed, "AWS::SQS::Queue").values():
        assert queue["SqsManagedSseEnabled"] is True
        assert queue["MessageRetentionPeriod"] == 14 * 86400


def test_recovery_is_invoked_on_failed_executions_and_every_minute(deployed: Template) -> None:
    rules = resources_of_type(deployed, "AWS::Events::Rule")
    pattern = rules["RecoverFunctionExecutionEnded"]["EventPattern"]
    assert pattern["detail"]["status"] == ["FAILED", "TIMED_OUT", "ABORTED"]
    assert pattern["detail"]["stateMachineArn"] == [{"Ref": "TurnMachine"}]
    sweep = rules["RecoverFunctionSweep"]
    assert sweep["ScheduleExpression"] == "rate(1 minute)"
    assert [target["Input"] for target in sweep["Targets"]] == ['{"v":1,"sweep":true}']


@pytest.mark.parametrize(
    ("function", "parameter"),
    [("StreamFunction", "StreamConcurrency"), ("ToolResultFunction", "ToolResultConcurrency")],
)
def test_concurrency_can_be_reserved_for_streams_and_tool_results(
    source: Template, function: str, parameter: str
) -> None:
    written = resources_of_type(source, "AWS::Serverless::Function")[function]["ReservedConcurrentExecutions"]
    condition, when_set, otherwise = written["Fn::If"]
    assert when_set == {"Ref": parameter}
    assert otherwise == {"Ref": "AWS::NoValue"}
    assert source["Conditions"][condition] == {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, 0]}]}
    assert source["Parameters"][parameter]["Default"] == 0


def test_no_secret_has_a_default_or_a_place_in_the_template(source: Template, functions: dict[str, Template]) -> None:
    assert [name for name in source["Parameters"] if SECRET.search(name)] == []
    for function in functions.values():
        assert [name for name in variables(function) if SECRET.search(name)] == []


def test_prices_are_refreshed_on_a_schedule_without_force(deployed: Template) -> None:
    look = resources_of_type(deployed, "AWS::Events::Rule")["RefreshPricesFunctionLook"]
    assert look["ScheduleExpression"] == "rate(5 minutes)"
    assert [target["Input"] for target in look["Targets"]] == ['{"v":1}']


def test_deleted_conversations_are_purged_every_hour(deployed: Template) -> None:
    hourly = resources_of_type(deployed, "AWS::Events::Rule")["PurgeFunctionHourly"]
    assert hourly["ScheduleExpression"] == "rate(1 hour)"
    assert [target["Input"] for target in hourly["Targets"]] == ['{"v":1}']


def test_the_whole_bin_is_looked_through_every_day(deployed: Template) -> None:
    daily = resources_of_type(deployed, "AWS::Events::Rule")["PurgeFunctionDaily"]
    assert daily["ScheduleExpression"] == "rate(1 day)"
    assert [target["Input"] for target in daily["Targets"]] == ['{"v":1,"wholeBin":true}']


def test_requested_exports_and_erasures_begin_within_five_minutes(deployed: Template) -> None:
    jobs = resources_of_type(deployed, "AWS::Events::Rule")["PurgeFunctionJobs"]
    assert jobs["ScheduleExpression"] == "rate(5 minutes)"
    assert [target["Input"] for target in jobs["Targets"]] == ['{"v":1,"jobsOnly":true}']


@pytest.mark.parametrize(("parameter", "form"), [("ProviderUrls", '{{"anthropic": "{}"}}'), ("CatalogueUrl", "{}")])
def test_a_provider_is_only_requested_over_https(source: Template, parameter: str, form: str) -> None:
    pattern = re.compile(source["Parameters"][parameter]["AllowedPattern"])
    assert pattern.fullmatch(source["Parameters"][parameter]["Default"])
    assert pattern.fullmatch(form.format("https://gateway.example.com/v1"))
    assert pattern.fullmatch(form.format("http://127.0.0.1:8080/v1"))
    assert not pattern.fullmatch(form.format("http://api.anthropic.com"))
    assert not pattern.fullmatch(form.format("http://127.0.0.1.example.com:80"))


def test_the_addresses_of_several_providers_can_be_replaced(source: Template) -> None:
    pattern = re.compile(source["Parameters"]["ProviderUrls"]["AllowedPattern"])
    urls = {"openai": "https://a.example", "openrouter": "https://b.example/api"}
    assert pattern.fullmatch(json.dumps(urls))
    assert not pattern.fullmatch(json.dumps(urls | {"anthropic": "http://c.example"}))


def test_the_layers_say_how_they_are_built(source: Template) -> None:
    layers = {name: found for name, found in source["Resources"].items() if found["Type"].endswith("LayerVersion")}
    for name, layer in layers.items():
        assert layer["Metadata"] == {"BuildMethod": "makefile", "BuildArchitecture": "arm64"}, name
        makefile = (ROOT / layer["Properties"]["ContentUri"] / "Makefile").read_text()
        assert f"\nbuild-{name}:\n" in makefile, name
        assert "--invalidation-mode unchecked-hash" in makefile, name
