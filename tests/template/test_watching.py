"""What operators see and what wakes them: the ledger's stream, alarms, the dashboard, saved queries."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fermata.aws.desk import Desk
from fermata.aws.signals import UNITS
from tests.template.stack import ROOT, Template, of_type
from tests.unit.usage.spending import closed, roll_up, spent, write

OUR_OWN = {"Fermata"}


@pytest.fixture(scope="session")
def alarms(deployed: Template) -> dict[str, Template]:
    return of_type(deployed, "AWS::CloudWatch::Alarm")


@pytest.fixture(scope="session")
def mapping(deployed: Template) -> Template:
    (found,) = of_type(deployed, "AWS::Lambda::EventSourceMapping").values()
    return found


def ours(deployed: Template) -> set[str]:
    """Metrics that somebody emits: our code, or a filter over its lines."""
    filters = of_type(deployed, "AWS::Logs::MetricFilter").values()
    return set(UNITS) | {it["MetricName"] for found in filters for it in found["MetricTransformations"]}


def test_the_rollup_hears_of_every_row_again_until_it_is_counted_or_in_the_queue(mapping: Template) -> None:
    assert mapping["EventSourceArn"] == {"Fn::GetAtt": ["UsageTable", "StreamArn"]}
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert mapping["BisectBatchOnFunctionError"] is True
    assert mapping["DestinationConfig"]["OnFailure"]["Destination"] == {"Fn::GetAtt": ["RollupDeadLetters", "Arn"]}
    assert mapping["MaximumRecordAgeInSeconds"] < 86_400, "a stream forgets after a day"


def test_the_filter_lets_rows_of_the_ledger_through_and_nothing_else(desk: Desk, mapping: Template) -> None:
    (one,) = mapping["FilterCriteria"]["Filters"]
    pattern = json.loads(one["Pattern"])
    assert pattern["eventName"] == ["INSERT"]
    ((attribute, types),) = pattern["dynamodb"]["NewImage"].items()
    assert types == {"S": [{"exists": True}]}
    first = spent(desk.clock.time())
    rows = write(desk, first, closed(first, billable=False))
    before = set(stored(desk))
    roll_up(desk, rows)
    written = stored(desk)
    assert all(attribute in written[key] for key in before)
    assert [key for key in set(written) - before if attribute in written[key]] == []


def stored(desk: Desk) -> dict[tuple[str, str], Any]:
    items = desk.tables._client.scan(TableName=desk.settings.usage_table)["Items"]
    return {(item["pk"]["S"], item["sk"]["S"]): item for item in items}


def test_an_alarm_watches_what_is_really_measured(deployed: Template, alarms: dict[str, Template]) -> None:
    for name, alarm in alarms.items():
        assert alarm["Namespace"] not in OUR_OWN or alarm["MetricName"] in ours(deployed), name
        assert alarm["TreatMissingData"] == "notBreaching", name
        assert alarm["AlarmDescription"].endswith("."), name


def test_failed_stuck_and_throttled_turns_a_late_audit_and_the_money_wake_somebody(alarms: dict[str, Template]) -> None:
    metrics = {alarm["MetricName"] for alarm in alarms.values()}
    assert metrics >= {"TurnsEnded", "StuckTurns", "ExecutionThrottled", "Throttles", "WriteThrottleEvents"}
    assert metrics >= {"IteratorAge", "ApproximateNumberOfMessagesVisible", "CostUsd"}
    assert alarms["CostPerHourAlarm"]["Period"] == 3600


def test_every_queue_of_dead_letters_is_watched(deployed: Template, alarms: dict[str, Template]) -> None:
    watched = {
        dimension["Value"]["Fn::GetAtt"][0]
        for alarm in alarms.values()
        for dimension in alarm.get("Dimensions", [])
        if dimension["Name"] == "QueueName"
    }
    assert watched == set(of_type(deployed, "AWS::SQS::Queue"))


def test_alarms_are_sent_where_the_deployment_says_or_nowhere(source: Template, alarms: dict[str, Template]) -> None:
    assert source["Parameters"]["AlarmTopicArn"]["Default"] == ""
    for alarm in alarms.values():
        assert alarm["AlarmActions"] == {
            "Fn::If": ["HasAlarmTopic", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]
        }


def test_the_dashboard_shows_what_is_really_measured(deployed: Template) -> None:
    (board,) = of_type(deployed, "AWS::CloudWatch::Dashboard").values()
    text = board["DashboardBody"]["Fn::Sub"]
    named = {name.partition(".")[0] for name in re.findall(r"\$\{([^}]+)\}", text)} - {"AWS::Region"}
    assert named <= set(deployed["Resources"])
    for widget in json.loads(text)["widgets"]:
        for metric in widget["properties"]["metrics"]:
            assert metric[0] not in OUR_OWN or metric[1] in ours(deployed), widget["properties"]["title"]


def test_a_saved_query_asks_for_lines_that_somebody_writes(deployed: Template) -> None:
    code = "".join(path.read_text() for path in (ROOT / "layers/fermata/fermata").rglob("*.py"))
    queries = of_type(deployed, "AWS::Logs::QueryDefinition")
    assert len(queries) >= 5
    for name, query in queries.items():
        for event in re.findall(r'event = "([^"]+)"', query["QueryString"]):
            assert f'"{event}"' in code, (name, event)


def test_a_filter_over_lines_looks_for_lines_that_somebody_writes(deployed: Template) -> None:
    code = (Path(ROOT) / "layers/fermata/fermata/turns/recovering.py").read_text()
    (found,) = of_type(deployed, "AWS::Logs::MetricFilter").values()
    events = re.findall(r'event = "([^"]+)"', found["FilterPattern"])
    assert events
    assert all(f'"{event}"' in code for event in events)
