"""Budgets are reserved before a request, settled after it, released when a hold expires, and never overdrawn."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from fermata.aws.clock import Clock
from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import PaymentRequired
from fermata.usage.budgets import holds
from fermata.usage.budgets.account_shards import list_account_keys
from fermata.usage.budgets.budget_accounts import BudgetAccount, BudgetDate
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, get_budgets, set_budgets
from fermata.usage.budgets.budget_status import load_budget_status
from fermata.usage.budgets.holds import HOLD_LIFETIME_SECONDS, BudgetedRequest, build_settlement_writes
from fermata.usage.usage_writes import build_request_writes
from tests.faults import FaultScript
from tests.late_writes import WriteRecorder, repeat_single_writes
from tests.resources import TestClock, resources_of_new_process
from tests.unit.usage.ledger_factories import TENANT, count_ledger_rows, make_usage, write_and_count
from tests.unit.usage.reserve_budget import reserve_budget

ADMIN = Caller(tenant=TENANT, user="boss", capabilities=frozenset({Capability.PROVIDERS}))
CENT = Decimal("0.01")


def make_limits(daily: Any = None, monthly: Any = None) -> BudgetLimits:
    return BudgetLimits(
        daily_usd=None if daily is None else Decimal(str(daily)),
        monthly_usd=None if monthly is None else Decimal(str(monthly)),
    )


def set_budget(resources: Resources, **limits: Any) -> None:
    set_budgets(resources, ADMIN, Budgets(**limits))


def make_request(number: int = 1, user: str = "ada", round_: int = 1, attempt: int = 1) -> BudgetedRequest:
    return BudgetedRequest(TENANT, user, f"turn-{number}", round_, attempt)


def settle_request(resources: Resources, number: int, cost: Decimal) -> None:
    """Write the ledger row of a request and whatever settles with it."""
    usage = make_usage(resources.clock.time(), turn=f"turn-{number}", cost=cost, has_budget=True)
    resources.tables.write_items(*build_request_writes(resources, [usage]))


def release_hold(resources: Resources, number: int) -> None:
    """Settle a turn's hold as its end does when no request was made."""
    if writes := build_settlement_writes(resources, TENANT, f"turn-{number}", (), ends_turn=True):
        resources.tables.write_items(*writes)


def read_today(resources: Resources) -> dict[str, Any]:
    today: dict[str, Any] = load_budget_status(resources, TENANT)["tenant"]["today"]
    return today


def test_the_audit_log_says_who_set_budgets_but_not_for_which_users(
    resources: Resources, caplog: pytest.LogCaptureFixture
) -> None:
    set_budget(resources, users={"ada": make_limits(daily=1), "bob": make_limits()})
    (line,) = [vars(record) for record in caplog.records if getattr(record, "audit", False)]
    fields = {name: line[name] for name in ("event", "tenant", "user", "users")}
    assert fields == {"event": "ai.budget.updated", "tenant": TENANT, "user": "boss", "users": 2}


