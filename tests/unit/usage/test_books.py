"""Posting, without any table: in any order the same, and distinct conversations by addition."""

import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fermata.aws.clock import instant
from fermata.aws.dynamo import Item
from fermata.usage import ledger, window
from fermata.usage.audit import Found
from fermata.usage.books import Books
from fermata.usage.chats import KEPT, Chat, TooLate
from fermata.usage.quarters import SECONDS, quarter_of
from fermata.usage.reckoning import reckon
from fermata.usage.records import end, request
from fermata.usage.rows import phrased
from fermata.usage.sheets import Sheet
from fermata.usage.window import LocalDays
from tests.unit.usage.ledgers import DAYS, ledgers
from tests.unit.usage.spending import spent


def items(told: Iterable[Any]) -> list[Item]:
    """As the ledger holds them, without a table."""
    rows = []
    for one in told:
        item = one.model_dump(exclude_none=True, exclude={"tokens"})
        if hasattr(one, "tokens"):
            tokens = one.tokens
            item |= {"sk": "r1", "prompt": tokens.prompt, "completion": tokens.completion}
            item |= {"cacheRead": tokens.cache_read, "cacheCreation": tokens.cache_creation}
        else:
            item["sk"] = ledger.END
        rows.append(item)
    return rows


def posted(rows: list[Item], order: Iterable[Item] = ()) -> Books:
    books = Books()
    for row in order or rows:
        same = [other for other in rows if other["turn"] == row["turn"] and other["sk"] != ledger.END]
        ends = end(row, [] if row["billable"] else same) if row["sk"] == ledger.END else [request(row)]
        for record in ends:
            books.post(record)
    return books


def plain(books: Books) -> dict[Any, bytes]:
    return {place: sheet.pack() for place, sheet in books.sheets.items()}


@settings(max_examples=150)
@given(whole=ledgers(), seed=st.integers())
def test_the_order_of_rows_makes_no_difference(whole: Any, seed: int) -> None:
    rows = items(whole[0])
    mixed = random.Random(seed).sample(rows, len(rows))
    assert plain(posted(rows, mixed)) == plain(posted(rows))


@settings(max_examples=150)
@given(whole=ledgers(), quarter=st.integers(0, DAYS * 96))
def test_any_quarter_on_any_days_of_any_zone_are_as_the_rows_say(whole: Any, quarter: int) -> None:
    rows, tz = items(whole[0]), whole[2]
    first = quarter_of(min(row["at"] for row in rows)) + quarter
    found, books = Found(first, LocalDays(window.zone(tz))), posted(rows)
    for (level, period), sheet in sorted(books.sheets.items()):
        unpacked = Sheet.unpack(sheet.pack())
        begins = quarter_of(f"{period}T00:00Z" if level == "day" else f"{period}Z")
        if level == "day" and begins + 96 > first:
            found.take_day(period, unpacked)
        elif level == "quarter" and first % 96 and first <= begins < first - first % 96 + 96:
            found.take(unpacked)
    since = instant(first * SECONDS)
    expected = reckon(rows, since, LocalDays(window.zone(tz)), with_billable=True)
    shown = phrased(since, found.users, found.scopes, found.models, found.days, {}, with_billable=True)
    assert shown == expected


def test_a_conversation_that_was_active_all_day_has_one_chat_in_each_day_of_every_zone() -> None:
    begin = quarter_of("2026-06-01T00:00Z")
    rows = items(spent((begin + number) * SECONDS) for number in range(3 * 96))
    (_, sheet), *_ = sorted((place, sheet) for place, sheet in posted(rows).sheets.items() if place[0] == "day")
    assert sum(count for gaps in sheet.gaps.values() for count in gaps.values()) == 96
    assert sheet.gaps[0] == {0: 1}
    assert sheet.gaps[95] == {1: 1}


def test_what_is_long_past_is_forgotten_and_a_row_from_then_is_refused() -> None:
    chat = Chat(active=[1_000_000, 1_000_000 + KEPT + 500])
    later = Chat.unpack({"data": chat.pack(), "version": 1})
    assert later.active == [1_000_000 + KEPT + 500]
    with pytest.raises(TooLate):
        later.around(1_000_001)
    assert later.around(1_000_000 + KEPT + 400) == (None, 1_000_000 + KEPT + 500)
