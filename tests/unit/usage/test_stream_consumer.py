"""The consumer of the ledger's stream: it counts rows, logs malformed ones, and raises transient errors."""

import itertools
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.aws.clock import Clock
from fermata.aws.dynamodb_items_and_writes import Item, Put, Write, serialize_item
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


LONG_ID = "x" * 3_000


@pytest.mark.parametrize(
    "change",
    [
        {"cost": "abc"},
        {"tenant": 7},
        {"turn": None},
        {"price": "much"},
        {"at": "0001-01-01T00:00:00.000Z"},
        {"at": "9999-12-31T23:59:59.999Z"},
        {"at": "2026-11-28T10:00:00"},
        {"prompt": Decimal("1E+30")},
        {"cacheRead": 10**30},
        {"completion": Decimal("0.5")},
        {"cost": Decimal("1E+30")},
        {"cost": Decimal(-1)},
        {"user": LONG_ID},
        {"turn": LONG_ID},
        {"conversation": LONG_ID},
        {"turn": "ü" * 1_000},
    ],
    ids=lambda change: " ".join(f"{name} {str(value)[:20]}" for name, value in change.items()),
)
def test_a_malformed_row_is_logged_and_the_rows_behind_it_do_not_wait(
    resources: Resources, clock: TestClock, caplog: pytest.LogCaptureFixture, change: dict[str, Any]
) -> None:
    rows = write_ledger_rows(resources, *[make_usage(clock.now) for _ in range(5)])
    rows[2] |= change
    assert count_stream_records(resources, to_stream_records(rows)) == ""
    assert read_prompt_tokens(resources) == 400
    (line,) = [vars(record) for record in caplog.records if record.levelname == "WARNING"]
    assert line["event"] == "rollup.unreadable"
    assert line["why"].startswith(next(iter(change)))


def test_the_end_of_a_turn_with_an_unreadable_instant_or_id_is_logged_and_not_repeated(
    resources: Resources, clock: TestClock, caplog: pytest.LogCaptureFixture
) -> None:
    usage = make_usage(clock.now)
    rows = write_ledger_rows(resources, usage, make_turn_outcome(usage, billable=False))
    ends = [rows[1] | change for change in ({"turn": LONG_ID}, {"at": "0001-01-01T00:00:00.000Z"})]
    assert count_stream_records(resources, to_stream_records([rows[0], *ends])) == ""
    assert [vars(record)["event"] for record in caplog.records if record.levelname == "WARNING"] == [
        "rollup.unreadable"
    ] * 2
    assert read_prompt_tokens(resources) == 100


def test_a_row_from_the_future_does_not_make_its_conversation_uncountable(
    resources: Resources, clock: TestClock
) -> None:
    rows = write_ledger_rows(resources, make_usage(clock.now + 400 * 86_400), make_usage(clock.now))
    assert count_stream_records(resources, to_stream_records(rows)) == ""
    assert read_prompt_tokens(resources) == 100


def test_a_whole_number_that_is_stored_with_an_exponent_counts(resources: Resources, clock: TestClock) -> None:
    (row,) = write_ledger_rows(resources, make_usage(clock.now))
    assert count_stream_records(resources, to_stream_records([row | {"prompt": Decimal("1E+2")}])) == ""
    assert read_prompt_tokens(resources) == 100


def test_the_other_requests_of_an_unbillable_turn_are_reversed_although_one_is_malformed(
    resources: Resources, clock: TestClock
) -> None:
    first = make_usage(clock.now, turn="failed")
    second = make_usage(clock.now, turn="failed", round=2)
    rows = write_ledger_rows(resources, first, second, make_turn_outcome(first, billable=False))
    rows[1] |= {"cost": "abc"}
    resources.tables.write_items(Put("usage", rows[1]))
    assert count_stream_records(resources, to_stream_records(rows)) == ""
    totals = audit_usage(resources, TENANT, with_billable=True)["totals"]
    assert (totals["promptTokens"], totals["billableCostUsd"]) == (100, 0)


def test_the_first_row_that_cannot_be_counted_is_returned_so_that_the_stream_repeats_from_there(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = write_ledger_rows(resources, *[make_usage(clock.now, tenant=tenant) for tenant in ("b", "a", "b", "a")])
    too_old_turns = {rows[1]["turn"], rows[2]["turn"]}
    original = rollup_store.count_records

    def refuse_old(resources: Resources, tenant: str, records: Any, *others: Any) -> Any:
        if any(record.key.split("#")[0] in too_old_turns for record in records):
            raise ActivityForgotten
        return original(resources, tenant, records, *others)

    monkeypatch.setattr(rollup_store, "count_records", refuse_old)
    assert count_stream_records(resources, to_stream_records(rows)) == "1"
    assert (read_prompt_tokens(resources, "a"), read_prompt_tokens(resources, "b")) == (100, 100)


@pytest.mark.parametrize(
    "error",
    [
        RollupContention("busy"),
        ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "TransactWriteItems"),
    ],
)
def test_a_transient_error_repeats_the_batch_and_counts_nothing_twice(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    rows = write_ledger_rows(resources, make_usage(clock.now, tenant="a"), make_usage(clock.now, tenant="b"))
    original = rollup_store.count_records

    def fail_for_b(resources: Resources, tenant: str, *others: Any) -> Any:
        if tenant == "b":
            raise error
        return original(resources, tenant, *others)

    monkeypatch.setattr(rollup_store, "count_records", fail_for_b)
    with pytest.raises(type(error)):
        count_stream_records(resources, to_stream_records(rows))
    monkeypatch.setattr(rollup_store, "count_records", original)
    assert count_stream_records(resources, to_stream_records(rows)) == ""
    assert (read_prompt_tokens(resources, "a"), read_prompt_tokens(resources, "b")) == (100, 100)


THROTTLED = ClientError({"Error": {"Code": "ThrottlingException", "Message": ""}}, "TransactWriteItems")


def list_logged_turns(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the turns whose requests were logged."""
    return [vars(record)["turn"] for record in caplog.records if getattr(record, "event", "") == "usage"]


def test_each_row_of_a_batch_that_fails_in_the_middle_is_logged_once(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rows = write_ledger_rows(resources, *[make_usage(clock.now, turn=f"turn-{number}") for number in range(60)])
    original = resources.tables.write_items
    transactions = itertools.count(1)

    def throttle_second(*writes: Write) -> None:
        if next(transactions) == 2:
            raise THROTTLED
        original(*writes)

    monkeypatch.setattr(resources.tables, "write_items", throttle_second)
    with pytest.raises(ClientError):
        count_stream_records(resources, to_stream_records(rows))
    assert 0 < len(list_logged_turns(caplog)) < 60
    assert count_stream_records(resources, to_stream_records(rows)) == ""
    assert sorted(list_logged_turns(caplog)) == sorted(row["turn"] for row in rows)
    assert read_prompt_tokens(resources) == 6000


def test_all_other_rows_are_logged_once_beside_a_row_that_is_too_old(
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
    """Return the event that Lambda passes for stream records."""
    images = json.loads(json.dumps([serialize_item(row) for row in rows]))
    return {"Records": [{"dynamodb": {"SequenceNumber": str(n), "NewImage": image}} for n, image in enumerate(images)]}


def test_the_handler_counts_requests_and_turn_ends_and_skips_malformed_rows(
    deployed: Resources, clock: TestClock
) -> None:
    now = clock.now = Clock().time()  # the handler's own clock
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
