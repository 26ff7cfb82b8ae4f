"""Reconciliation of ledger, rollups and log lines: each difference is named, and nothing else."""

import json
from collections.abc import Iterator
from decimal import Decimal
from time import time
from typing import Any

import boto3
import pytest
from click.testing import CliRunner, Result

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.pricing.token_cost import Price
from fermata.usage.audit.audit_from_rollups import audit_usage
from fermata.usage.audit.reconciliation import reconcile_usage
from fermata.usage.ledger.ledger_store import RequestUsage, TurnOutcome, read_ledger_rows, read_turn_requests
from fermata.usage.ledger.log_lines import COMPARED_LINE_FIELDS, REQUEST_LINE_FIELDS
from fermata.usage.rollups.period_rollup import PeriodRollup
from fermata.usage.rollups.rebuild import rebuild_rollups
from fermata.usage.rollups.rollup_version import read_editions
from fermata.usage.rollups.stream_consumer import LedgerStreamRecord, count_stream_records
from fermata_client.cli import main
from tests.resources import REGION, TestClock, environment_from_resources
from tests.unit.usage.ledger_factories import (
    TENANT,
    count_ledger_rows,
    make_turn_outcome,
    make_usage,
    read_usage_row,
    write_ledger_rows,
)

LogLines = list[dict[str, Any]]
LOG_GROUP = "/aws/lambda/None-rollup"
"""Log group of a deployment without a stack name, which is found through its environment."""


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> LogLines:
    """Lines that functions log from now on."""
    logged: LogLines = []
    monkeypatch.setattr(observability, "log_event", lambda event, **fields: logged.append({"event": event, **fields}))
    return logged


def deliver_usages(resources: Resources, *entries: RequestUsage | TurnOutcome) -> None:
    """Write entries into the ledger, and deliver them by its stream."""
    rows = write_ledger_rows(resources, *entries)
    stream_records = [LedgerStreamRecord(str(number), row) for number, row in enumerate(rows)]
    assert count_stream_records(resources, stream_records) == ""


def test_ledger_rollups_and_lines_that_agree_have_no_differences(
    resources: Resources, clock: TestClock, lines: LogLines
) -> None:
    first = make_usage(clock.now)
    deliver_usages(
        resources,
        first,
        make_usage(clock.now, user="bob", conversation="chat-2", cache_read=7),
        make_turn_outcome(first, billable=False),
    )
    assert reconcile_usage(resources, TENANT, None, "Europe/Berlin", lines) == []


def test_a_row_that_was_never_counted_is_named_for_every_sum_that_lacks_it(
    resources: Resources, clock: TestClock, lines: LogLines
) -> None:
    write_ledger_rows(resources, make_usage(clock.now, turn="lost"))
    differences = reconcile_usage(resources, TENANT, None, None, lines)
    assert "totals: promptTokens is 100 by the ledger and 0 in the rollups." in differences
    assert "byUser ada: costUsd is 0.001 by the ledger and 0 in the rollups." in differences
    assert "lost round 1, attempt 1, try 1: in the ledger, and no line in the logs." in differences


def test_a_row_that_was_deleted_from_the_ledger_is_named(
    resources: Resources, clock: TestClock, lines: LogLines
) -> None:
    deliver_usages(resources, make_usage(clock.now, turn="gone"))
    row = resources.tables._client.scan(TableName="usage", FilterExpression="attribute_exists(gsk)")["Items"][0]
    resources.tables._client.delete_item(TableName="usage", Key={"pk": row["pk"], "sk": row["sk"]})
    differences = reconcile_usage(resources, TENANT, None, None, lines)
    assert "gone round 1, attempt 1, try 1: a line in the logs, and not in the ledger." in differences
    assert "byDay 2027-01-15: chatCount is 0 by the ledger and 1 in the rollups." in differences


