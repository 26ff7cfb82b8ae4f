"""Monitoring: the ledger's stream, alarms, the dashboard, saved queries."""

import itertools
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.aws.observability import METRIC_UNITS
from fermata.aws.resources import Resources
from fermata.aws.security_events import SecurityEvent
from fermata.content.change_sets.change_set import change_set_sort_key, changed_document_sort_key
from fermata.content.documents.document import DocumentKey
from fermata.content.documents.document_rows import head_sort_key, version_sort_key
from fermata.credentials import last_used
from fermata.domain.caller import Caller
from fermata.pricing import catalogue
from fermata.pricing.catalogue import PriceCatalogue, PricedModel
from fermata.pricing.catalogue_refresh import refresh_catalogue
from fermata.pricing.token_cost import Price
from fermata.usage.audit import user_labels
from fermata.usage.ledger import ledger_store
from fermata.usage.rollups.rebuild import rebuild_rollups
from fermata.usage.rollups.stream_consumer import LedgerStreamRecord, count_stream_records
from fermata.wire.http.error_responses import response_from_error
from tests.template.alarm_evaluation import WatchedMetric, read_metrics
from tests.template.templates import ROOT, Template, resources_of_type
from tests.unit.turns.conftest import shared_resources, stage, staged
from tests.unit.turns.stage import Stage, make_provider_error
from tests.unit.usage.ledger_factories import (
    TENANT,
    count_ledger_rows,
    make_turn_outcome,
    make_usage,
    write_ledger_rows,
)

__all__ = ["shared_resources", "stage", "staged"]
OUR_OWN = {"Fermata"}
PRICES = {"model-1": PricedModel(price=Price(input_per_mtok=Decimal(1), output_per_mtok=Decimal(2)))}


@pytest.fixture(scope="session")
def alarms(deployed: Template) -> dict[str, Template]:
    return resources_of_type(deployed, "AWS::CloudWatch::Alarm")


@pytest.fixture(scope="session")
def mapping(deployed: Template) -> Template:
    mappings = resources_of_type(deployed, "AWS::Lambda::EventSourceMapping").values()
    (found,) = (it for it in mappings if it.get("EventSourceArn") == {"Fn::GetAtt": ["UsageTable", "StreamArn"]})
    return found


def ours(deployed: Template) -> set[str]:
    """Return the metrics that functions emit, or that metric filters make of logs."""
    filters = resources_of_type(deployed, "AWS::Logs::MetricFilter").values()
    return set(METRIC_UNITS) | {it["MetricName"] for found in filters for it in found["MetricTransformations"]}


def test_the_rollup_retries_every_row_until_it_is_counted_or_in_the_queue(mapping: Template) -> None:
    assert mapping["EventSourceArn"] == {"Fn::GetAtt": ["UsageTable", "StreamArn"]}
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["DestinationConfig"]["OnFailure"]["Destination"] == {"Fn::GetAtt": ["RollupDeadLetters", "Arn"]}
    assert mapping["MaximumRecordAgeInSeconds"] < 86_400, "a stream forgets after a day"


def test_every_change_of_content_is_consumed_or_in_the_queue(deployed: Template) -> None:
    mappings = resources_of_type(deployed, "AWS::Lambda::EventSourceMapping").values()
    (mapping,) = (it for it in mappings if it.get("EventSourceArn") == {"Fn::GetAtt": ["ContentTable", "StreamArn"]})
    assert (mapping["StartingPosition"], mapping["BisectBatchOnFunctionError"]) == ("TRIM_HORIZON", True)
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["DestinationConfig"]["OnFailure"]["Destination"] == {"Fn::GetAtt": ["ContentDeadLetters", "Arn"]}
    assert mapping["MaximumRecordAgeInSeconds"] < 86_400, "a stream forgets after a day"
    patterns = [json.loads(one["Pattern"]) for one in mapping["FilterCriteria"]["Filters"]]
    wanted = [(pattern["dynamodb"]["NewImage"]["sk"]["S"][0]["prefix"], pattern["eventName"]) for pattern in patterns]
    rye = DocumentKey("post", "rye")
    assert ["INSERT"] in [events for prefix, events in wanted if version_sort_key(rye, 1).startswith(prefix)]
    steps = [events for prefix, events in wanted if change_set_sort_key("a1").startswith(prefix)]
    assert steps == [["INSERT", "MODIFY"]]
    for other in (head_sort_key(rye), changed_document_sort_key("a1", rye)):
        assert not any(other.startswith(prefix) for prefix, _ in wanted)


