"""Budgets count days and months in UTC, and what was spent before they were set."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.resources import Resources
from fermata.domain.errors import PaymentRequired
from fermata.usage.budgets import holds
from fermata.usage.budgets.budget_limits import get_budgets
from fermata.usage.budgets.budget_status import load_budget_status
from fermata.usage.usage_writes import build_request_writes
from tests.resources import TestClock, resources_of_new_process
from tests.unit.usage.budget_steps import (
    CENT,
    make_limits,
    make_request,
    read_account,
    read_today,
    release_hold,
    set_budget,
    settle_request,
)
from tests.unit.usage.ledger_factories import TENANT, count_ledger_rows, make_usage, write_and_count
from tests.unit.usage.reserve_budget import reserve_budget


def test_a_daily_budget_renews_while_the_month_goes_on(resources: Resources, clock: TestClock) -> None:
    clock.now = datetime.fromisoformat("2026-11-10T23:00Z").timestamp()
    set_budget(resources, tenant=make_limits(daily="0.015", monthly="0.025"))
    reserve_budget(resources, make_request(1), CENT)
    settle_request(resources, 1, CENT)
    clock.advance(7200)
    reserve_budget(resources, make_request(2), CENT)
    settle_request(resources, 2, CENT)
    clock.advance(86_400)
    with pytest.raises(PaymentRequired, match="monthly"):
        reserve_budget(resources, make_request(3), CENT)


@pytest.mark.parametrize("is_opened_first", [False, True])
def test_what_is_held_in_a_month_and_spent_in_the_next_counts_in_the_next_one(
    resources: Resources, clock: TestClock, is_opened_first: bool
) -> None:
    """There its row is in the rollups too, from which the next month's account may be opened."""
    clock.now = datetime.fromisoformat("2026-11-30T23:59Z").timestamp()
    set_budget(resources, tenant=make_limits(monthly=1))
    reserve_budget(resources, make_request(1), CENT)
    clock.advance(300)
    if is_opened_first:
        reserve_budget(resources, make_request(2), CENT)
    usage = make_usage(clock.now, turn="turn-1", cost=CENT, has_budget=True)
    request_writes = build_request_writes(resources, [usage])
    resources.tables.write_items(*request_writes)
    count_ledger_rows(resources, [request_writes[0].item])
    reserve_budget(resources, make_request(3), CENT)
    assert read_account(resources, "2026-11") == (0, 0)
    assert read_account(resources, "2026-12") == (CENT, 2 * CENT if is_opened_first else CENT)


def test_a_hold_of_last_month_is_released_by_the_hold_that_replaces_it(resources: Resources, clock: TestClock) -> None:
    clock.now = datetime.fromisoformat("2026-11-30T23:59Z").timestamp()
    set_budget(resources, tenant=make_limits(monthly=1))
    reserve_budget(resources, make_request(1), CENT)
    clock.advance(300)
    reserve_budget(resources, make_request(1, attempt=2), CENT)
    assert [read_account(resources, month)[1] for month in ("2026-11", "2026-12")] == [0, CENT]


class TickingClock(TestClock):
    """A clock that moves a second whenever somebody looks at it."""

    def time(self) -> float:
        self.advance(1)
        return self.now


@pytest.mark.parametrize("seconds_before", range(1, 8))
def test_a_hold_that_is_taken_around_midnight_is_released_from_the_day_in_which_it_was_taken(
    resources: Resources, seconds_before: int
) -> None:
    set_budget(resources, tenant=make_limits(monthly=1))
    midnight = datetime.fromisoformat("2026-12-01T00:00Z").timestamp()
    ticking = replace(resources, clock=TickingClock(midnight - seconds_before))
    reserve_budget(ticking, make_request(1), CENT)
    release_hold(resources, 1)
    accounts = [
        resources.tables.get_item(resources.settings.bridges_table, f"t#{TENANT}#budget#tenant", month) or {}
        for month in ("2026-11", "2026-12")
    ]
    assert [value for item in accounts for name, value in item.items() if name.startswith("held") and value] == []