@pytest.mark.parametrize(
    ("name", "wrong", "difference"),
    [
        ("cost", "0.4", "cost is 0.5 in the ledger and 0.4 in the logs."),
        ("cost_usd", 0.4, "cost_usd is 0.5 in the ledger and 0.4 in the logs."),
        ("prompt", 1, "prompt is 100 in the ledger and 1 in the logs."),
        ("completion", 1, "completion is 10 in the ledger and 1 in the logs."),
        ("cache_read", 1, "cache_read is 0 in the ledger and 1 in the logs."),
        ("cache_creation", 1, "cache_creation is 0 in the ledger and 1 in the logs."),
        ("user", "eve", "user is ada in the ledger and eve in the logs."),
        ("scope", "data", "scope is site in the ledger and data in the logs."),
        ("conversation", "c", "conversation is chat-1 in the ledger and c in the logs."),
        ("provider", "ollama", "provider is anthropic in the ledger and ollama in the logs."),
        ("model", "m", "model is model-1 in the ledger and m in the logs."),
        ("credential", "k", "credential is key-1 in the ledger and k in the logs."),
        ("priced", False, "priced is True in the ledger and False in the logs."),
        ("billable", False, "billable is True in the ledger and False in the logs."),
        ("estimated", True, "estimated is False in the ledger and True in the logs."),
        ("outcome", "failed", "outcome is ok in the ledger and failed in the logs."),
        ("at", "2030-01-01", "at is 2027-01-15T08:00:00.000Z in the ledger and 2030-01-01 in the logs."),
    ],
)
def test_a_line_that_differs_from_its_row_is_named(
    resources: Resources, clock: TestClock, lines: LogLines, name: str, wrong: Any, difference: str
) -> None:
    deliver_usages(resources, make_usage(clock.now, turn="odd", cost=Decimal("0.5")))
    lines[0][name] = wrong
    assert reconcile_usage(resources, TENANT, None, None, lines) == [f"odd round 1, attempt 1, try 1: {difference}"]


def test_every_field_of_a_line_is_compared(resources: Resources, clock: TestClock, lines: LogLines) -> None:
    deliver_usages(resources, make_usage(clock.now))
    assert set(lines[0]) - {"event", "tenant"} == {*REQUEST_LINE_FIELDS.values(), "cost", "cost_usd", "price"}
    assert set(lines[0]) - {"event", "tenant"} <= set(COMPARED_LINE_FIELDS)


PRICE = Price(input_per_mtok=Decimal("3.10"), output_per_mtok=Decimal(15), cache_write_per_mtok=Decimal("3.75"))


@pytest.mark.parametrize(
    ("name", "value", "difference"),
    [
        ("price", {"input_per_mtok": 99, "output_per_mtok": 99}, "price is {'input_per_mtok': '99'"),
        ("budgeted", True, "budgeted is True in the ledger and False in the logs."),
        ("priced", None, "priced is None in the ledger and True in the logs."),
    ],
)
def test_a_change_of_a_row_that_no_sum_shows_is_named(
    resources: Resources, clock: TestClock, lines: LogLines, name: str, value: Any, difference: str
) -> None:
    deliver_usages(resources, make_usage(clock.now, turn="odd", price=PRICE))
    lines = json.loads(json.dumps(lines))
    assert reconcile_usage(resources, TENANT, None, None, lines) == []
    (row,) = read_turn_requests(resources, TENANT, "odd")
    change_row(resources, row, {name: value})
    (found_difference,) = reconcile_usage(resources, TENANT, None, None, lines)
    assert found_difference.startswith(f"odd round 1, attempt 1, try 1: {difference}")


def test_older_lines_without_a_price_are_no_difference(resources: Resources, clock: TestClock, lines: LogLines) -> None:
    deliver_usages(resources, make_usage(clock.now, price=PRICE, has_budget=True))
    del lines[0]["price"], lines[0]["budgeted"]
    assert reconcile_usage(resources, TENANT, None, None, lines) == []


