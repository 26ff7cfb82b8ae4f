"""Rollups: each row of the ledger once, whatever the stream does."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fermata.aws.clock import Clock
from fermata.aws.desk import Desk
from fermata.usage import rollups, window
from fermata.usage.audit import audit
from fermata.usage.books import Level
from fermata.usage.rebuilding import rebuild
from fermata.usage.reckoning import reckon
from fermata.usage.rollups import editions, load_sheets
from fermata.usage.sheets import Sheet
from fermata.usage.window import LocalDays
from tests.desk import TestClock
from tests.unit.laid_out import empty_tables
from tests.unit.usage.ledgers import arrivals, ledgers
from tests.unit.usage.spending import TENANT, closed, roll_up, spend, spent, write

FEW = settings(
    max_examples=15,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
"""The mock is slow; test_books.py asks the same of thousands of rows."""


@FEW
@given(whole=ledgers(most=12), data=st.data())
def test_an_audit_agrees_with_the_ledger_in_any_zone_whatever_order_the_stream_brings(
    desk: Desk, whole: Any, data: st.DataObject
) -> None:
    empty_tables()
    told, since, tz = whole
    rows = write(desk, *told)
    for batch in arrivals(data.draw, rows):
        roll_up(desk, batch)
    expected = reckon(rows, since, LocalDays(window.zone(tz)), with_billable=True)
    assert audit(desk, TENANT, since, tz, with_billable=True) == expected


@FEW
@given(whole=ledgers(most=12), data=st.data())
def test_a_rebuild_comes_to_the_same_sheets_as_the_stream_did(
    desk: Desk, clock: TestClock, whole: Any, data: st.DataObject
) -> None:
    empty_tables()
    clock.now = datetime.fromisoformat("2026-11-05T00:00Z").timestamp()
    rows = write(desk, *whole[0])
    for batch in arrivals(data.draw, rows):
        roll_up(desk, batch)
    before = sheets(desk)
    assert rebuild(desk, TENANT) == len(rows)
    assert editions(desk, TENANT)[0].number == 2
    assert sheets(desk) == before


def sheets(desk: Desk) -> dict[Any, bytes]:
    """The current edition, each period's segments added up."""
    (edition,) = editions(desk, TENANT)
    whole: dict[Any, Sheet] = defaultdict(Sheet)
    levels: tuple[Level, ...] = ("day", "quarter")
    for level in levels:
        for period, sheet in load_sheets(desk, edition, level, "2", "3"):
            whole[level, period].add(sheet)
    return {place: sheet.pack() for place, sheet in whole.items()}


def test_rows_that_come_while_a_rebuild_runs_are_in_both_editions(desk: Desk, clock: TestClock) -> None:
    spend(desk, spent(clock.now - 5 * 86400), spent(clock.now - 3600))
    late = spent(clock.now - 60, conversation="chat-2")

    class Busy(TestClock):
        def sleep(self, seconds: float) -> None:
            """The rebuild waits for the index; meanwhile a turn goes on and the stream counts it."""
            spend(busy, late)
            assert audit(busy, TENANT)["totals"]["chatCount"] == 2

    busy = Desk(desk.settings, Busy(clock.now))
    rebuild(busy, TENANT)
    assert audit(desk, TENANT)["totals"]["promptTokens"] == 300
    assert audit(desk, TENANT)["totals"]["chatCount"] == 2


def test_a_rebuild_that_broke_off_is_simply_made_again(desk: Desk, clock: TestClock) -> None:
    spend(desk, spent(clock.now - 5 * 86400))

    class Dying(TestClock):
        def sleep(self, seconds: float) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(Desk(desk.settings, Dying(clock.now)), TENANT)
    spend(desk, spent(clock.now))
    assert rebuild(desk, TENANT) == 2
    assert audit(desk, TENANT)["totals"]["promptTokens"] == 200


@pytest.mark.usefixtures("atomic_calls")
def test_many_functions_counting_for_one_tenant_at_once_lose_nothing(desk: Desk, clock: TestClock) -> None:
    told = [spent(clock.now, conversation=f"chat-{number % 7}") for number in range(40)]
    rows = write(desk, *told)
    shards = [rows[start::4] for start in range(4)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda shard: roll_up(Desk(desk.settings, Clock()), shard), shards * 2))
    totals = audit(desk, TENANT)["totals"]
    assert (totals["promptTokens"], totals["chatCount"]) == (4000, 7)


def test_a_sheet_that_is_full_goes_on_in_the_next_segment(
    desk: Desk, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollups, "FULL", 100)
    for part in range(3):
        spend(desk, *[spent(clock.now, user=f"user-{part}-{n}", conversation=f"c{part}-{n}") for n in range(20)])
    assert len(desk.tables.query("usage", editions(desk, TENANT)[0].sheets("day"))) > 1
    assert audit(desk, TENANT)["totals"]["chatCount"] == 60


def test_costs_are_exact_however_many_small_ones_are_added(desk: Desk, clock: TestClock) -> None:
    spend(desk, *[spent(clock.now, cost=Decimal("0.0000000001")) for _ in range(30)])
    (edition,) = editions(desk, TENANT)
    ((_, sheet),) = load_sheets(desk, edition, "day", "2", "3")
    assert sheet.users["ada"].cost == Decimal("0.000000003")


def test_a_turn_that_ended_at_our_expense_is_not_billable_and_its_cost_is_still_told(
    desk: Desk, clock: TestClock
) -> None:
    """Scenario CO10."""
    good, bad = spent(clock.now, turn="good"), [spent(clock.now + n * 900, turn="bad", round=n) for n in range(3)]
    spend(desk, good, *bad, closed(good, billable=True), closed(bad[0], billable=False))
    totals = audit(desk, TENANT, with_billable=True)["totals"]
    assert (totals["costUsd"], totals["billableCostUsd"]) == (0.004, 0.001)


def test_a_turn_of_very_many_rounds_that_ended_at_our_expense_takes_all_of_it_back(
    desk: Desk, clock: TestClock
) -> None:
    rounds = [spent(clock.now + n * 900, turn="long", round=n) for n in range(60)]
    spend(desk, *rounds)
    spend(desk, closed(rounds[0], billable=False))
    totals = audit(desk, TENANT, with_billable=True)["totals"]
    assert (totals["costUsd"], totals["billableCostUsd"]) == (0.06, 0)
