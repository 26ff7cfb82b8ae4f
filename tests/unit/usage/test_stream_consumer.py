"""What the stream brings: good rows are counted, a broken one is named, trouble that passes is raised."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.aws.dynamodb import Item, Put, Write, serialize_item
from fermata.aws.resources import Resources, get_resources
from fermata.usage.audit.audit_from_rollups import audit_usage
from fermata.usage.rollups import rollup_store
from fermata.usage.rollups.conversation_activity import ActivityForgotten
from fermata.usage.rollups.rollup_store import RollupContention
from fermata.usage.rollups.stream_consumer import LedgerStreamRecord, count_stream_records
from functions.rollup import app
from tests.resources import TestClock, environment_from_resources
from tests.unit.usage.ledger_factories import (
    TENANT,
    count_ledger_rows,
    make_turn_outcome,
    make_usage,
    write_ledger_rows,
)


def to_stream_records(rows: list[Item]) -> list[LedgerStreamRecord]:
    return [LedgerStreamRecord(str(number), row) for number, row in enumerate(rows)]


def read_prompt_tokens(resources: Resources, tenant: str = TENANT) -> int:
    return int(audit_usage(resources, tenant)["totals"]["promptTokens"])


@pytest.mark.parametrize("broken", [{"cost": "abc"}, {"tenant": 7}, {"turn": None}, {"price": "much"}])
def test_a_row_that_cannot_be_read_is_told_of_and_nobody_waits_for_it(
    resources: Resources, clock: TestClock, caplog: pytest.LogCaptureFixture, broken: dict[str, Any]
) -> None:
    rows = write_ledger_rows(resources, *[make_usage(clock.now) for _ in range(5)])
    rows[2] |= broken
    assert count_stream_records(resources, to_stream_records(rows)) == ""
    assert read_prompt_tokens(resources) == 400
    (line,) = [vars(record) for record in caplog.records if record.levelname == "WARNING"]
    assert line["event"] == "rollup.unreadable"
    assert line["why"].startswith(next(iter(broken)))


def test_beside_a_request_that_cannot_be_read_the_others_of_a_turn_at_our_expense_are_taken_back(
    resources: Resources, clock: TestClock
) -> None:
    first, second = make_usage(clock.now, turn="sad"), make_usage(clock.now, turn="sad", round=2)
    rows = write_ledger_rows(resources, first, second, make_turn_outcome(first, billable=False))
    rows[1] |= {"cost": "abc"}
    resources.tables.write_items(Put("usage", rows[1]))
    assert count_stream_records(resources, to_stream_records(rows)) == ""
    totals = audit_usage(resources, TENANT, with_billable=True)["totals"]
    assert (totals["promptTokens"], totals["billableCostUsd"]) == (100, 0)


def test_of_several_rows_that_cannot_be_counted_the_first_is_named_so_that_those_behind_it_come_again(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = write_ledger_rows(resources, *[make_usage(clock.now, tenant=tenant) for tenant in ("b", "a", "b", "a")])
    too_late = {rows[1]["turn"], rows[2]["turn"]}
    real = rollup_store.count_records

    def refuses(resources: Resources, tenant: str, records: Any, *more: Any) -> Any:
        if any(record.key.split("#")[0] in too_late for record in records):
            raise ActivityForgotten
        return real(resources, tenant, records, *more)

    monkeypatch.setattr(rollup_store, "count_records", refuses)
    assert count_stream_records(resources, to_stream_records(rows)) == "1"
    assert (read_prompt_tokens(resources, "a"), read_prompt_tokens(resources, "b")) == (100, 100)


@pytest.mark.parametrize(
    "trouble",
    [
        RollupContention("busy"),
        ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "TransactWriteItems"),
    ],
)
def test_trouble_that_passes_brings_everything_again_and_nothing_twice(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    rows = write_ledger_rows(resources, make_usage(clock.now, tenant="a"), make_usage(clock.now, tenant="b"))
    real = rollup_store.count_records

    def fails_for_b(resources: Resources, tenant: str, *more: Any) -> Any:
        if tenant == "b":
            raise trouble
        return real(resources, tenant, *more)

    monkeypatch.setattr(rollup_store, "count_records", fails_for_b)
    with pytest.raises(type(trouble)):
        count_stream_records(resources, to_stream_records(rows))
    monkeypatch.setattr(rollup_store, "count_records", real)
    assert count_stream_records(resources, to_stream_records(rows)) == ""
    assert (read_prompt_tokens(resources, "a"), read_prompt_tokens(resources, "b")) == (100, 100)


THROTTLED = ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "TransactWriteItems")


def list_logged_turns(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The turns that were told of."""
    return [vars(record)["turn"] for record in caplog.records if getattr(record, "event", "") == "usage"]