@pytest.mark.parametrize("how", ["deleted", "made billable"])
def test_a_lost_reversal_is_named_even_when_the_rollups_were_rebuilt_without_it(
    resources: Resources, clock: TestClock, lines: LogLines, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fermata.usage.rollups.rebuild.INDEX_DELAY_SECONDS", 0)
    first = make_usage(clock.now, turn="failed")
    deliver_usages(resources, first, make_turn_outcome(first, billable=False))
    assert [line["event"] for line in lines] == ["usage", "usage.taken_back"]
    assert reconcile_usage(resources, TENANT, None, None, lines) == []
    end = read_usage_row(resources, {"pk": f"t#{TENANT}#ended#failed", "sk": "end"})
    if how == "deleted":
        resources.tables._client.delete_item(TableName="usage", Key={"pk": {"S": end["pk"]}, "sk": {"S": "end"}})
    else:
        resources.tables.write_items(Put("usage", end | {"billable": True}))
    rebuild_rollups(resources, TENANT)
    assert reconcile_usage(resources, TENANT, None, None, lines) == [
        "failed, its end: reversed in the logs, and not in the ledger."
    ]


def test_a_turn_end_that_reversed_cost_has_a_line(resources: Resources, clock: TestClock, lines: LogLines) -> None:
    first = make_usage(clock.now, turn="failed")
    deliver_usages(resources, first, make_turn_outcome(first, billable=False, error_code="provider_request"))
    assert reconcile_usage(resources, TENANT, None, None, lines[:1]) == [
        "failed, its end: in the ledger, and no line in the logs."
    ]
    lines[1]["code"] = "other"
    assert reconcile_usage(resources, TENANT, None, None, lines) == [
        "failed, its end: code is provider_request in the ledger and other in the logs."
    ]


def test_a_turn_end_that_reversed_nothing_has_no_line(resources: Resources, clock: TestClock, lines: LogLines) -> None:
    first = make_usage(clock.now)
    second = make_usage(clock.now, is_billable=False)
    deliver_usages(
        resources, first, second, make_turn_outcome(first, billable=True), make_turn_outcome(second, billable=False)
    )
    assert [line["event"] for line in lines] == ["usage", "usage"]
    assert reconcile_usage(resources, TENANT, None, None, lines) == []


DEFECTS = [
    ({"cost": "abc"}, "cost is 'abc'"),
    ({"cost": None}, "it has no cost"),
    ({"prompt": Decimal("1.5")}, "prompt is '1.5'"),
    ({"prompt": True}, "prompt is 'True'"),
    ({"user": 7}, "user is '7'"),
    ({"at": "yesterday"}, "at is 'yesterday'"),
    ({"billable": "yes"}, "billable is 'yes'"),
    ({"price": "much"}, "price is 'much'"),
]


def change_row(resources: Resources, row: Any, change: dict[str, Any]) -> None:
    """Write changed attributes into a row; None removes an attribute."""
    changed = {name: value for name, value in (row | change).items() if value is not None}
    resources.tables.write_items(Put("usage", changed))


@pytest.mark.parametrize(("change", "defect"), DEFECTS, ids=[defect for _, defect in DEFECTS])
def test_a_malformed_row_is_named_and_all_others_are_compared(
    resources: Resources, clock: TestClock, lines: LogLines, change: dict[str, Any], defect: str
) -> None:
    (row,) = write_ledger_rows(resources, make_usage(clock.now, turn="junk"))
    change_row(resources, row, change)
    deliver_usages(resources, make_usage(clock.now))
    name = f"junk#{row['sk']}"
    expected = [f"{name}: in the ledger, and cannot be read: {defect}."]
    for since in (None, resources.clock.now_iso(-1)):
        assert reconcile_usage(resources, TENANT, since, None, lines) == expected


def test_a_missing_line_is_named(resources: Resources, clock: TestClock, lines: LogLines) -> None:
    deliver_usages(resources, make_usage(clock.now, turn="silent"))
    assert reconcile_usage(resources, TENANT, None, None, []) == [
        "silent round 1, attempt 1, try 1: in the ledger, and no line in the logs."
    ]


def test_a_row_with_two_lines_is_named(resources: Resources, clock: TestClock, lines: LogLines) -> None:
    """Sums over the log lines would count it twice."""
    deliver_usages(resources, make_usage(clock.now, turn="twice"))
    assert reconcile_usage(resources, TENANT, None, None, lines * 2) == [
        "twice round 1, attempt 1, try 1: 2 lines in the logs, and one row in the ledger."
    ]


def test_a_line_without_keys_is_named_and_stops_nothing(
    resources: Resources, clock: TestClock, lines: LogLines
) -> None:
    deliver_usages(resources, make_usage(clock.now))
    stray = {"event": "usage", "tenant": TENANT, "at": resources.clock.now_iso(), "cost": "much"}
    assert reconcile_usage(resources, TENANT, None, None, [*lines, stray]) == [
        "None round None, attempt None, try None: a line in the logs, and not in the ledger."
    ]


def test_a_row_that_was_counted_twice_is_named(resources: Resources, clock: TestClock, lines: LogLines) -> None:
    deliver_usages(resources, make_usage(clock.now, prompt=7))
    key = {"pk": {"S": next(pk for pk in list_partition_keys(resources) if "#counted#" in pk)}, "sk": {"S": "counted"}}
    resources.tables._client.delete_item(TableName="usage", Key=key)
    count_ledger_rows(resources, read_ledger_rows(resources, TENANT, "2027-01", "2027-02"))
    differences = reconcile_usage(resources, TENANT, None, None, lines)
    for row in ("totals", "byUser ada", "byScope site", "byModel anthropic/model-1", "byDay 2027-01-15"):
        assert f"{row}: promptTokens is 7 by the ledger and 14 in the rollups." in differences
    assert not any("chatCount" in difference for difference in differences), "a conversation counts once"


def list_partition_keys(resources: Resources) -> list[str]:
    return [item["pk"]["S"] for item in resources.tables._client.scan(TableName="usage")["Items"]]


def test_a_reversal_that_was_not_counted_is_named(resources: Resources, clock: TestClock, lines: LogLines) -> None:
    first = make_usage(clock.now, cost=Decimal("0.5"))
    deliver_usages(resources, first)
    write_ledger_rows(resources, make_turn_outcome(first, billable=False))
    differences = reconcile_usage(resources, TENANT, None, None, lines)
    assert "totals: billableCostUsd is 0.0 by the ledger and 0.5 in the rollups." in differences
    assert differences.pop() == f"{first.turn}, its end: in the ledger, and no line in the logs."
    assert all("billableCostUsd" in difference for difference in differences)


@pytest.mark.parametrize("part", ["users", "scopes", "models", "quarters", "gaps"])
def test_a_rollup_that_was_changed_is_named(resources: Resources, clock: TestClock, lines: LogLines, part: str) -> None:
    deliver_usages(resources, make_usage(clock.now))
    pk = read_editions(resources, TENANT)[0].period_partition("day")
    (item,) = resources.tables.query_items("usage", pk)
    rollup = PeriodRollup.unpack(bytes(item["data"]))
    if part == "gaps":
        rollup.gaps[40][0] += 1
    else:
        next(iter(getattr(rollup, part).values())).completion += 1
    resources.tables.write_items(Put("usage", item | {"data": rollup.pack()}))
    rows = {"users": "byUser ada", "scopes": "byScope site", "models": "byModel anthropic/model-1"}
    differences = reconcile_usage(resources, TENANT, None, None, lines)
    expected = "chatCount is 1" if part == "gaps" else "completionTokens is 10"
    expected = f"{rows.get(part, 'byDay 2027-01-15')}: {expected}"
    assert any(difference.startswith(expected) for difference in differences)


def test_lines_of_other_tenants_and_earlier_times_are_ignored(
    resources: Resources, clock: TestClock, lines: LogLines
) -> None:
    deliver_usages(resources, make_usage(clock.now - 7200, turn="early"))
    deliver_usages(resources, make_usage(clock.now, tenant="grocer"))
    deliver_usages(resources, make_usage(clock.now))
    since = resources.clock.now_iso(-3600)
    assert reconcile_usage(resources, TENANT, since, None, lines) == []


def test_a_line_has_the_keys_and_the_exact_cost_of_its_row(
    resources: Resources, clock: TestClock, lines: LogLines
) -> None:
    deliver_usages(resources, make_usage(clock.now, turn="turn", cost=Decimal("0.0000001")))
    (line,) = lines
    assert (line["event"], line["tenant"], line["user"]) == ("usage", TENANT, "ada")
    assert (line["turn"], line["round"], line["cost"], line["cost_usd"]) == ("turn", 1, "0.0000001", 1e-07)


def test_a_repeated_stream_record_is_not_logged_again(resources: Resources, clock: TestClock, lines: LogLines) -> None:
    (row,) = write_ledger_rows(resources, make_usage(clock.now))
    for _ in range(3):
        count_stream_records(resources, [LedgerStreamRecord("1", row)])
    assert len(lines) == 1


@pytest.fixture
def logs(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """CloudWatch Logs, in the environment of an operator."""
    for name, value in environment_from_resources(resources).items():
        monkeypatch.setenv(name, value)
    client = boto3.client("logs", region_name=REGION)
    client.create_log_group(logGroupName=LOG_GROUP)
    client.create_log_stream(logGroupName=LOG_GROUP, logStreamName="stream")
    yield client
    client.delete_log_group(logGroupName=LOG_GROUP)


def run_audit_command(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", "--tenant", TENANT, *arguments])


def test_the_command_says_that_there_are_no_differences(resources: Resources, lines: LogLines, logs: Any) -> None:
    deliver_usages(resources, make_usage(time() - 60))
    event = {"timestamp": int(time() * 1000), "message": json.dumps(lines[0])}
    logs.put_log_events(logGroupName=LOG_GROUP, logStreamName="stream", logEvents=[event])
    result = run_audit_command("--reconcile")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "agree since" in result.stdout


def test_the_command_names_differences_and_fails(resources: Resources, lines: LogLines, logs: Any) -> None:
    deliver_usages(resources, make_usage(time() - 60))
    result = run_audit_command("--reconcile")
    assert result.exit_code == 1
    assert "no line in the logs" in result.stdout
    assert "has 1 differences" in result.stderr


def test_the_command_names_a_malformed_row(resources: Resources, logs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fermata.usage.rollups.rebuild.INDEX_DELAY_SECONDS", 0)
    (row,) = write_ledger_rows(resources, make_usage(time() - 60, turn="junk"))
    change_row(resources, row, {"cost": "abc"})
    result = run_audit_command("--reconcile")
    assert result.exit_code == 1
    assert "junk#" in result.stdout
    assert "cost is 'abc'" in result.stdout
    result = run_audit_command("--rebuild")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        f"Skipped, because it cannot be read: junk#{row['sk']}: cost is 'abc'.",
        f"Rebuilt the rollups of {TENANT} from 0 rows of the ledger.",
    ]


def test_rows_that_only_a_rebuild_counted_are_logged_once(
    resources: Resources, lines: LogLines, logs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Except rows of the last quarter of an hour, which the stream may still deliver."""
    monkeypatch.setattr("fermata.usage.rollups.rebuild.INDEX_DELAY_SECONDS", 0)
    logged = make_usage(time() - 7200)
    failed = make_usage(time() - 7200, price=PRICE, turn="failed")
    deliver_usages(resources, logged)
    event = {"timestamp": int(time() * 1000), "message": json.dumps(lines[0])}
    logs.put_log_events(logGroupName=LOG_GROUP, logStreamName="stream", logEvents=[event])
    write_ledger_rows(
        resources,
        failed,
        make_turn_outcome(failed, billable=False),
        make_usage(time() - 3 * 86_400),
        make_usage(time() - 60, turn="new"),
    )
    assert "Wrote the missing log lines of 3 of them" in run_audit_command("--rebuild").stdout
    result = run_audit_command("--reconcile")
    assert result.stdout.splitlines() == ["new round 1, attempt 1, try 1: in the ledger, and no line in the logs."]
    assert "missing log lines" not in run_audit_command("--rebuild").stdout


def test_lines_older_than_the_retention_of_the_logs_are_not_written(
    resources: Resources, logs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fermata.usage.rollups.rebuild.INDEX_DELAY_SECONDS", 0)
    logs.put_retention_policy(logGroupName=LOG_GROUP, retentionInDays=7)
    write_ledger_rows(resources, make_usage(time() - 8 * 86_400), make_usage(time() - 6 * 86_400))
    assert "Wrote the missing log lines of 1 of them" in run_audit_command("--rebuild").stdout


def test_the_command_rebuilds_the_rollups(resources: Resources, logs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fermata.usage.rollups.rebuild.INDEX_DELAY_SECONDS", 0)
    rows = write_ledger_rows(resources, make_usage(time() - 60), make_usage(time() - 5 * 86_400))
    count_ledger_rows(resources, rows[:1])
    result = run_audit_command("--rebuild")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        f"Rebuilt the rollups of {TENANT} from 2 rows of the ledger.",
        "Wrote the missing log lines of 1 of them.",
    ]
    assert audit_usage(resources, TENANT, "2026-01-01")["totals"]["promptTokens"] == 200
