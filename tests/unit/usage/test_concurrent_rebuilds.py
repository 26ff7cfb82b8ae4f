"""Rebuilds of rollups at once, with copies of their writes that land late, and with audits that read meanwhile."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict
from fermata.usage.audit.audit_from_rollups import audit_usage
from fermata.usage.budgets.budget_accounts import BudgetDate
from fermata.usage.budgets.holds import load_spending_rollups
from fermata.usage.rollups.rebuild import rebuild_rollups
from fermata.usage.rollups.rollup_version import (
    RollupEdition,
    begin_edition,
    read_edition_row,
    read_editions,
    store_edition_row,
)
from tests.faults import FaultScript
from tests.late_writes import WriteRecorder, repeat_single_writes
from tests.quick_suite_samples import sample_for_quick_suite
from tests.resources import TestClock
from tests.unit.usage.ledger_factories import TENANT, make_usage, write_and_count

CALLS_OF_A_REBUILD = 28


@pytest.fixture
def faults(resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FaultScript:
    return FaultScript(resources, tmp_path, monkeypatch)


@pytest.fixture
def other(resources: Resources, clock: TestClock) -> Resources:
    """Another process, whose calls meet no faults."""
    return Resources(resources.settings, clock)


def count_three_rows(resources: Resources, clock: TestClock) -> None:
    write_and_count(
        resources,
        make_usage(clock.now - 5 * 86_400),
        make_usage(clock.now - 5 * 86_400, conversation="chat-2"),
        make_usage(clock.now - 3600),
    )


def read_audit_counts(resources: Resources) -> tuple[int, int]:
    """Return the prompt tokens and the conversations that the audit shows."""
    totals = audit_usage(resources, TENANT)["totals"]
    return totals["promptTokens"], totals["chatCount"]


def rebuild_unless_replaced(resources: Resources) -> None:
    try:
        rebuild_rollups(resources, TENANT)
    except Conflict as error:
        assert "Another rebuild" in error.message  # noqa: PT017 (it may also succeed)


def test_the_calls_of_a_rebuild_are_as_many_as_the_tests_interrupt(
    resources: Resources, clock: TestClock, faults: FaultScript
) -> None:
    count_three_rows(resources, clock)
    before = faults.call_count
    rebuild_rollups(resources, TENANT)
    assert faults.call_count - before == CALLS_OF_A_REBUILD


@pytest.mark.parametrize("number", sample_for_quick_suite(range(1, CALLS_OF_A_REBUILD + 1), every=8))
def test_two_rebuilds_at_once_and_a_row_between_them_leave_the_audit_right(
    resources: Resources, other: Resources, clock: TestClock, faults: FaultScript, number: int
) -> None:
    count_three_rows(resources, clock)

    def rebuild_elsewhere() -> None:
        rebuild_rollups(other, TENANT)
        write_and_count(other, make_usage(clock.now - 60, conversation="chat-3"))

    faults.interrupt_at_call(number, rebuild_elsewhere)
    rebuild_unless_replaced(resources)
    assert faults.is_spent
    assert read_audit_counts(resources) == (400, 3)
    write_and_count(resources, make_usage(clock.now, conversation="chat-3"))
    assert read_audit_counts(resources) == (500, 3)


def test_a_row_that_an_audit_shows_is_in_the_edition_that_is_being_built(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an audit after the switch would show less than one before."""
    count_three_rows(resources, clock)
    begun = begin_edition(resources, TENANT)
    store_edition_row(resources, replace(begun, building=begun.last))
    built, write = RollupEdition(TENANT, begun.last), resources.tables.write_items
    seen: list[tuple[int, int]] = []

    def write_and_look(*writes: Any) -> None:
        write(*writes)
        rows_of_built = resources.tables.query_items("usage", built.period_partition("day"))
        seen.append((read_audit_counts(resources)[0], len(rows_of_built)))

    monkeypatch.setattr(resources.tables, "write_items", write_and_look)
    write_and_count(resources, make_usage(clock.now))
    assert seen[-1] == (400, 1)
    assert (400, 0) not in seen


def test_a_rebuild_that_another_one_replaces_says_so_and_leaves_nothing_behind(
    resources: Resources, other: Resources, clock: TestClock, faults: FaultScript
) -> None:
    count_three_rows(resources, clock)
    faults.interrupt("dynamodb.PutItem", lambda: begin_edition(other, TENANT), contains="building")
    with pytest.raises(Conflict, match="Another rebuild of the rollups of bakery has begun"):
        rebuild_rollups(resources, TENANT)
    replaced = RollupEdition(TENANT, 2)
    assert resources.tables.query_items("usage", replaced.period_partition("day")) == []
    assert read_audit_counts(resources) == (300, 2)