def test_the_filter_passes_only_ledger_rows(resources: Resources, mapping: Template) -> None:
    (one,) = mapping["FilterCriteria"]["Filters"]
    pattern = json.loads(one["Pattern"])
    assert pattern["eventName"] == ["INSERT"]
    ((attribute, types),) = pattern["dynamodb"]["NewImage"].items()
    assert types == {"S": [{"exists": True}]}
    first = make_usage(resources.clock.time())
    rows = write_ledger_rows(resources, first, make_turn_outcome(first, billable=False))
    before = set(stored(resources))
    count_ledger_rows(resources, rows)
    last_used.record_use(resources, TENANT, "key-1")
    user_labels.store_user_label(
        resources, Caller(tenant=TENANT, user="ada", capabilities=frozenset(), label="Ada Lovelace")
    )
    rebuild_rollups(resources, TENANT)
    written = stored(resources)
    assert len(before) == 2
    assert {"credentials", "labels", "rollup", "chat", "counted"} <= {
        part for pk, _ in written for part in pk.split("#")
    }
    assert all(attribute in written[key] for key in before)
    assert [key for key in set(written) - before if attribute in written[key]] == []


def stored(resources: Resources) -> dict[tuple[str, str], Any]:
    items = resources.tables._client.scan(TableName=resources.settings.usage_table)["Items"]
    return {(item["pk"]["S"], item["sk"]["S"]): item for item in items}


def test_an_alarm_watches_a_metric_that_is_emitted(deployed: Template, alarms: dict[str, Template]) -> None:
    for name, alarm in alarms.items():
        for metric in read_metrics(alarm):
            assert metric.namespace not in OUR_OWN or metric.name in ours(deployed), name
        assert alarm["AlarmDescription"].endswith("."), name
        assert len(alarm["AlarmDescription"]) <= 1024, name
    silence = {name for name, alarm in alarms.items() if alarm["TreatMissingData"] != "notBreaching"}
    assert silence == {"SilentSweepAlarm"}, "of all others, nothing happened"


@pytest.fixture
def output(stage: Stage, capfd: pytest.CaptureFixture[str]) -> str:
    """The output of functions for turns that end in each of three ways, and for their ledger rows."""
    catalogue.store_catalogue(
        stage.resources, PriceCatalogue(refreshed_at=int(stage.resources.clock.time()), priced_models=PRICES)
    )
    for ends in ("done", "cancelled", "error"):
        stage.start_turn()
        if ends == "cancelled":
            stage.cancel_turn()
            continue
        stage.script_replies("Hello." if ends == "done" else [make_provider_error(retryable=False)])
        stage.run_workflow()
    rows = list(ledger_store.read_ledger_rows(stage.resources, stage.caller.tenant, "2026-01", "2030-01"))
    count_stream_records(stage.resources, [LedgerStreamRecord(str(number), row) for number, row in enumerate(rows)])
    refresh_catalogue(stage.resources)
    return capfd.readouterr().out


def test_alarms_and_dashboard_use_the_dimensions_that_functions_emit(
    output: str, deployed: Template, alarms: dict[str, Template]
) -> None:
    """A metric with other dimensions is another metric, which is never emitted."""
    written = set(emitted(output))
    metrics = [metric for alarm in alarms.values() for metric in read_metrics(alarm) if metric.namespace in OUR_OWN]
    looked_at = [(metric.name, metric.dimensions) for metric in metrics] + shown(deployed)
    assert {metric for metric, _ in written} == set(METRIC_UNITS)
    assert {pair for pair in looked_at if pair[0] in METRIC_UNITS} <= written
    assert {pair for pair in looked_at if pair[0] not in METRIC_UNITS} == {
        ("StuckTurns", frozenset()),
        ("WaitingWebhooks", frozenset()),
        ("SecurityEvents", frozenset()),
        ("UnreadableRows", frozenset()),
        ("ProviderFailures", frozenset()),
        ("HostFailures", frozenset()),
    }


