"""Ledger, rollups and log lines: where they differ it is said, and what is right is left alone."""

import json
from collections.abc import Iterator
from decimal import Decimal
from time import time
from typing import Any

import boto3
import pytest
from click.testing import CliRunner, Result

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Put
from fermata.pricing.prices import Price
from fermata.usage import ledger
from fermata.usage.audit import audit as audited
from fermata.usage.counting import Arrived, count
from fermata.usage.ledger import Closed, Spent
from fermata.usage.lines import FACTS, TOLD
from fermata.usage.rebuilding import rebuild
from fermata.usage.reconciling import reconcile
from fermata.usage.rollups import editions
from fermata.usage.sheets import Sheet
from fermata_client.cli import main
from tests.desk import REGION, TestClock, environment
from tests.unit.usage.spending import TENANT, closed, roll_up, spent, stored, write

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
def test_a_line_that_says_something_else_than_its_row_is_named(
    desk: Desk, clock: TestClock, lines: Lines, name: str, wrong: Any, difference: str
) -> None:
    arrive(desk, spent(clock.now, turn="odd", cost=Decimal("0.5")))
    lines[0][name] = wrong
    assert reconcile(desk, TENANT, None, None, lines) == [f"odd round 1, attempt 1, try 1: {difference}"]


def test_nothing_that_a_line_says_goes_unchecked(desk: Desk, clock: TestClock, lines: Lines) -> None:
    arrive(desk, spent(clock.now))
    assert set(lines[0]) - {"event", "tenant"} == {*TOLD.values(), "cost", "cost_usd", "price"}
    assert set(lines[0]) - {"event", "tenant"} <= set(FACTS)


PRICE = Price(input_per_mtok=Decimal("3.10"), output_per_mtok=Decimal(15), cache_write_per_mtok=Decimal("3.75"))


@pytest.mark.parametrize(
    ("name", "now", "difference"),
    [
        ("price", {"input_per_mtok": 99, "output_per_mtok": 99}, "price is {'input_per_mtok': '99'"),
        ("budgeted", True, "budgeted is True in the ledger and False in the logs."),
        ("priced", None, "priced is None in the ledger and True in the logs."),
    ],
)
def test_what_somebody_changed_in_a_row_beside_its_sums_is_named(
    desk: Desk, clock: TestClock, lines: Lines, name: str, now: Any, difference: str
) -> None:
    arrive(desk, spent(clock.now, turn="odd", price=PRICE))
    lines = json.loads(json.dumps(lines))
    assert reconcile(desk, TENANT, None, None, lines) == []
    (row,) = ledger.of_turn(desk, TENANT, "odd")
    changed = {key: value for key, value in (row | {name: now}).items() if value is not None}
    desk.tables.write(Put("usage", changed))
    (found,) = reconcile(desk, TENANT, None, None, lines)
    assert found.startswith(f"odd round 1, attempt 1, try 1: {difference}")


def test_lines_from_before_they_told_the_price_are_not_at_odds(desk: Desk, clock: TestClock, lines: Lines) -> None:
    arrive(desk, spent(clock.now, price=PRICE, budgeted=True))
    del lines[0]["price"], lines[0]["budgeted"]
    assert reconcile(desk, TENANT, None, None, lines) == []


