"""Rollup deltas without a table: independent of the order, and conversations counted by addition."""

import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.usage.audit.audit_from_ledger import audit_ledger_rows
from fermata.usage.audit.audit_from_rollups import AuditSums
from fermata.usage.audit.audit_response import to_audit_response
from fermata.usage.audit.local_days import LocalDays
from fermata.usage.audit.query_parameters import parse_time_zone
from fermata.usage.ledger.ledger_parsing import parse_request_row, parse_turn_end_row
from fermata.usage.ledger.ledger_store import TURN_END_SORT_KEY, RequestUsage, TurnOutcome
from fermata.usage.ledger.usage_increments import LedgerRecord
from fermata.usage.quarter_hours import QUARTER_SECONDS, quarter_from_instant
from fermata.usage.rollups.conversation_activity import (
    ACTIVITY_RETENTION_QUARTERS,
    ActivityForgotten,
    ConversationActivity,
)
from fermata.usage.rollups.period_rollup import PeriodRollup
from fermata.usage.rollups.rollup_delta import RollupDelta
from tests.unit.usage.ledger_factories import make_usage
from tests.unit.usage.ledger_strategies import DAYS, LedgerCase, ledgers


def to_ledger_items(entries: Iterable[RequestUsage | TurnOutcome]) -> list[Item]:
    """Return the attributes of ledger rows that are parsed, without a table."""
    return [_to_request_item(entry) if isinstance(entry, RequestUsage) else _to_end_item(entry) for entry in entries]


def _to_request_item(usage: RequestUsage) -> Item:
    tokens = usage.tokens
    counts = {"prompt": tokens.prompt, "completion": tokens.completion}
    counts |= {"cacheRead": tokens.cache_read, "cacheCreation": tokens.cache_creation}
    return {"sk": "r1", **usage.to_stored(exclude=frozenset({"tokens"})), **counts}


def _to_end_item(outcome: TurnOutcome) -> Item:
    return {"sk": TURN_END_SORT_KEY, **outcome.to_stored()}


def post_rows(rows: Sequence[Item], order: Iterable[Item] = ()) -> RollupDelta:
    """Add the records of all rows to a delta, in the given order or in that of the rows."""
    delta = RollupDelta()
    for row in order or rows:
        for record in parse_row(row, rows):
            delta.add_record(record)
    return delta


def parse_row(row: Item, rows: Iterable[Item]) -> list[LedgerRecord]:
    if row["sk"] != TURN_END_SORT_KEY:
        return [parse_request_row(row)]
    requests = [other for other in rows if other["turn"] == row["turn"] and other["sk"] != TURN_END_SORT_KEY]
    return parse_turn_end_row(row, [] if row["billable"] else requests)


def pack_rollups(delta: RollupDelta) -> dict[Any, bytes]:
    return {key: rollup.pack() for key, rollup in delta.rollups.items()}


@pytest.mark.exhaustive
@settings(max_examples=150)
@given(case=ledgers(), seed=st.integers())
def test_the_order_of_rows_makes_no_difference(case: LedgerCase, seed: int) -> None:
    rows = to_ledger_items(case.entries)
    shuffled = random.Random(seed).sample(rows, len(rows))
    assert pack_rollups(post_rows(rows, shuffled)) == pack_rollups(post_rows(rows))


@pytest.mark.exhaustive
@settings(max_examples=150)
@given(case=ledgers(), quarter=st.integers(0, DAYS * 96))
def test_an_audit_from_any_quarter_in_any_zone_agrees_with_the_rows(case: LedgerCase, quarter: int) -> None:
    rows = to_ledger_items(case.entries)
    zone = parse_time_zone(case.zone)
    first = quarter_from_instant(min(row["at"] for row in rows)) + quarter
    sums = AuditSums(first, LocalDays(zone))
    for (level, period), packed in sorted(pack_rollups(post_rows(rows)).items()):
        rollup = PeriodRollup.unpack(packed)
        start = quarter_from_instant(f"{period}T00:00Z" if level == "day" else f"{period}Z")
        if level == "day" and start + 96 > first:
            sums.add_day(period, rollup)
        elif level == "quarter" and first % 96 and first <= start < first - first % 96 + 96:
            sums.add_rollup(rollup)
    since = iso_from_epoch(first * QUARTER_SECONDS)
    expected = audit_ledger_rows(rows, since, LocalDays(zone), with_billable=True)
    actual = to_audit_response(since, sums.totals, {}, with_billable=True)
    assert actual == expected


def test_a_conversation_that_is_active_all_day_counts_once_in_each_day_of_every_zone() -> None:
    begin = quarter_from_instant("2026-06-01T00:00Z")
    rows = to_ledger_items(make_usage((begin + number) * QUARTER_SECONDS) for number in range(3 * 96))
    first_day = post_rows(rows).rollups["day", "2026-06-01"]
    assert sum(count for gaps in first_day.gaps.values() for count in gaps.values()) == 96
    assert first_day.gaps[0] == {0: 1}
    assert first_day.gaps[95] == {1: 1}


def test_activity_of_long_ago_is_forgotten_and_a_row_from_then_is_refused() -> None:
    newest = 1_000_000 + ACTIVITY_RETENTION_QUARTERS + 500
    activity = ConversationActivity(active_quarters=[1_000_000, newest])
    stored = ConversationActivity.unpack({"data": activity.pack(), "version": 1})
    assert stored.active_quarters == [newest]
    with pytest.raises(ActivityForgotten):
        stored.find_neighbours(1_000_001)
    assert stored.find_neighbours(newest - 100) == (None, newest)
