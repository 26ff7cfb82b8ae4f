"""Rollups count each ledger row once, in whatever order and however often the stream delivers it."""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fermata.aws.clock import Clock
from fermata.aws.resources import Resources
from fermata.usage.audit.audit_from_ledger import audit_ledger_rows
from fermata.usage.audit.audit_from_rollups import audit_usage
from fermata.usage.audit.local_days import LocalDays
from fermata.usage.audit.query_parameters import parse_time_zone
from fermata.usage.rollups import rollup_store
from fermata.usage.rollups.period_rollup import PeriodRollup
from fermata.usage.rollups.rebuild import rebuild_rollups
from fermata.usage.rollups.rollup_store import load_rollups
from fermata.usage.rollups.rollup_version import RollupLevel, read_editions
from tests.resources import TestClock
from tests.stored_rows import clear_tables
from tests.unit.usage.ledger_factories import (
    TENANT,
    count_ledger_rows,
    make_turn_outcome,
    make_usage,
    write_and_count,
    write_ledger_rows,
)
from tests.unit.usage.ledger_strategies import LedgerCase, draw_stream_batches, ledgers

FEW_EXAMPLES = settings(
    max_examples=15,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
"""The mock is slow; test_rollup_delta.py tries the same with thousands of rows."""


@pytest.mark.exhaustive
@FEW_EXAMPLES
@given(case=ledgers(max_requests=12), data=st.data())
def test_an_audit_agrees_with_the_ledger_in_any_zone_and_for_any_order_of_the_stream(
    resources: Resources, case: LedgerCase, data: st.DataObject
) -> None:
    clear_tables()
    rows = write_ledger_rows(resources, *case.entries)
    for batch in draw_stream_batches(data.draw, rows):
        count_ledger_rows(resources, batch)
    expected = audit_ledger_rows(rows, case.since, LocalDays(parse_time_zone(case.zone)), with_billable=True)
    assert audit_usage(resources, TENANT, case.since, case.zone, with_billable=True) == expected


@pytest.mark.exhaustive
@FEW_EXAMPLES
@given(case=ledgers(max_requests=12), data=st.data())
def test_a_rebuild_computes_the_same_rollups_as_the_stream_did(
    resources: Resources, clock: TestClock, case: LedgerCase, data: st.DataObject
) -> None:
    clear_tables()
    clock.now = datetime.fromisoformat("2026-11-05T00:00Z").timestamp()
    rows = write_ledger_rows(resources, *case.entries)
    for batch in draw_stream_batches(data.draw, rows):
        count_ledger_rows(resources, batch)
    before = read_packed_rollups(resources)
    assert rebuild_rollups(resources, TENANT) == len(rows)
    assert read_editions(resources, TENANT)[0].number == 2
    assert read_packed_rollups(resources) == before


def read_packed_rollups(resources: Resources) -> dict[Any, bytes]:
    """Return the rollups of the current edition, with the segments of each period added up."""
    (edition,) = read_editions(resources, TENANT)
    rollups: dict[Any, PeriodRollup] = defaultdict(PeriodRollup)
    levels: tuple[RollupLevel, ...] = ("day", "quarter")
    for level in levels:
        for period, segment in load_rollups(resources, edition, level, "2", "3"):
            rollups[level, period].add(segment)
    return {key: rollup.pack() for key, rollup in rollups.items()}


def test_rows_that_are_counted_during_a_rebuild_are_in_both_editions(resources: Resources, clock: TestClock) -> None:
    write_and_count(resources, make_usage(clock.now - 5 * 86400), make_usage(clock.now - 3600))
    late = make_usage(clock.now - 60, conversation="chat-2")

    class BusyClock(TestClock):
        def sleep(self, seconds: float) -> None:
            """While the rebuild waits for the index, a turn goes on and the stream counts it."""
            write_and_count(busy, late)
            assert audit_usage(busy, TENANT)["totals"]["chatCount"] == 2

    busy = Resources(resources.settings, BusyClock(clock.now))
    rebuild_rollups(busy, TENANT)
    assert audit_usage(resources, TENANT)["totals"]["promptTokens"] == 300
    assert audit_usage(resources, TENANT)["totals"]["chatCount"] == 2


def test_a_rebuild_that_broke_off_can_be_repeated(resources: Resources, clock: TestClock) -> None:
    write_and_count(resources, make_usage(clock.now - 5 * 86400))

    class InterruptingClock(TestClock):
        def sleep(self, seconds: float) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild_rollups(Resources(resources.settings, InterruptingClock(clock.now)), TENANT)
    write_and_count(resources, make_usage(clock.now))
    assert rebuild_rollups(resources, TENANT) == 2
    assert audit_usage(resources, TENANT)["totals"]["promptTokens"] == 200


@pytest.mark.usefixtures("atomic_calls")
def test_functions_that_count_for_one_tenant_concurrently_lose_nothing(resources: Resources) -> None:
    now = Clock().time()
    usages = [make_usage(now, conversation=f"chat-{number % 7}") for number in range(40)]
    rows = write_ledger_rows(resources, *usages)
    shards = [rows[start::4] for start in range(4)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda shard: count_ledger_rows(Resources(resources.settings, Clock()), shard), shards * 2))
    totals = audit_usage(resources, TENANT, "2026-01-01")["totals"]
    assert (totals["promptTokens"], totals["chatCount"]) == (4000, 7)


def test_a_full_segment_is_followed_by_the_next_one(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollup_store, "FULL_SEGMENT_BYTES", 100)
    for part in range(3):
        write_and_count(
            resources, *[make_usage(clock.now, user=f"user-{part}-{n}", conversation=f"c{part}-{n}") for n in range(20)]
        )
    assert len(resources.tables.query_items("usage", read_editions(resources, TENANT)[0].period_partition("day"))) > 1
    assert audit_usage(resources, TENANT)["totals"]["chatCount"] == 60


def test_the_sum_of_many_small_costs_is_exact(resources: Resources, clock: TestClock) -> None:
    write_and_count(resources, *[make_usage(clock.now, cost=Decimal("0.0000000001")) for _ in range(30)])
    (edition,) = read_editions(resources, TENANT)
    ((_, rollup),) = load_rollups(resources, edition, "day", "2", "3")
    assert rollup.users["ada"].cost == Decimal("0.000000003")


def test_the_cost_of_an_unbillable_turn_counts_but_is_not_billable(resources: Resources, clock: TestClock) -> None:
    finished = make_usage(clock.now, turn="finished")
    failed = [make_usage(clock.now + n * 900, turn="failed", round=n) for n in range(3)]
    outcomes = [make_turn_outcome(finished, billable=True), make_turn_outcome(failed[0], billable=False)]
    write_and_count(resources, finished, *failed, *outcomes)
    totals = audit_usage(resources, TENANT, with_billable=True)["totals"]
    assert (totals["costUsd"], totals["billableCostUsd"]) == (0.004, 0.001)


def test_an_unbillable_turn_of_many_rounds_is_reversed_completely(resources: Resources, clock: TestClock) -> None:
    rounds = [make_usage(clock.now + n * 900, turn="long", round=n) for n in range(60)]
    write_and_count(resources, *rounds)
    write_and_count(resources, make_turn_outcome(rounds[0], billable=False))
    totals = audit_usage(resources, TENANT, with_billable=True)["totals"]
    assert (totals["costUsd"], totals["billableCostUsd"]) == (0.06, 0)
