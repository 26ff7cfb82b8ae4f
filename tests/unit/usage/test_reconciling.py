"""Ledger, rollups and log lines: where they differ it is said, and what is right is left alone."""

import json
from decimal import Decimal
from time import time
from typing import Any

import boto3
import pytest
from click.testing import CliRunner, Result

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.usage.audit import audit as audited
from fermata.usage.counting import Arrived, count
from fermata.usage.ledger import Closed, Spent
from fermata.usage.reconciling import reconcile
from fermata_client.cli import main
from tests.desk import REGION, TestClock, environment
from tests.unit.usage.spending import TENANT, closed, roll_up, spent, write

Lines = list[dict[str, Any]]
GROUP = "/aws/lambda/None-rollup"
"""Of a deployment that is known by its environment, and by no name."""


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Lines:
    """What the functions log from now on."""
    told: Lines = []
    monkeypatch.setattr(signals, "tell", lambda event, **facts: told.append({"event": event, **facts}))
    return told


def arrive(desk: Desk, *told: Spent | Closed) -> None:
    """Through the ledger's stream."""
    rows = write(desk, *told)
    assert count(desk, [Arrived(str(number), row) for number, row in enumerate(rows)]) == ""


def test_books_that_agree_have_no_differences(desk: Desk, clock: TestClock, lines: Lines) -> None:
    first = spent(clock.now)
    arrive(
        desk, first, spent(clock.now, user="bob", conversation="chat-2", cache_read=7), closed(first, billable=False)
    )
    assert reconcile(desk, TENANT, None, "Europe/Berlin", lines) == []


def test_a_row_that_was_never_counted_is_named_in_every_sum_it_is_missing_from(
    desk: Desk, clock: TestClock, lines: Lines
) -> None:
    write(desk, spent(clock.now, turn="lost"))
    found = reconcile(desk, TENANT, None, None, lines)
    assert "totals: promptTokens is 100 by the ledger and 0 in the rollups." in found
    assert "byUser ada: costUsd is 0.001 by the ledger and 0 in the rollups." in found
    assert "lost round 1, attempt 1, try 1: in the ledger, and no line in the logs." in found


def test_a_row_that_somebody_took_out_of_the_ledger_is_missed(desk: Desk, clock: TestClock, lines: Lines) -> None:
    arrive(desk, spent(clock.now, turn="gone"))
    row = desk.tables._client.scan(TableName="usage", FilterExpression="attribute_exists(gsk)")["Items"][0]
    desk.tables._client.delete_item(TableName="usage", Key={"pk": row["pk"], "sk": row["sk"]})
    found = reconcile(desk, TENANT, None, None, lines)
    assert "gone round 1, attempt 1, try 1: a line in the logs, and not in the ledger." in found
    assert "byDay 2027-01-15: chatCount is 0 by the ledger and 1 in the rollups." in found


def test_a_line_that_says_something_else_than_its_row_is_named(desk: Desk, clock: TestClock, lines: Lines) -> None:
    arrive(desk, spent(clock.now, turn="odd", cost=Decimal("0.5")))
    lines[0]["cost"] = "0.4"
    assert reconcile(desk, TENANT, None, None, lines) == [
        "odd round 1, attempt 1, try 1: cost is 0.5 in the ledger and 0.4 in the logs."
    ]


def test_lines_of_other_tenants_and_of_earlier_times_are_left_out(desk: Desk, clock: TestClock, lines: Lines) -> None:
    arrive(desk, spent(clock.now - 7200, turn="early"))
    arrive(desk, spent(clock.now, tenant="grocer"))
    arrive(desk, spent(clock.now))
    since = desk.clock.instant(-3600)
    assert reconcile(desk, TENANT, since, None, lines) == []


def test_a_line_for_a_row_has_its_keys_and_exact_cost_and_nothing_that_was_said(
    desk: Desk, clock: TestClock, lines: Lines
) -> None:
    arrive(desk, spent(clock.now, turn="turn", cost=Decimal("0.0000001")))
    (line,) = lines
    assert (line["event"], line["tenant"], line["user"]) == ("usage", TENANT, "ada")
    assert (line["turn"], line["round"], line["cost"], line["cost_usd"]) == ("turn", 1, "0.0000001", 1e-07)


def test_what_comes_again_is_not_told_again(desk: Desk, clock: TestClock, lines: Lines) -> None:
    (row,) = write(desk, spent(clock.now))
    for _ in range(3):
        count(desk, [Arrived("1", row)])
    assert len(lines) == 1


@pytest.fixture
def logs(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Any:
    """CloudWatch Logs, and the environment an operator has."""
    for name, value in environment(desk).items():
        monkeypatch.setenv(name, value)
    client = boto3.client("logs", region_name=REGION)
    client.create_log_group(logGroupName=GROUP)
    client.create_log_stream(logGroupName=GROUP, logStreamName="one")
    return client


def command(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", "--tenant", TENANT, *arguments])


def test_the_command_says_that_the_books_agree(desk: Desk, lines: Lines, logs: Any) -> None:
    arrive(desk, spent(time() - 60))
    event = {"timestamp": int(time() * 1000), "message": json.dumps(lines[0])}
    logs.put_log_events(logGroupName=GROUP, logStreamName="one", logEvents=[event])
    done = command("--reconcile")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "agree since" in done.stdout


def test_the_command_names_what_differs_and_fails(desk: Desk, lines: Lines, logs: Any) -> None:
    arrive(desk, spent(time() - 60))
    done = command("--reconcile")
    assert done.exit_code == 1
    assert "no line in the logs" in done.stdout
    assert "differ in 1 places" in done.stderr


def test_the_command_makes_the_rollups_anew(desk: Desk, logs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fermata.usage.rebuilding.INDEX_SECONDS", 0)
    rows = write(desk, spent(time() - 60), spent(time() - 5 * 86_400))
    roll_up(desk, rows[:1])
    assert "from 2 rows" in command("--rebuild").stdout
    assert audited(desk, TENANT, "2026-01-01")["totals"]["promptTokens"] == 200