def test_a_held_amount_is_not_available_to_others(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    reserve_budget(resources, make_request(1), CENT)
    with pytest.raises(PaymentRequired):
        reserve_budget(resources, make_request(2), CENT)
    assert read_today(resources) == {"spentUsd": 0, "heldUsd": 0.01, "leftUsd": 0.005}


def test_a_ledger_row_replaces_the_hold_by_the_cost(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    reserve_budget(resources, make_request(), CENT)
    settle_request(resources, 1, Decimal("0.004"))
    assert read_today(resources) == {"spentUsd": 0.004, "heldUsd": 0, "leftUsd": 0.996}


def test_the_rows_of_a_request_and_its_retries_are_settled_together(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    reserve_budget(resources, make_request(), CENT)
    now = resources.clock.time()
    usages = [
        make_usage(now, turn="turn-1", request_number=number, cost=CENT, has_budget=True) for number in range(1, 4)
    ]
    resources.tables.write_items(*build_request_writes(resources, usages))
    assert read_today(resources)["spentUsd"] == 0.03


def test_a_row_for_which_no_hold_is_left_is_charged_on_its_day(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    reserve_budget(resources, make_request(), CENT)
    settle_request(resources, 1, CENT)
    usage = make_usage(resources.clock.time(), turn="turn-1", attempt=2, cost=2 * CENT, has_budget=True)
    resources.tables.write_items(*build_request_writes(resources, [usage]))
    assert read_today(resources) == {"spentUsd": 0.03, "heldUsd": 0, "leftUsd": 0.97}


def test_a_row_of_a_superseded_function_is_charged_and_leaves_the_hold_of_its_successor(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    reserve_budget(resources, make_request(attempt=2), CENT)
    settle_request(resources, 1, 2 * CENT)
    assert read_today(resources) == {"spentUsd": 0.02, "heldUsd": 0.01, "leftUsd": 0.97}


def test_a_hold_whose_request_died_without_a_row_makes_room_for_the_next_attempt(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    for attempt in range(1, 4):
        reserve_budget(resources, make_request(attempt=attempt), CENT)
    assert read_today(resources) == {"spentUsd": 0, "heldUsd": 0.01, "leftUsd": 0.005}


def test_writes_that_settled_a_hold_do_not_settle_a_later_one_when_they_land_again(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    reserve_budget(resources, make_request(), CENT)
    writes = build_settlement_writes(resources, TENANT, "turn-1", (), ends_turn=True)
    resources.tables.write_items(*writes)
    reserve_budget(resources, make_request(round_=2), CENT)
    resources.tables.write_items(*writes)
    assert read_today(resources)["heldUsd"] == 0.01
    release_hold(resources, 1)
    assert read_today(resources)["heldUsd"] == 0


def test_reserving_twice_for_the_same_request_holds_once(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    for _ in range(3):
        reserve_budget(resources, make_request(), CENT)
    assert read_today(resources)["heldUsd"] == 0.01


def test_a_superseded_function_does_not_reserve_again(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    reserve_budget(resources, make_request(attempt=2), CENT)
    reserve_budget(resources, make_request(attempt=1), CENT)
    assert read_today(resources)["heldUsd"] == 0.01


def test_a_released_amount_can_be_reserved_again(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    reserve_budget(resources, make_request(1), CENT)
    for _ in range(2):
        release_hold(resources, 1)
    reserve_budget(resources, make_request(2), CENT)
    assert read_today(resources)["heldUsd"] == 0.01


def test_a_hold_left_by_a_crash_is_released_once_when_it_expires(resources: Resources, clock: TestClock) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    reserve_budget(resources, make_request(1), CENT)
    clock.advance(HOLD_LIFETIME_SECONDS + 1)
    reserve_budget(resources_of_new_process(resources), make_request(2), CENT)
    assert read_today(resources)["heldUsd"] == 0.01


def test_a_row_written_after_its_hold_expired_counts_its_cost_and_releases_nothing_twice(
    resources: Resources, clock: TestClock
) -> None:
    set_budget(resources, tenant=make_limits(daily="0.02"))
    reserve_budget(resources, make_request(1), CENT)
    clock.advance(HOLD_LIFETIME_SECONDS + 1)
    reserve_budget(resources, make_request(2), CENT)
    settle_request(resources, 1, Decimal("0.004"))
    assert read_today(resources) == {"spentUsd": 0.004, "heldUsd": 0.01, "leftUsd": 0.006}


def test_an_expired_hold_of_the_same_request_is_reserved_again(resources: Resources, clock: TestClock) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    reserve_budget(resources, make_request(), CENT)
    clock.advance(HOLD_LIFETIME_SECONDS + 1)
    reserve_budget(resources, make_request(), CENT)
    settle_request(resources, 1, Decimal("0.002"))
    assert read_today(resources) == {"spentUsd": 0.002, "heldUsd": 0, "leftUsd": 0.013}


@pytest.mark.parametrize(
    ("limits", "budget"),
    [
        ({"tenant": make_limits(daily="0.001")}, "The workspace's daily budget of $0.001"),
        ({"tenant": make_limits(monthly="0.001")}, "The workspace's monthly budget of $0.001"),
        ({"each_user": make_limits(daily="0.001")}, "Your daily budget of $0.001"),
        ({"users": {"ada": make_limits(monthly="0.001")}}, "Your monthly budget of $0.001"),
    ],
)
def test_a_refusal_says_whose_budget_what_is_left_and_when_it_renews(
    resources: Resources, clock: TestClock, limits: dict[str, Any], budget: str
) -> None:
    clock.now = datetime.fromisoformat("2026-12-31T18:00Z").timestamp()
    set_budget(resources, **limits)
    with pytest.raises(PaymentRequired) as refused:
        reserve_budget(resources, make_request(), CENT)
    assert refused.value.status == 402
    assert (
        refused.value.message == f"{budget} has $0.001 left, and this request may take $0.01. It renews at {RENEWS_AT}."
    )


RENEWS_AT = "2027-01-01T00:00Z"
"""On the last day of a month, the day and the month renew at the same instant."""


def test_limits_of_a_user_precede_those_of_each_user(resources: Resources) -> None:
    set_budget(resources, each_user=make_limits(daily="0.001"), users={"ada": make_limits(daily=1)})
    reserve_budget(resources, make_request(1, "ada"), CENT)
    with pytest.raises(PaymentRequired):
        reserve_budget(resources, make_request(2, "bob"), CENT)


def test_the_user_and_the_workspace_both_need_enough_budget(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"), each_user=make_limits(daily="0.015"))
    reserve_budget(resources, make_request(1, "ada"), CENT)
    with pytest.raises(PaymentRequired, match="workspace"):
        reserve_budget(resources, make_request(2, "bob"), CENT)


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


def read_account(resources: Resources, month: str) -> tuple[Decimal, Decimal]:
    """Return what the tenant's account has spent and held in a month."""
    keys = list_account_keys(BudgetAccount.for_tenant(TENANT), month)
    items = resources.tables.batch_get_items(resources.settings.bridges_table, keys).values()
    return sum(item.get("spent", Decimal(0)) for item in items), sum(item.get("held", Decimal(0)) for item in items)


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


def test_a_free_request_holds_nothing_and_needs_that_something_is_left(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.01"))
    reserve_budget(resources, make_request(1), Decimal(0))
    assert read_today(resources)["heldUsd"] == 0
    settle_request(resources, 1, Decimal("0.02"))
    assert read_today(resources) == {"spentUsd": 0.02, "heldUsd": 0, "leftUsd": 0}
    with pytest.raises(PaymentRequired, match="something has to be left"):
        reserve_budget(resources, make_request(2), Decimal(0))


@pytest.mark.parametrize("owner", ["tenant", "each_user"])
def test_a_request_without_a_known_price_is_refused_under_a_limit(resources: Resources, owner: str) -> None:
    set_budget(resources, **{owner: make_limits(monthly=100)})
    request = replace(make_request(1), model="brand-new-1")
    with pytest.raises(PaymentRequired, match=r"model brand-new-1 is not known.*administrator") as refused:
        reserve_budget(resources, request, None)
    assert refused.value.reason == "unpriced_model"


def test_a_request_without_a_known_price_is_counted_where_limits_were_removed(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(monthly=100))
    set_budget(resources)
    reserve_budget(resources, make_request(1), None)
    assert read_today(resources)["heldUsd"] == 0


def test_a_budget_of_zero_refuses_every_request(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=0))
    with pytest.raises(PaymentRequired, match=r"has \$0\.00 left"):
        reserve_budget(resources, make_request(), CENT)


def test_lifted_limits_refuse_nothing_and_open_holds_are_settled(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.015"))
    reserve_budget(resources, make_request(1), CENT)
    set_budget(resources)
    reserve_budget(resources, make_request(2), Decimal(100))
    release_hold(resources, 2)
    settle_request(resources, 1, CENT)
    assert (read_today(resources)["heldUsd"], read_today(resources)["leftUsd"]) == (0, None)


def reserve_concurrently(resources: Resources, count: int, amount: Decimal) -> list[bool]:
    """Reserve from many processes at once, and return which of them were admitted."""

    def try_to_reserve(number: int) -> bool:
        try:
            reserve_budget(Resources(resources.settings, Clock()), make_request(number), amount)
        except PaymentRequired:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(try_to_reserve, range(count)))


@pytest.mark.exhaustive
@pytest.mark.usefixtures("atomic_calls")
def test_of_fifty_concurrent_turns_with_budget_for_one_only_one_is_admitted(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily="0.019"))
    assert reserve_concurrently(resources, 50, CENT).count(True) == 1
    assert read_today(Resources(resources.settings, Clock()))["heldUsd"] == 0.01


@pytest.mark.exhaustive
@pytest.mark.usefixtures("atomic_calls")
@pytest.mark.parametrize(("daily", "admitted"), [("0.075", 7), ("1", 20)])
def test_concurrent_turns_use_the_whole_budget_and_no_more(resources: Resources, daily: str, admitted: int) -> None:
    set_budget(resources, tenant=make_limits(daily=daily), each_user=make_limits(daily=daily))
    assert reserve_concurrently(resources, 20, CENT).count(True) == admitted


@pytest.mark.exhaustive
@pytest.mark.usefixtures("atomic_calls")
def test_settling_and_reserving_concurrently_loses_no_cent(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))

    def reserve_and_settle(number: int) -> None:
        own_resources = Resources(resources.settings, Clock())
        reserve_budget(own_resources, make_request(number), CENT)
        settle_request(own_resources, number, Decimal("0.003"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(reserve_and_settle, range(24)))
    date = BudgetDate.from_epoch_seconds(Clock().time())
    item = resources.tables.get_item(resources.settings.bridges_table, f"t#{TENANT}#budget#tenant", date.month)
    assert item is not None
    assert (item["spent"], item["held"]) == (Decimal("0.072"), 0)
    assert [name for name in item if name.startswith("x#")] == []


def test_where_much_remains_concurrent_holds_do_not_conflict(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hold succeeds at the first attempt, although another process took one since the account was read."""
    set_budget(resources, tenant=make_limits(daily=100))
    reserve_budget(resources, make_request(1), CENT)
    attempts: list[int] = []
    original: Callable[..., Any] = holds._build_hold_writes

    def reserve_meanwhile(*arguments: Any) -> Any:
        attempts.append(1)
        if len(attempts) == 1:
            monkeypatch.setattr(holds, "_build_hold_writes", original)
            reserve_budget(resources_of_new_process(resources), make_request(2), CENT)
        return original(*arguments)

    monkeypatch.setattr(holds, "_build_hold_writes", reserve_meanwhile)
    reserve_budget(resources, make_request(3), CENT)
    assert attempts == [1]
    assert read_today(resources)["heldUsd"] == 0.03


def test_budgets_that_land_again_later_do_not_replace_newer_ones(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = WriteRecorder(resources, monkeypatch)
    set_budget(resources, tenant=make_limits(daily=1))
    set_budget(resources, tenant=make_limits(daily=2), users={"ada": make_limits(daily=1)})
    set_budget(resources, tenant=make_limits(daily=3))
    newest = get_budgets(resources, TENANT, refresh=True)

    def check_budgets() -> None:
        assert get_budgets(resources, TENANT, refresh=True) == newest

    assert len(recorder.requests) == 3
    recorder.land_again(check_budgets)


def test_budgets_whose_write_is_repeated_because_its_response_is_lost_are_set_once(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeat_single_writes(resources, monkeypatch)
    set_budget(resources, tenant=make_limits(daily=1))
    set_budget(resources, tenant=make_limits(daily="2.50"), users={"ada": make_limits(daily=1)})
    budgets = get_budgets(resources, TENANT, refresh=True)
    assert (budgets.tenant.daily_usd, budgets.version) == (Decimal("2.5"), 2)


def test_of_two_settings_of_budgets_at_once_the_second_one_knows_what_the_first_one_lifted(
    resources: Resources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    other = resources_of_new_process(resources)
    faults = FaultScript(resources, tmp_path, monkeypatch)
    faults.interrupt("dynamodb.PutItem", lambda: set_budget(other, users={"ada": make_limits(daily=1)}))
    set_budget(resources, tenant=make_limits(daily=2))
    budgets = get_budgets(resources, TENANT, refresh=True)
    assert faults.is_spent
    assert (budgets.tenant.daily_usd, set(budgets.lifted_month_by_owner)) == (2, {"tenant", "user ada"})


def test_budgets_from_before_they_had_versions_can_be_replaced(resources: Resources) -> None:
    set_budget(resources, tenant=make_limits(daily=1))
    old = resources.tables.get_item("settings", f"t#{TENANT}", "budgets")
    assert old is not None
    del old["version"]
    resources.tables.write_items(Put("settings", old))
    set_budget(resources, tenant=make_limits(daily=2))
    assert get_budgets(resources, TENANT, refresh=True).tenant.daily_usd == 2
