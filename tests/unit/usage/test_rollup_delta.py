"""Posting, without any table: in any order the same, and distinct conversations by addition."""

import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb import Item
from fermata.usage.audit import query_parameters
from fermata.usage.audit.audit_from_ledger import audit_ledger_rows
from fermata.usage.audit.audit_from_rollups import AuditSums
from fermata.usage.audit.audit_response import to_audit_response
from fermata.usage.audit.local_days import LocalDays
from fermata.usage.ledger import ledger_store
from fermata.usage.ledger.ledger_parsing import parse_request_row, parse_turn_end_row
from fermata.usage.quarter_hours import QUARTER_SECONDS, quarter_from_instant
from fermata.usage.rollups.conversation_activity import (
    ACTIVITY_RETENTION_QUARTERS,
    ActivityForgotten,
    ConversationActivity,
)
from fermata.usage.rollups.period_rollup import PeriodRollup
from fermata.usage.rollups.rollup_delta import RollupDelta
from tests.unit.usage.ledger_factories import make_usage
from tests.unit.usage.ledger_strategies import DAYS, ledgers


def to_ledger_items(told: Iterable[Any]) -> list[Item]:
    """As the ledger holds them, without a table."""
    rows = []
    for one in told:
        item = one.model_dump(exclude_none=True, exclude={"tokens"})
        if hasattr(one, "tokens"):
            tokens = one.tokens
            item |= {"sk": "r1", "prompt": tokens.prompt, "completion": tokens.completion}
            item |= {"cacheRead": tokens.cache_read, "cacheCreation": tokens.cache_creation}
        else:
            item["sk"] = ledger_store.TURN_END_SORT_KEY
        rows.append(item)
    return rows


def post_rows(rows: list[Item], order: Iterable[Item] = ()) -> RollupDelta:
    books = RollupDelta()
    for row in order or rows:
        same = [
            other for other in rows if other["turn"] == row["turn"] and other["sk"] != ledger_store.TURN_END_SORT_KEY
        ]
        ends = (
            parse_turn_end_row(row, [] if row["billable"] else same)
            if row["sk"] == ledger_store.TURN_END_SORT_KEY
            else [parse_request_row(row)]
        )
        for record in ends:
            books.add_record(record)
    return books


def pack_rollups(books: RollupDelta) -> dict[Any, bytes]:
    return {place: sheet.pack() for place, sheet in books.rollups.items()}


@settings(max_examples=150)
@given(whole=ledgers(), seed=st.integers())
def test_the_order_of_rows_makes_no_difference(whole: Any, seed: int) -> None:
    rows = to_ledger_items(whole[0])
    mixed = random.Random(seed).sample(rows, len(rows))
    assert pack_rollups(post_rows(rows, mixed)) == pack_rollups(post_rows(rows))


@settings(max_examples=150)
@given(whole=ledgers(), quarter=st.integers(0, DAYS * 96))
def test_any_quarter_on_any_days_of_any_zone_are_as_the_rows_say(whole: Any, quarter: int) -> None:
    rows, tz = to_ledger_items(whole[0]), whole[2]
    first = quarter_from_instant(min(row["at"] for row in rows)) + quarter
    found, books = AuditSums(first, LocalDays(query_parameters.parse_time_zone(tz))), post_rows(rows)
    for (level, period), sheet in sorted(books.rollups.items()):
        unpacked = PeriodRollup.unpack(sheet.pack())
        begins = quarter_from_instant(f"{period}T00:00Z" if level == "day" else f"{period}Z")
        if level == "day" and begins + 96 > first:
            found.add_day(period, unpacked)
        elif level == "quarter" and first % 96 and first <= begins < first - first % 96 + 96:
            found.add_rollup(unpacked)
    since = iso_from_epoch(first * QUARTER_SECONDS)
    expected = audit_ledger_rows(rows, since, LocalDays(query_parameters.parse_time_zone(tz)), with_billable=True)
    shown = to_audit_response(since, found.users, found.scopes, found.models, found.days, {}, with_billable=True)
    assert shown == expected


def test_a_conversation_that_was_active_all_day_has_one_chat_in_each_day_of_every_zone() -> None:
    begin = quarter_from_instant("2026-06-01T00:00Z")
    rows = to_ledger_items(make_usage((begin + number) * QUARTER_SECONDS) for number in range(3 * 96))
    (_, sheet), *_ = sorted((place, sheet) for place, sheet in post_rows(rows).rollups.items() if place[0] == "day")
    assert sum(count for gaps in sheet.gaps.values() for count in gaps.values()) == 96
    assert sheet.gaps[0] == {0: 1}
    assert sheet.gaps[95] == {1: 1}


def test_what_is_long_past_is_forgotten_and_a_row_from_then_is_refused() -> None:
    chat = ConversationActivity(active_quarters=[1_000_000, 1_000_000 + ACTIVITY_RETENTION_QUARTERS + 500])
    later = ConversationActivity.unpack({"data": chat.pack(), "version": 1})
    assert later.active_quarters == [1_000_000 + ACTIVITY_RETENTION_QUARTERS + 500]
    with pytest.raises(ActivityForgotten):
        later.find_neighbours(1_000_001)
    assert later.find_neighbours(1_000_000 + ACTIVITY_RETENTION_QUARTERS + 400) == (
        None,
        1_000_000 + ACTIVITY_RETENTION_QUARTERS + 500,
    )