def test_a_budget_counts_what_was_spent_before_it_was_set(resources: Resources, clock: TestClock) -> None:
    clock.now = datetime.fromisoformat("2026-11-20T12:00Z").timestamp()
    write_and_count(
        resources,
        make_usage("2026-11-02T00:00:00.000Z", cost=Decimal(4)),
        make_usage("2026-10-31T00:00:00.000Z", cost=Decimal(99)),
    )
    write_and_count(resources, make_usage(clock.now - 60, user="bob", cost=Decimal(2)))
    set_budget(resources, tenant=make_limits(monthly=7), users={"bob": make_limits(daily=3)})
    assert load_budget_status(resources, TENANT)["tenant"]["thisMonth"]["leftUsd"] == 1
    with pytest.raises(PaymentRequired, match=r"has \$1\.00 left"):
        reserve_budget(resources, make_request(1, "bob"), Decimal("1.5"))
    reserve_budget(resources, make_request(1, "bob"), Decimal("0.5"))
    assert load_budget_status(resources, TENANT)["users"][0]["today"] == {"spentUsd": 2, "heldUsd": 0.5, "leftUsd": 0.5}


def spend_without_a_budget(resources: Resources, clock: TestClock, user: str, cost: str) -> None:
    clock.advance(60)
    write_and_count(resources, make_usage(clock.now, user=user, cost=Decimal(cost)))
    clock.advance(60)


def test_a_budget_that_is_set_again_counts_what_was_spent_without_it(resources: Resources, clock: TestClock) -> None:
    set_budget(resources, tenant=make_limits(monthly=10))
    reserve_budget(resources, make_request(1), CENT)
    write_and_count(resources, make_usage(clock.now, cost=Decimal(1)))
    settle_request(resources, 1, Decimal(1))
    set_budget(resources)
    spend_without_a_budget(resources, clock, "ada", "8")
    assert load_budget_status(resources, TENANT)["tenant"]["thisMonth"] == {
        "spentUsd": 9,
        "heldUsd": 0,
        "leftUsd": None,
    }
    set_budget(resources, tenant=make_limits(monthly=10))
    assert load_budget_status(resources, TENANT)["tenant"]["thisMonth"]["leftUsd"] == 1
    with pytest.raises(PaymentRequired, match=r"has \$1\.00 left"):
        reserve_budget(resources, make_request(2), Decimal("1.5"))
    reserve_budget(resources, make_request(2), Decimal("0.5"))
    assert load_budget_status(resources, TENANT)["tenant"]["thisMonth"] == {
        "spentUsd": 9,
        "heldUsd": 0.5,
        "leftUsd": 0.5,
    }


MONTHLY_LIMIT = {"monthly": 10}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"tenant": make_limits(**MONTHLY_LIMIT)}, {}),
        ({"each_user": make_limits(**MONTHLY_LIMIT)}, {}),
        ({"users": {"ada": make_limits(**MONTHLY_LIMIT)}}, {}),
        ({"each_user": make_limits(**MONTHLY_LIMIT)}, {"users": {"ada": make_limits()}}),
        (
            {"each_user": make_limits(**MONTHLY_LIMIT)},
            {"each_user": make_limits(**MONTHLY_LIMIT), "users": {"ada": make_limits()}},
        ),
    ],
    ids=["tenant", "each", "by name", "by name instead", "an exception"],
)
def test_spending_without_limits_is_counted_however_far_the_rollups_lag(
    resources: Resources, clock: TestClock, first: dict[str, Any], then: dict[str, Any]
) -> None:
    """Here nothing is counted into the rollups at all."""
    set_budget(resources, **first)
    reserve_budget(resources, make_request(1), CENT)
    settle_request(resources, 1, Decimal(4))
    clock.advance(60)
    set_budget(resources, **then)
    reserve_budget(resources, make_request(2), CENT)
    settle_request(resources, 2, Decimal(5))
    clock.advance(60)
    set_budget(resources, **then)
    clock.advance(60)
    set_budget(resources, **first)
    with pytest.raises(PaymentRequired, match=r"has \$1\.00 left"):
        reserve_budget(resources, make_request(3), Decimal(2))