def emitted(output: str) -> Iterator[tuple[str, frozenset[tuple[str, str]]]]:
    """Yield each metric of the EMF records, with its dimensions."""
    for line in output.splitlines():
        log_line = json.loads(line) if '"_aws"' in line else {"_aws": {"CloudWatchMetrics": []}}
        for group in log_line["_aws"]["CloudWatchMetrics"]:
            for names, metric in itertools.product(group["Dimensions"], group["Metrics"]):
                yield metric["Name"], frozenset((name, log_line[name]) for name in names)


def shown(deployed: Template) -> list[tuple[str, frozenset[tuple[str, str]]]]:
    """Return our own metrics on the dashboard. `...` repeats the beginning of the metric before."""
    found, (board,) = [], resources_of_type(deployed, "AWS::CloudWatch::Dashboard").values()
    for widget in json.loads(board["DashboardBody"]["Fn::Sub"])["widgets"]:
        before: list[str] = []
        for metric in widget["properties"]["metrics"]:
            words = [word for word in metric if isinstance(word, str)]
            if words[0] == "...":
                words = [*before[: len(before) - len(words) + 1], *words[1:]]
            before = words
            if words[0] in OUR_OWN:
                found.append((words[1], frozenset(zip(words[2::2], words[3::2], strict=True))))
    return found


WATCHED_IN_FUNCTIONS = ("Errors", "Throttles")
WATCHED_IN_TABLES = ("ReadThrottleEvents", "WriteThrottleEvents")


@pytest.mark.parametrize("metric", WATCHED_IN_FUNCTIONS)
def test_an_alarm_watches_errors_and_throttles_of_every_function(
    source: Template, alarms: dict[str, Template], metric: str
) -> None:
    watched = {dict(one.dimensions).get("FunctionName") for one in list_metrics(alarms) if one.name == metric}
    assert watched == set(resources_of_type(source, "AWS::Serverless::Function"))


@pytest.mark.parametrize("metric", WATCHED_IN_TABLES)
def test_an_alarm_watches_throttles_of_every_table_and_index(
    deployed: Template, alarms: dict[str, Template], metric: str
) -> None:
    tables = resources_of_type(deployed, "AWS::DynamoDB::Table")
    expected = {frozenset({("TableName", name)}) for name in tables}
    for name, table in tables.items():
        for index in table.get("GlobalSecondaryIndexes", []):
            expected.add(frozenset({("TableName", name), ("GlobalSecondaryIndexName", index["IndexName"])}))
    assert {one.dimensions for one in list_metrics(alarms) if one.name == metric} == expected


def test_an_alarm_has_at_most_ten_metrics_as_cloudwatch_allows(alarms: dict[str, Template]) -> None:
    assert max(len(read_metrics(alarm)) for alarm in alarms.values()) <= 10


def test_there_are_alarms_for_the_api_executions_turns_providers_hosts_concurrency_lag_prices_and_cost(
    alarms: dict[str, Template],
) -> None:
    metrics = {metric.name for metric in list_metrics(alarms)}
    assert metrics >= {"5XXError", "ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted", "TurnsEnded"}
    assert metrics >= {"ProviderFailures", "HostFailures", "StuckTurns", "UnreadableRows", "CatalogueAgeHours"}
    assert metrics >= {"ExecutionThrottled", "ThrottledEvents", "ClaimedAccountConcurrency", "IteratorAge"}
    assert metrics >= {"ApproximateNumberOfMessagesVisible", "CostUsd"}
    assert alarms["CostPerHourAlarm"]["Period"] == 3600


def list_metrics(alarms: dict[str, Template]) -> list[WatchedMetric]:
    return [metric for alarm in alarms.values() for metric in read_metrics(alarm)]


def test_every_dead_letter_queue_has_an_alarm(deployed: Template, alarms: dict[str, Template]) -> None:
    watched = {value for one in list_metrics(alarms) for name, value in one.dimensions if name == "QueueName"}
    queues = resources_of_type(deployed, "AWS::SQS::Queue")
    assert watched == {name for name, queue in queues.items() if "RedrivePolicy" not in queue}


def test_alarms_are_sent_to_the_topic_of_the_deployment_if_there_is_one(
    source: Template, alarms: dict[str, Template]
) -> None:
    assert source["Parameters"]["AlarmTopicArn"]["Default"] == ""
    for alarm in alarms.values():
        assert alarm["AlarmActions"] == {
            "Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]
        }