@pytest.mark.parametrize("batch_size", [1, 100])
def test_a_rebuild_whose_writes_are_repeated_because_responses_are_lost_recognizes_them(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch, batch_size: int
) -> None:
    count_three_rows(resources, clock)
    monkeypatch.setattr("fermata.usage.rollups.rebuild._WRITE_BATCH_SIZE", batch_size)
    repeat_single_writes(resources, monkeypatch)
    assert rebuild_rollups(resources, TENANT) == 3
    assert read_editions(resources, TENANT) == [RollupEdition(TENANT, 2)]
    assert read_audit_counts(resources) == (300, 2)


def test_a_switch_whose_response_is_lost_is_recognized_although_another_rebuild_has_begun(
    resources: Resources, other: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_three_rows(resources, clock)

    def begin_another() -> None:
        if read_edition_row(other, TENANT).current == 2:
            begin_edition(other, TENANT)

    repeat_single_writes(resources, monkeypatch, begin_another)
    assert rebuild_rollups(resources, TENANT) == 3
    assert read_edition_row(resources, TENANT).last == 3
    assert read_audit_counts(resources) == (300, 2)


def test_writes_of_a_rebuild_that_land_again_later_change_no_audit(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_three_rows(resources, clock)
    recorder = WriteRecorder(resources, monkeypatch)
    rebuild_rollups(resources, TENANT)
    assert len(recorder.requests) >= 3
    write_and_count(resources, make_usage(clock.now, conversation="chat-3"))

    def check_audit() -> None:
        assert read_audit_counts(resources) == (400, 3)

    recorder.land_again(check_audit)
    rebuild_rollups(resources, TENANT)
    recorder.land_again(check_audit)


def test_the_rollups_of_an_edition_do_not_fall_back_when_their_write_lands_again(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_and_count(resources, make_usage(clock.now - 5 * 86_400))
    monkeypatch.setattr("fermata.usage.rollups.rebuild._WRITE_BATCH_SIZE", 1)
    recorder = WriteRecorder(resources, monkeypatch)
    rebuild_rollups(resources, TENANT)
    write_and_count(resources, make_usage(clock.now - 5 * 86_400))

    def check_audit() -> None:
        assert read_audit_counts(resources) == (200, 1)

    recorder.land_again(check_audit)


def test_a_row_that_the_index_does_not_show_yet_is_in_the_rebuilt_rollups(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream has counted it into the old edition only, so nothing but the index tells a rebuild of it."""
    write_and_count(resources, make_usage(clock.now - 3600), make_usage(clock.now))
    hide_newest_rows(resources, clock, monkeypatch, seconds=4)
    assert rebuild_rollups(resources, TENANT) == 2
    assert read_audit_counts(resources) == (200, 1)


def hide_newest_rows(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch, *, seconds: float
) -> None:
    """Let the ledger's index be so many seconds late."""
    iter_index_range = resources.tables.iter_index_range

    def iter_late(*query: Any) -> Iterator[Item]:
        newest = iso_from_epoch(clock.now - seconds)
        return (row for row in iter_index_range(*query) if row["at"] <= newest)

    monkeypatch.setattr(resources.tables, "iter_index_range", iter_late)


def read_spent_tokens(resources: Resources) -> tuple[int, int]:
    rollups = load_spending_rollups(resources, TENANT, BudgetDate.from_epoch_seconds(resources.clock.time()))
    month, day = (sum(totals.prompt for totals in rollup.users.values()) for rollup in rollups)
    return month, day


@pytest.mark.parametrize("number", range(2, 6))
@pytest.mark.parametrize(
    ("read", "expected"), [(read_audit_counts, (300, 2)), (read_spent_tokens, (300, 100))], ids=["audit", "budget"]
)
def test_what_reads_the_rollups_while_a_rebuild_replaces_them_reads_the_new_ones(
    resources: Resources,
    other: Resources,
    clock: TestClock,
    faults: FaultScript,
    read: Callable[[Resources], tuple[int, int]],
    expected: tuple[int, int],
    number: int,
) -> None:
    count_three_rows(resources, clock)
    faults.interrupt_at_call(number, lambda: rebuild_rollups(other, TENANT))
    assert read(resources) == expected