def test_when_a_batch_breaks_off_in_the_middle_each_of_its_rows_is_told_once_all_the_same(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = write_ledger_rows(resources, *[make_usage(clock.now, turn=f"turn-{number}") for number in range(60)])
    write_all, transactions = resources.tables.write_items, itertools.count(1)

    def throttled(*writes: Write) -> None:
        if next(transactions) == 2:
            raise THROTTLED
        write_all(*writes)

    monkeypatch.setattr(resources.tables, "write_items", throttled)
    with pytest.raises(ClientError):
        count_stream_records(resources, to_stream_records(rows))
    assert 0 < len(list_logged_turns(caplog)) < 60
    assert count_stream_records(resources, to_stream_records(rows)) == ""
    assert sorted(list_logged_turns(caplog)) == sorted(row["turn"] for row in rows)
    assert read_prompt_tokens(resources) == 6000


def test_beside_a_row_that_comes_too_late_all_others_are_told_once(
    resources: Resources, clock: TestClock, caplog: pytest.LogCaptureFixture
) -> None:
    long_ago = clock.now - 100 * 86_400
    count_ledger_rows(resources, write_ledger_rows(resources, make_usage(long_ago), make_usage(clock.now)))
    rows = write_ledger_rows(
        resources, *[make_usage(clock.now, turn=f"turn-{number}", conversation="other") for number in range(40)]
    )
    late = write_ledger_rows(resources, make_usage(long_ago + 86_400, turn="late"))
    assert count_stream_records(resources, to_stream_records([*rows, *late])) == "40"
    assert sorted(list_logged_turns(caplog)) == sorted(row["turn"] for row in rows)


@pytest.fixture
def deployed(resources: Resources, monkeypatch: pytest.MonkeyPatch) -> Iterator[Resources]:
    for name, value in environment_from_resources(resources).items():
        monkeypatch.setenv(name, value)
    get_resources.cache_clear()
    yield resources
    get_resources.cache_clear()


def make_stream_event(rows: list[Item]) -> dict[str, Any]:
    """As Lambda hands over a stream's records."""
    images = json.loads(json.dumps([serialize_item(row) for row in rows]))
    return {"Records": [{"dynamodb": {"SequenceNumber": str(n), "NewImage": it}} for n, it in enumerate(images)]}


def test_the_door_counts_requests_and_ends_and_passes_over_what_it_cannot_read(deployed: Resources) -> None:
    now = deployed.clock.time()
    first = make_usage(now, cost="0.5")
    rows = write_ledger_rows(
        deployed, first, make_turn_outcome(first, billable=False), make_usage(now), make_usage(now)
    )
    del rows[3]["cost"]
    assert app.handler(make_stream_event(rows), None) == {"batchItemFailures": []}
    long_ago = now - 100 * 86_400
    count_ledger_rows(deployed, write_ledger_rows(deployed, make_usage(long_ago, cost=0)))
    late = write_ledger_rows(deployed, make_usage(now, cost=0), make_usage(long_ago + 86_400))
    assert app.handler(make_stream_event(late), None) == {"batchItemFailures": [{"itemIdentifier": "1"}]}
    totals = audit_usage(deployed, TENANT, "2026-01-01", with_billable=True)["totals"]
    assert (totals["costUsd"], totals["billableCostUsd"]) == (0.501, 0.001)