def test_the_spent_amount_that_is_shown_never_decreases(resources: Resources, clock: TestClock) -> None:
    set_budget(resources, tenant=make_limits(daily=10))
    reserve_budget(resources, make_request(1), CENT)
    settle_request(resources, 1, Decimal(4))
    for limits in ({}, {"tenant": make_limits(monthly=10)}, {}, {"tenant": make_limits(daily=10)}):
        clock.advance(60)
        set_budget(resources, **limits)
        status = load_budget_status(resources, TENANT)["tenant"]
        assert (status["today"]["spentUsd"], status["thisMonth"]["spentUsd"]) == (4, 4)


def test_lifted_limits_are_counted_only_until_their_month_ends(resources: Resources, clock: TestClock) -> None:
    clock.now = datetime.fromisoformat("2026-11-30T12:00Z").timestamp()
    set_budget(resources, tenant=make_limits(daily=10), each_user=make_limits(daily=10))
    set_budget(resources)
    budgets = get_budgets(resources, TENANT, refresh=True)
    assert [len(budgets.list_accounts(TENANT, "ada", month)) for month in ("2026-11", "2026-12")] == [2, 0]
    clock.advance(86_400)
    set_budget(resources)
    assert get_budgets(resources, TENANT, refresh=True).lifted_month_by_owner == {}


def test_opening_an_account_does_not_overwrite_a_request_that_is_settled_meanwhile(
    resources: Resources, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_budget(resources, tenant=make_limits(daily=10))
    reserve_budget(resources, make_request(1), CENT)
    set_budget(resources)
    clock.advance(60)
    set_budget(resources, tenant=make_limits(daily=10))
    original: Callable[..., Any] = holds.load_spending_rollups

    def settle_meanwhile(*arguments: Any) -> Any:
        monkeypatch.setattr(holds, "load_spending_rollups", original)
        settle_request(resources_of_new_process(resources), 1, Decimal(4))
        return original(*arguments)

    monkeypatch.setattr(holds, "load_spending_rollups", settle_meanwhile)
    reserve_budget(resources, make_request(2), CENT)
    assert read_today(resources)["spentUsd"] == 4


def test_changed_limits_keep_what_was_counted(resources: Resources, clock: TestClock) -> None:
    """The rollups lag, so a request that was just settled may not be in them."""
    set_budget(resources, tenant=make_limits(monthly=10), each_user=make_limits(daily=10))
    reserve_budget(resources, make_request(1), CENT)
    settle_request(resources, 1, Decimal(1))
    clock.advance(1)
    set_budget(resources, tenant=make_limits(daily=10), users={"ada": make_limits(daily=9)})
    reserve_budget(resources, make_request(2), CENT)
    status = load_budget_status(resources, TENANT)
    assert [owner["today"]["spentUsd"] for owner in (status["tenant"], *status["users"])] == [1, 1]


@pytest.mark.parametrize(
    "limits",
    [{"users": {"ada": make_limits(daily=10)}}, {"each_user": make_limits(daily=10)}],
    ids=["by name", "as all others"],
)
def test_a_user_who_was_exempt_is_charged_for_what_was_spent_meanwhile(
    resources: Resources, clock: TestClock, limits: dict[str, Any]
) -> None:
    set_budget(resources, each_user=make_limits(daily=10))
    reserve_budget(resources, make_request(1), CENT)
    settle_request(resources, 1, CENT)
    set_budget(resources, each_user=make_limits(daily=10), users={"ada": make_limits()})
    reserve_budget(resources, make_request(2), Decimal(100))
    release_hold(resources, 2)
    spend_without_a_budget(resources, clock, "ada", "8")
    set_budget(resources, **limits)
    with pytest.raises(PaymentRequired, match=r"has \$2\.00 left"):
        reserve_budget(resources, make_request(3), Decimal(3))


def test_a_clock_that_is_behind_opens_an_account_once(resources: Resources, clock: TestClock) -> None:
    set_budget(resources, tenant=make_limits(daily=10))
    clock.advance(-2)
    for number in range(3):
        reserve_budget(resources, make_request(number), CENT)
        settle_request(resources, number, CENT)
    assert read_today(resources)["spentUsd"] == 0.03