@pytest.mark.parametrize("how", ["deleted", "made billable"])
def test_an_end_that_took_something_back_is_missed_even_when_the_rollups_were_made_without_it(
    desk: Desk, clock: TestClock, lines: Lines, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fermata.usage.rebuilding.INDEX_SECONDS", 0)
    first = spent(clock.now, turn="sad")
    arrive(desk, first, closed(first, billable=False))
    assert [line["event"] for line in lines] == ["usage", "usage.taken_back"]
    assert reconcile(desk, TENANT, None, None, lines) == []
    end = stored(desk, {"pk": f"t#{TENANT}#ended#sad", "sk": "end"})
    if how == "deleted":
        desk.tables._client.delete_item(TableName="usage", Key={"pk": {"S": end["pk"]}, "sk": {"S": "end"}})
    else:
        desk.tables.write(Put("usage", end | {"billable": True}))
    rebuild(desk, TENANT)
    found = reconcile(desk, TENANT, None, None, lines)
    assert found == ["sad, its end: at nobody's expense in the logs, and not in the ledger."]


def test_an_end_that_took_something_back_has_its_line(desk: Desk, clock: TestClock, lines: Lines) -> None:
    first = spent(clock.now, turn="sad")
    arrive(desk, first, closed(first, billable=False, code="provider_request"))
    assert reconcile(desk, TENANT, None, None, lines[:1]) == ["sad, its end: in the ledger, and no line in the logs."]
    lines[1]["code"] = "other"
    assert reconcile(desk, TENANT, None, None, lines) == [
        "sad, its end: code is provider_request in the ledger and other in the logs."
    ]


def test_one_that_took_nothing_back_has_none(desk: Desk, clock: TestClock, lines: Lines) -> None:
    first, second = spent(clock.now), spent(clock.now, billable=False)
    arrive(desk, first, second, closed(first, billable=True), closed(second, billable=False))
    assert [line["event"] for line in lines] == ["usage", "usage"]
    assert reconcile(desk, TENANT, None, None, lines) == []


BROKEN = [
    ({"cost": "abc"}, "cost is 'abc'"),
    ({"cost": None}, "it has no cost"),
    ({"prompt": Decimal("1.5")}, "prompt is '1.5'"),
    ({"prompt": True}, "prompt is 'True'"),
    ({"user": 7}, "user is '7'"),
    ({"at": "yesterday"}, "at is 'yesterday'"),
    ({"billable": "yes"}, "billable is 'yes'"),
    ({"price": "much"}, "price is 'much'"),
]


def break_row(desk: Desk, row: Any, change: dict[str, Any]) -> None:
    broken = {name: value for name, value in (row | change).items() if value is not None}
    desk.tables.write(Put("usage", broken))


@pytest.mark.parametrize(("change", "why"), BROKEN, ids=[why for _, why in BROKEN])
def test_a_row_that_cannot_be_read_is_named_and_all_others_are_compared(
    desk: Desk, clock: TestClock, lines: Lines, change: dict[str, Any], why: str
) -> None:
    (row,) = write(desk, spent(clock.now, turn="junk"))
    break_row(desk, row, change)
    arrive(desk, spent(clock.now))
    name = f"junk#{row['sk']}"
    expected = [f"{name}: in the ledger, and cannot be read: {why}."]
    for since in (None, desk.clock.instant(-1)):
        assert reconcile(desk, TENANT, since, None, lines) == expected


def test_a_line_that_is_missing_is_named(desk: Desk, clock: TestClock, lines: Lines) -> None:
    arrive(desk, spent(clock.now, turn="dumb"))
    assert reconcile(desk, TENANT, None, None, []) == [
        "dumb round 1, attempt 1, try 1: in the ledger, and no line in the logs."
    ]


def test_a_row_that_is_told_twice_is_named(desk: Desk, clock: TestClock, lines: Lines) -> None:
    """Sums over the logs would hold it twice."""
    arrive(desk, spent(clock.now, turn="loud"))
    assert reconcile(desk, TENANT, None, None, lines * 2) == [
        "loud round 1, attempt 1, try 1: 2 lines in the logs, and one row in the ledger."
    ]


def test_a_line_without_its_keys_is_told_of_and_stops_nothing(desk: Desk, clock: TestClock, lines: Lines) -> None:
    arrive(desk, spent(clock.now))
    stray = {"event": "usage", "tenant": TENANT, "at": desk.clock.instant(), "cost": "much"}
    assert reconcile(desk, TENANT, None, None, [*lines, stray]) == [
        "None round None, attempt None, try None: a line in the logs, and not in the ledger."
    ]


def test_a_row_that_was_counted_twice_is_named(desk: Desk, clock: TestClock, lines: Lines) -> None:
    arrive(desk, spent(clock.now, prompt=7))
    key = {"pk": {"S": next(pk for pk in stored_keys(desk) if "#counted#" in pk)}, "sk": {"S": "counted"}}
    desk.tables._client.delete_item(TableName="usage", Key=key)
    roll_up(desk, ledger.between(desk, TENANT, "2027-01", "2027-02"))
    found = reconcile(desk, TENANT, None, None, lines)
    for row in ("totals", "byUser ada", "byScope site", "byModel anthropic/model-1", "byDay 2027-01-15"):
        assert f"{row}: promptTokens is 7 by the ledger and 14 in the rollups." in found
    assert not [difference for difference in found if "chatCount" in difference], "a conversation is one however often"


def stored_keys(desk: Desk) -> list[str]:
    return [item["pk"]["S"] for item in desk.tables._client.scan(TableName="usage")["Items"]]


def test_an_end_at_our_expense_that_was_not_counted_is_named(desk: Desk, clock: TestClock, lines: Lines) -> None:
    first = spent(clock.now, cost=Decimal("0.5"))
    arrive(desk, first)
    write(desk, closed(first, billable=False))
    found = reconcile(desk, TENANT, None, None, lines)
    assert "totals: billableCostUsd is 0.0 by the ledger and 0.5 in the rollups." in found
    assert found.pop() == f"{first.turn}, its end: in the ledger, and no line in the logs."
    assert all("billableCostUsd" in difference for difference in found)


@pytest.mark.parametrize("part", ["users", "scopes", "models", "quarters", "gaps"])
def test_a_sheet_that_somebody_changed_is_named(desk: Desk, clock: TestClock, lines: Lines, part: str) -> None:
    arrive(desk, spent(clock.now))
    pk = editions(desk, TENANT)[0].sheets("day")
    (item,) = desk.tables.query("usage", pk)
    sheet = Sheet.unpack(bytes(item["data"]))
    if part == "gaps":
        sheet.gaps[40][0] += 1
    else:
        next(iter(getattr(sheet, part).values())).completion += 1
    desk.tables.write(Put("usage", item | {"data": sheet.pack()}))
    row = {"users": "byUser ada", "scopes": "byScope site", "models": "byModel anthropic/model-1"}
    differences = reconcile(desk, TENANT, None, None, lines)
    expected = "chatCount is 1" if part == "gaps" else "completionTokens is 10"
    assert any(difference.startswith(f"{row.get(part, 'byDay 2027-01-15')}: {expected}") for difference in differences)


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
def logs(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """CloudWatch Logs, and the environment an operator has."""
    for name, value in environment(desk).items():
        monkeypatch.setenv(name, value)
    client = boto3.client("logs", region_name=REGION)
    client.create_log_group(logGroupName=GROUP)
    client.create_log_stream(logGroupName=GROUP, logStreamName="one")
    yield client
    client.delete_log_group(logGroupName=GROUP)


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


def test_the_command_names_a_row_that_it_cannot_read(desk: Desk, logs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fermata.usage.rebuilding.INDEX_SECONDS", 0)
    (row,) = write(desk, spent(time() - 60, turn="junk"))
    break_row(desk, row, {"cost": "abc"})
    done = command("--reconcile")
    assert done.exit_code == 1
    assert "junk#" in done.stdout
    assert "cost is 'abc'" in done.stdout
    done = command("--rebuild")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"Passed over, because it cannot be read: junk#{row['sk']}: cost is 'abc'.",
        f"The rollups of {TENANT} are made anew, from 0 rows of the ledger.",
    ]


def test_rows_that_only_a_rebuild_counted_are_told_of_once(
    desk: Desk, lines: Lines, logs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the last quarter of an hour none: the stream may still bring them."""
    monkeypatch.setattr("fermata.usage.rebuilding.INDEX_SECONDS", 0)
    told, sad = spent(time() - 7200), spent(time() - 7200, price=PRICE, turn="sad")
    arrive(desk, told)
    event = {"timestamp": int(time() * 1000), "message": json.dumps(lines[0])}
    logs.put_log_events(logGroupName=GROUP, logStreamName="one", logEvents=[event])
    write(desk, sad, closed(sad, billable=False), spent(time() - 3 * 86_400), spent(time() - 60, turn="new"))
    assert "Nobody had told of 3 of them" in command("--rebuild").stdout
    found = command("--reconcile")
    assert found.stdout.splitlines() == ["new round 1, attempt 1, try 1: in the ledger, and no line in the logs."]
    assert "Nobody" not in command("--rebuild").stdout


def test_lines_that_the_logs_have_forgotten_are_not_written_again(
    desk: Desk, logs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fermata.usage.rebuilding.INDEX_SECONDS", 0)
    logs.put_retention_policy(logGroupName=GROUP, retentionInDays=7)
    write(desk, spent(time() - 8 * 86_400), spent(time() - 6 * 86_400))
    assert "Nobody had told of 1 of them" in command("--rebuild").stdout


def test_the_command_makes_the_rollups_anew(desk: Desk, logs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fermata.usage.rebuilding.INDEX_SECONDS", 0)
    rows = write(desk, spent(time() - 60), spent(time() - 5 * 86_400))
    roll_up(desk, rows[:1])
    done = command("--rebuild")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"The rollups of {TENANT} are made anew, from 2 rows of the ledger.",
        "Nobody had told of 1 of them: their lines are in the logs now.",
    ]
    assert audited(desk, TENANT, "2026-01-01")["totals"]["promptTokens"] == 200