def test_the_dashboard_shows_metrics_that_are_emitted(deployed: Template) -> None:
    (board,) = resources_of_type(deployed, "AWS::CloudWatch::Dashboard").values()
    text = board["DashboardBody"]["Fn::Sub"]
    named = {name.partition(".")[0] for name in re.findall(r"\$\{([^}]+)\}", text)} - {"AWS::Region"}
    assert named <= set(deployed["Resources"])
    for widget in json.loads(text)["widgets"]:
        for metric in widget["properties"]["metrics"]:
            assert metric[0] not in OUR_OWN or metric[1] in ours(deployed), widget["properties"]["title"]


def test_a_saved_query_reads_records_and_fields_that_are_logged(
    output: str, deployed: Template, caplog: pytest.LogCaptureFixture
) -> None:
    lines = [vars(record) for record in caplog.get_records("setup") if hasattr(record, "event")]
    queries = resources_of_type(deployed, "AWS::Logs::QueryDefinition")
    assert len(queries) >= 5
    for name, query in queries.items():
        for event in re.findall(r'event = "([^"]+)"', query["QueryString"]):
            facts: set[str] = set().union(*(line for line in lines if line["event"] == event))
            asked = re.findall(r"\b(?:sum|latest|count_distinct)\((\w+)\)", query["QueryString"])
            assert facts >= {"event", *asked}, (name, event)


def test_the_query_of_failed_requests_finds_the_call_in_what_is_logged(
    deployed: Template, caplog: pytest.LogCaptureFixture
) -> None:
    query = deployed["Resources"]["FailedRequestsQuery"]["Properties"]["QueryString"]
    (pattern,) = set(re.findall(r'parse \w+ "([^"]+)"', query))
    expected = re.escape(pattern).replace(r"\*", "(.+?)")
    for code in ("KMSInternalException", "ThrottlingException"):
        refusal = ClientError({"Error": {"Code": code, "Message": "no"}}, "Decrypt")
        caplog.clear()
        try:
            raise refusal
        except ClientError as error:
            response_from_error(error, "r")
        (record,) = caplog.records
        assert f'"{record.message}"' in query
        text = str(vars(record)["reason"]) if record.message == "busy" else str(refusal)
        found = re.search(expected, text)
        assert found is not None
        assert found.groups() == (code, "Decrypt")
        assert record.exc_info or record.message == "busy"


def test_refusals_are_counted_in_every_function_that_refuses_anything(deployed: Template) -> None:
    filters = resources_of_type(deployed, "AWS::Logs::MetricFilter").values()
    counted = {
        found["LogGroupName"]["Ref"] for found in filters if found["FilterPattern"] == '{ $.event = "security.*" }'
    }
    functions = resources_of_type(deployed, "AWS::Lambda::Function").values()
    logs = {function["LoggingConfig"]["LogGroup"]["Ref"] for function in functions}
    assert logs - counted == {
        "HoldLogs",
        "RollupLogs",
        "ConsumeContentLogs",
        "RefreshPricesLogs",
        "PurgeLogs",
    }, "these work for no caller"
    assert all(event.startswith("security.") for event in SecurityEvent)


@pytest.mark.parametrize(
    ("name", "logs", "files"),
    [
        ("StuckTurnsFilter", "RecoverLogs", "turns/*/*.py"),
        ("WaitingWebhooksFilter", "RecoverLogs", "turns/webhooks/outbox.py"),
        ("UnreadableRowsFilter", "RollupLogs", "usage/rollups/stream_consumer.py"),
        ("UnstartedTurnsFilter", "StreamLogs", "turns/start/*.py"),
        ("ProviderFailuresFilter", "RoundLogs", "turns/round/*.py"),
        ("HostFailuresFilter", "RoundLogs", "hosts/*.py"),
    ],
)
def test_a_metric_filter_matches_records_that_are_logged(deployed: Template, name: str, logs: str, files: str) -> None:
    code = "".join(path.read_text() for path in (Path(ROOT) / "layers/fermata/fermata").glob(files))
    filters = resources_of_type(deployed, "AWS::Logs::MetricFilter")
    assert filters[name]["LogGroupName"] == {"Ref": logs}
    events = re.findall(r'event = "([^"]+)"', filters[name]["FilterPattern"])
    assert events
    assert all(f'"{event}"' in code for event in events)
