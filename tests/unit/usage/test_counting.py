"""What the stream brings: good rows are counted, a broken one is named, trouble that passes is raised."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.aws.desk import Desk, open_desk
from fermata.aws.dynamo import Item, Put, Write, pack
from fermata.usage import rollups
from fermata.usage.audit import audit
from fermata.usage.chats import TooLate
from fermata.usage.counting import Arrived, count
from fermata.usage.rollups import TooBusy
from functions.rollup import app
from tests.desk import TestClock, environment
from tests.unit.usage.spending import TENANT, closed, roll_up, spent, write


def arrived(rows: list[Item]) -> list[Arrived]:
    return [Arrived(str(number), row) for number, row in enumerate(rows)]


def prompts(desk: Desk, tenant: str = TENANT) -> int:
    return int(audit(desk, tenant)["totals"]["promptTokens"])


@pytest.mark.parametrize("broken", [{"cost": "abc"}, {"tenant": 7}, {"turn": None}, {"price": "much"}])
def test_a_row_that_cannot_be_read_is_told_of_and_nobody_waits_for_it(
    desk: Desk, clock: TestClock, caplog: pytest.LogCaptureFixture, broken: dict[str, Any]
) -> None:
    rows = write(desk, *[spent(clock.now) for _ in range(5)])
    rows[2] |= broken
    assert count(desk, arrived(rows)) == ""
    assert prompts(desk) == 400
    (line,) = [vars(record) for record in caplog.records if record.levelname == "WARNING"]
    assert line["event"] == "rollup.unreadable"
    assert line["why"].startswith(next(iter(broken)))


def test_beside_a_request_that_cannot_be_read_the_others_of_a_turn_at_our_expense_are_taken_back(
    desk: Desk, clock: TestClock
) -> None:
    first, second = spent(clock.now, turn="sad"), spent(clock.now, turn="sad", round=2)
    rows = write(desk, first, second, closed(first, billable=False))
    rows[1] |= {"cost": "abc"}
    desk.tables.write(Put("usage", rows[1]))
    assert count(desk, arrived(rows)) == ""
    totals = audit(desk, TENANT, with_billable=True)["totals"]
    assert (totals["promptTokens"], totals["billableCostUsd"]) == (100, 0)


def test_of_several_rows_that_cannot_be_counted_the_first_is_named_so_that_those_behind_it_come_again(
    desk: Desk, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = write(desk, *[spent(clock.now, tenant=tenant) for tenant in ("b", "a", "b", "a")])
    too_late = {rows[1]["turn"], rows[2]["turn"]}
    real = rollups.count

    def refuses(desk: Desk, tenant: str, records: Any, *more: Any) -> Any:
        if any(record.key.split("#")[0] in too_late for record in records):
            raise TooLate
        return real(desk, tenant, records, *more)

    monkeypatch.setattr(rollups, "count", refuses)
    assert count(desk, arrived(rows)) == "1"
    assert (prompts(desk, "a"), prompts(desk, "b")) == (100, 100)


@pytest.mark.parametrize(
    "trouble",
    [TooBusy("busy"), ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "TransactWriteItems")],
)
def test_trouble_that_passes_brings_everything_again_and_nothing_twice(
    desk: Desk, clock: TestClock, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    rows = write(desk, spent(clock.now, tenant="a"), spent(clock.now, tenant="b"))
    real = rollups.count

    def fails_for_b(desk: Desk, tenant: str, *more: Any) -> Any:
        if tenant == "b":
            raise trouble
        return real(desk, tenant, *more)

    monkeypatch.setattr(rollups, "count", fails_for_b)
    with pytest.raises(type(trouble)):
        count(desk, arrived(rows))
    monkeypatch.setattr(rollups, "count", real)
    assert count(desk, arrived(rows)) == ""
    assert (prompts(desk, "a"), prompts(desk, "b")) == (100, 100)


THROTTLED = ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "TransactWriteItems")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The turns that were told of."""
    return [vars(record)["turn"] for record in caplog.records if getattr(record, "event", "") == "usage"]


def test_when_a_batch_breaks_off_in_the_middle_each_of_its_rows_is_told_once_all_the_same(
    desk: Desk, clock: TestClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = write(desk, *[spent(clock.now, turn=f"turn-{number}") for number in range(60)])
    write_all, transactions = desk.tables.write, itertools.count(1)

    def throttled(*writes: Write) -> None:
        if next(transactions) == 2:
            raise THROTTLED
        write_all(*writes)

    monkeypatch.setattr(desk.tables, "write", throttled)
    with pytest.raises(ClientError):
        count(desk, arrived(rows))
    assert 0 < len(lines(caplog)) < 60
    assert count(desk, arrived(rows)) == ""
    assert sorted(lines(caplog)) == sorted(row["turn"] for row in rows)
    assert prompts(desk) == 6000


def test_beside_a_row_that_comes_too_late_all_others_are_told_once(
    desk: Desk, clock: TestClock, caplog: pytest.LogCaptureFixture
) -> None:
    long_ago = clock.now - 100 * 86_400
    roll_up(desk, write(desk, spent(long_ago), spent(clock.now)))
    rows = write(desk, *[spent(clock.now, turn=f"turn-{number}", conversation="other") for number in range(40)])
    late = write(desk, spent(long_ago + 86_400, turn="late"))
    assert count(desk, arrived([*rows, *late])) == "40"
    assert sorted(lines(caplog)) == sorted(row["turn"] for row in rows)


@pytest.fixture
def deployed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    for name, value in environment(desk).items():
        monkeypatch.setenv(name, value)
    open_desk.cache_clear()
    yield desk
    open_desk.cache_clear()


def event(rows: list[Item]) -> dict[str, Any]:
    """As Lambda hands over a stream's records."""
    images = json.loads(json.dumps([pack(row) for row in rows]))
    return {"Records": [{"dynamodb": {"SequenceNumber": str(n), "NewImage": it}} for n, it in enumerate(images)]}


def test_the_door_counts_requests_and_ends_and_passes_over_what_it_cannot_read(deployed: Desk) -> None:
    now = deployed.clock.time()
    first = spent(now, cost="0.5")
    rows = write(deployed, first, closed(first, billable=False), spent(now), spent(now))
    del rows[3]["cost"]
    assert app.handler(event(rows), None) == {"batchItemFailures": []}
    long_ago = now - 100 * 86_400
    roll_up(deployed, write(deployed, spent(long_ago, cost=0)))
    late = write(deployed, spent(now, cost=0), spent(long_ago + 86_400))
    assert app.handler(event(late), None) == {"batchItemFailures": [{"itemIdentifier": "1"}]}
    totals = audit(deployed, TENANT, "2026-01-01", with_billable=True)["totals"]
    assert (totals["costUsd"], totals["billableCostUsd"]) == (0.501, 0.001)
