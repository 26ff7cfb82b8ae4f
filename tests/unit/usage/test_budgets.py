"""Budgets: reserved before, settled after, freed when nobody comes back, and never overdrawn."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from fermata.aws.clock import Clock
from fermata.aws.desk import Desk
from fermata.usage import holds
from fermata.usage.accounts import Period
from fermata.usage.balance import balance
from fermata.usage.booking import book
from fermata.usage.budgets import Budgets, Limits, budgets_of, set_budgets
from fermata.usage.holds import HOLD_SECONDS, Request, release, reserve
from fermata.words.caller import Caller, Capability
from fermata.words.errors import PaymentRequired
from tests.desk import TestClock, another_process
from tests.unit.usage.spending import TENANT, spend, spent

BOSS = Caller(tenant=TENANT, user="boss", capabilities=frozenset({Capability.PROVIDERS}))
CENT = Decimal("0.01")


def limits(daily: Any = None, monthly: Any = None) -> Limits:
    return Limits(
        daily_usd=None if daily is None else Decimal(str(daily)),
        monthly_usd=None if monthly is None else Decimal(str(monthly)),
    )


def budget(desk: Desk, **of: Any) -> None:
    set_budgets(desk, BOSS, Budgets(**of))


def request(number: int = 1, user: str = "ada", round_: int = 1, attempt: int = 1) -> Request:
    return Request(TENANT, user, f"turn-{number}", round_, attempt)


def settled(desk: Desk, number: int, cost: Decimal, **facts: Any) -> None:
    """Its ledger row is written, with whatever belongs to it."""
    told = spent(desk.clock.time(), turn=f"turn-{number}", cost=cost, budgeted=True, **facts)
    desk.tables.write(*book(desk, [told]))


def today(desk: Desk) -> dict[str, Any]:
    found: dict[str, Any] = balance(desk, TENANT)["tenant"]["today"]
    return found


def test_the_audit_hears_who_set_budgets_and_not_for_whom(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    budget(desk, users={"ada": limits(daily=1), "bob": limits()})
    (line,) = [vars(record) for record in caplog.records if getattr(record, "audit", False)]
    facts = {name: line[name] for name in ("event", "tenant", "user", "users")}
    assert facts == {"event": "ai.budget.updated", "tenant": TENANT, "user": "boss", "users": 2}


def test_what_is_held_is_not_there_for_others(desk: Desk) -> None:
    budget(desk, tenant=limits(daily="0.015"))
    reserve(desk, request(1), CENT)
    with pytest.raises(PaymentRequired):
        reserve(desk, request(2), CENT)
    assert today(desk) == {"spentUsd": 0, "heldUsd": 0.01, "leftUsd": 0.005}


def test_a_row_of_the_ledger_replaces_what_was_held_by_what_it_cost(desk: Desk) -> None:
    budget(desk, tenant=limits(daily=1))
    reserve(desk, request(), CENT)
    settled(desk, 1, Decimal("0.004"))
    assert today(desk) == {"spentUsd": 0.004, "heldUsd": 0, "leftUsd": 0.996}


def test_the_rows_of_one_request_and_its_repetitions_are_settled_together(desk: Desk) -> None:
    budget(desk, tenant=limits(daily=1))
    reserve(desk, request(), CENT)
    told = [spent(desk.clock.time(), turn="turn-1", tried=n, cost=CENT, budgeted=True) for n in range(1, 4)]
    desk.tables.write(*book(desk, told))
    assert today(desk)["spentUsd"] == 0.03


def test_the_same_request_is_reserved_once_however_often_it_is_asked_for(desk: Desk) -> None:
    budget(desk, tenant=limits(daily="0.015"))
    for _ in range(3):
        reserve(desk, request(), CENT)
    assert today(desk)["heldUsd"] == 0.01


def test_a_function_that_was_overtaken_takes_nothing_from_the_one_that_works_now(desk: Desk) -> None:
    budget(desk, tenant=limits(daily=1))
    reserve(desk, request(attempt=2), CENT)
    reserve(desk, request(attempt=1), CENT)
    assert today(desk)["heldUsd"] == 0.01


def test_what_is_given_back_can_be_taken_again(desk: Desk) -> None:
    budget(desk, tenant=limits(daily="0.015"))
    reserve(desk, request(1), CENT)
    for _ in range(2):
        release(desk, TENANT, "turn-1")
    reserve(desk, request(2), CENT)
    assert today(desk)["heldUsd"] == 0.01


def test_what_a_crash_left_is_freed_once_when_its_time_is_over(desk: Desk, clock: TestClock) -> None:
    budget(desk, tenant=limits(daily="0.015"))
    reserve(desk, request(1), CENT)
    clock.go_on(HOLD_SECONDS + 1)
    reserve(another_process(desk), request(2), CENT)
    assert today(desk)["heldUsd"] == 0.01


def test_a_row_that_comes_after_its_hold_was_freed_counts_what_it_cost_and_frees_nothing_twice(
    desk: Desk, clock: TestClock
) -> None:
    budget(desk, tenant=limits(daily="0.02"))
    reserve(desk, request(1), CENT)
    clock.go_on(HOLD_SECONDS + 1)
    reserve(desk, request(2), CENT)
    settled(desk, 1, Decimal("0.004"))
    assert today(desk) == {"spentUsd": 0.004, "heldUsd": 0.01, "leftUsd": 0.006}


def test_an_expired_hold_of_the_same_request_is_taken_anew(desk: Desk, clock: TestClock) -> None:
    budget(desk, tenant=limits(daily="0.015"))
    reserve(desk, request(), CENT)
    clock.go_on(HOLD_SECONDS + 1)
    reserve(desk, request(), CENT)
    settled(desk, 1, Decimal("0.002"))
    assert today(desk) == {"spentUsd": 0.002, "heldUsd": 0, "leftUsd": 0.013}


@pytest.mark.parametrize(
    ("of", "who"),
    [
        ({"tenant": limits(daily="0.001")}, "The workspace's daily budget of $0.001"),
        ({"tenant": limits(monthly="0.001")}, "The workspace's monthly budget of $0.001"),
        ({"each_user": limits(daily="0.001")}, "Your daily budget of $0.001"),
        ({"users": {"ada": limits(monthly="0.001")}}, "Your monthly budget of $0.001"),
    ],
)
def test_a_refusal_says_whose_budget_what_is_left_and_when_it_renews(
    desk: Desk, clock: TestClock, of: dict[str, Any], who: str
) -> None:
    clock.now = datetime.fromisoformat("2026-12-31T18:00Z").timestamp()
    budget(desk, **of)
    with pytest.raises(PaymentRequired) as refused:
        reserve(desk, request(), CENT)
    assert refused.value.status == 402
    assert refused.value.error == f"{who} has $0.001 left, and this request may take $0.01. It renews at {RENEWS}."


RENEWS = "2027-01-01T00:00Z"
"""From the last day of a month both a day and a month renew at the same moment."""


def test_the_limits_of_one_user_go_before_those_of_every_user(desk: Desk) -> None:
    budget(desk, each_user=limits(daily="0.001"), users={"ada": limits(daily=1)})
    reserve(desk, request(1, "ada"), CENT)
    with pytest.raises(PaymentRequired):
        reserve(desk, request(2, "bob"), CENT)


def test_a_user_and_the_workspace_both_have_to_have_it(desk: Desk) -> None:
    budget(desk, tenant=limits(daily="0.015"), each_user=limits(daily="0.015"))
    reserve(desk, request(1, "ada"), CENT)
    with pytest.raises(PaymentRequired, match="workspace"):
        reserve(desk, request(2, "bob"), CENT)


def test_a_day_renews_and_a_month_goes_on(desk: Desk, clock: TestClock) -> None:
    clock.now = datetime.fromisoformat("2026-11-10T23:00Z").timestamp()
    budget(desk, tenant=limits(daily="0.015", monthly="0.025"))
    reserve(desk, request(1), CENT)
    settled(desk, 1, CENT)
    clock.go_on(7200)
    reserve(desk, request(2), CENT)
    settled(desk, 2, CENT)
    clock.go_on(86_400)
    with pytest.raises(PaymentRequired, match="monthly"):
        reserve(desk, request(3), CENT)


def test_what_is_held_at_the_end_of_a_month_is_settled_in_that_month(desk: Desk, clock: TestClock) -> None:
    clock.now = datetime.fromisoformat("2026-11-30T23:59Z").timestamp()
    budget(desk, tenant=limits(monthly=1))
    reserve(desk, request(1), CENT)
    clock.go_on(300)
    settled(desk, 1, CENT)
    assert balance(desk, TENANT)["tenant"]["thisMonth"] == {"spentUsd": 0, "heldUsd": 0, "leftUsd": 1}
    november = desk.tables.get(desk.settings.bridges_table, f"t#{TENANT}#budget#tenant", "2026-11")
    assert november is not None
    assert (november["spent"], november["held"]) == (CENT, 0)


def test_a_budget_counts_what_was_spent_before_it_was_set(desk: Desk, clock: TestClock) -> None:
    clock.now = datetime.fromisoformat("2026-11-20T12:00Z").timestamp()
    spend(desk, spent("2026-11-02T00:00:00.000Z", cost=Decimal(4)), spent("2026-10-31T00:00:00.000Z", cost=Decimal(99)))
    spend(desk, spent(clock.now - 60, user="bob", cost=Decimal(2)))
    budget(desk, tenant=limits(monthly=7), users={"bob": limits(daily=3)})
    assert balance(desk, TENANT)["tenant"]["thisMonth"]["leftUsd"] == 1
    with pytest.raises(PaymentRequired, match=r"has \$1\.00 left"):
        reserve(desk, request(1, "bob"), Decimal("1.5"))
    reserve(desk, request(1, "bob"), Decimal("0.5"))
    assert balance(desk, TENANT)["users"][0]["today"] == {"spentUsd": 2, "heldUsd": 0.5, "leftUsd": 0.5}


def spend_without_a_budget(desk: Desk, clock: TestClock, user: str, cost: str) -> None:
    clock.go_on(60)
    spend(desk, spent(clock.now, user=user, cost=Decimal(cost)))
    clock.go_on(60)


def test_a_budget_that_is_set_again_counts_what_was_spent_while_there_was_none(desk: Desk, clock: TestClock) -> None:
    budget(desk, tenant=limits(monthly=10))
    reserve(desk, request(1), CENT)
    spend(desk, spent(clock.now, cost=Decimal(1)))
    settled(desk, 1, Decimal(1))
    budget(desk)
    spend_without_a_budget(desk, clock, "ada", "8")
    assert balance(desk, TENANT)["tenant"]["thisMonth"] == {"spentUsd": 9, "heldUsd": 0, "leftUsd": None}
    budget(desk, tenant=limits(monthly=10))
    assert balance(desk, TENANT)["tenant"]["thisMonth"]["leftUsd"] == 1
    with pytest.raises(PaymentRequired, match=r"has \$1\.00 left"):
        reserve(desk, request(2), Decimal("1.5"))
    reserve(desk, request(2), Decimal("0.5"))
    assert balance(desk, TENANT)["tenant"]["thisMonth"] == {"spentUsd": 9, "heldUsd": 0.5, "leftUsd": 0.5}


MONTH = {"monthly": 10}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"tenant": limits(**MONTH)}, {}),
        ({"each_user": limits(**MONTH)}, {}),
        ({"users": {"ada": limits(**MONTH)}}, {}),
        ({"each_user": limits(**MONTH)}, {"users": {"ada": limits()}}),
        ({"each_user": limits(**MONTH)}, {"each_user": limits(**MONTH), "users": {"ada": limits()}}),
    ],
    ids=["tenant", "each", "by name", "by name instead", "an exception"],
)
def test_nothing_is_forgotten_while_limits_are_away_however_far_the_rollups_are_behind(
    desk: Desk, clock: TestClock, first: dict[str, Any], then: dict[str, Any]
) -> None:
    """Here nothing reaches them at all."""
    budget(desk, **first)
    reserve(desk, request(1), CENT)
    settled(desk, 1, Decimal(4))
    clock.go_on(60)
    budget(desk, **then)
    reserve(desk, request(2), CENT)
    settled(desk, 2, Decimal(5))
    clock.go_on(60)
    budget(desk, **then)
    clock.go_on(60)
    budget(desk, **first)
    with pytest.raises(PaymentRequired, match=r"has \$1\.00 left"):
        reserve(desk, request(3), Decimal(2))


def test_what_is_shown_as_spent_never_becomes_less(desk: Desk, clock: TestClock) -> None:
    budget(desk, tenant=limits(daily=10))
    reserve(desk, request(1), CENT)
    settled(desk, 1, Decimal(4))
    for of in ({}, {"tenant": limits(monthly=10)}, {}, {"tenant": limits(daily=10)}):
        clock.go_on(60)
        budget(desk, **of)
        found = balance(desk, TENANT)["tenant"]
        assert (found["today"]["spentUsd"], found["thisMonth"]["spentUsd"]) == (4, 4)


def test_from_the_next_month_on_limits_that_were_lifted_are_nobodys_work(desk: Desk, clock: TestClock) -> None:
    clock.now = datetime.fromisoformat("2026-11-30T12:00Z").timestamp()
    budget(desk, tenant=limits(daily=10), each_user=limits(daily=10))
    budget(desk)
    kept = budgets_of(desk, TENANT, fresh=True)
    assert [len(kept.accounts(TENANT, "ada", month)) for month in ("2026-11", "2026-12")] == [2, 0]
    clock.go_on(86_400)
    budget(desk)
    assert budgets_of(desk, TENANT, fresh=True).lifted == {}


def test_a_request_that_is_settled_while_an_account_begins_is_not_overwritten(
    desk: Desk, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget(desk, tenant=limits(daily=10))
    reserve(desk, request(1), CENT)
    budget(desk)
    clock.go_on(60)
    budget(desk, tenant=limits(daily=10))
    original: Callable[..., Any] = holds.so_far

    def meanwhile(*arguments: Any) -> Any:
        monkeypatch.setattr(holds, "so_far", original)
        settled(another_process(desk), 1, Decimal(4))
        return original(*arguments)

    monkeypatch.setattr(holds, "so_far", meanwhile)
    reserve(desk, request(2), CENT)
    assert today(desk)["spentUsd"] == 4


def test_limits_that_change_go_on_with_what_was_counted(desk: Desk, clock: TestClock) -> None:
    """The rollups follow behind; what was settled a moment ago may not be in them."""
    budget(desk, tenant=limits(monthly=10), each_user=limits(daily=10))
    reserve(desk, request(1), CENT)
    settled(desk, 1, Decimal(1))
    clock.go_on(1)
    budget(desk, tenant=limits(daily=10), users={"ada": limits(daily=9)})
    reserve(desk, request(2), CENT)
    found = balance(desk, TENANT)
    assert [it["today"]["spentUsd"] for it in (found["tenant"], *found["users"])] == [1, 1]


@pytest.mark.parametrize(
    "again", [{"users": {"ada": limits(daily=10)}}, {"each_user": limits(daily=10)}], ids=["by name", "as all others"]
)
def test_a_user_who_was_an_exception_has_spent_what_was_spent_meanwhile(
    desk: Desk, clock: TestClock, again: dict[str, Any]
) -> None:
    budget(desk, each_user=limits(daily=10))
    reserve(desk, request(1), CENT)
    settled(desk, 1, CENT)
    budget(desk, each_user=limits(daily=10), users={"ada": limits()})
    reserve(desk, request(2), Decimal(100))
    release(desk, TENANT, "turn-2")
    spend_without_a_budget(desk, clock, "ada", "8")
    budget(desk, **again)
    with pytest.raises(PaymentRequired, match=r"has \$2\.00 left"):
        reserve(desk, request(3), Decimal(3))


def test_a_clock_that_is_behind_begins_an_account_once(desk: Desk, clock: TestClock) -> None:
    budget(desk, tenant=limits(daily=10))
    clock.go_on(-2)
    for number in range(3):
        reserve(desk, request(number), CENT)
        settled(desk, number, CENT)
    assert today(desk)["spentUsd"] == 0.03


def test_without_a_known_price_nothing_is_held_and_what_it_cost_is_counted(desk: Desk) -> None:
    budget(desk, tenant=limits(daily="0.01"))
    reserve(desk, request(1), Decimal(0))
    assert today(desk)["heldUsd"] == 0
    settled(desk, 1, Decimal("0.02"))
    assert today(desk) == {"spentUsd": 0.02, "heldUsd": 0, "leftUsd": 0}
    with pytest.raises(PaymentRequired, match="not known beforehand"):
        reserve(desk, request(2), Decimal(0))


def test_a_budget_of_nothing_lets_nothing_through(desk: Desk) -> None:
    budget(desk, tenant=limits(daily=0))
    with pytest.raises(PaymentRequired, match=r"has \$0\.00 left"):
        reserve(desk, request(), CENT)


def test_limits_that_were_lifted_hold_nobody_back_and_what_was_held_is_settled(desk: Desk) -> None:
    budget(desk, tenant=limits(daily="0.015"))
    reserve(desk, request(1), CENT)
    budget(desk)
    reserve(desk, request(2), Decimal(100))
    release(desk, TENANT, "turn-2")
    settled(desk, 1, CENT)
    assert (today(desk)["heldUsd"], today(desk)["leftUsd"]) == (0, None)


def at_once(desk: Desk, many: int, amount: Decimal) -> list[bool]:
    """As many processes at the same moment; which of them were let through."""

    def ask(number: int) -> bool:
        try:
            reserve(Desk(desk.settings, Clock()), request(number), amount)
        except PaymentRequired:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        return list(pool.map(ask, range(many)))


@pytest.mark.usefixtures("atomic_calls")
def test_of_fifty_turns_at_once_with_room_for_one_at_most_one_is_admitted(desk: Desk) -> None:
    """Scenario CO6."""
    budget(desk, tenant=limits(daily="0.019"))
    assert at_once(desk, 50, CENT).count(True) == 1
    assert today(Desk(desk.settings, Clock()))["heldUsd"] == 0.01


@pytest.mark.usefixtures("atomic_calls")
@pytest.mark.parametrize(("daily", "admitted"), [("0.075", 7), ("1", 20)])
def test_turns_at_once_use_the_room_there_is_and_no_more(desk: Desk, daily: str, admitted: int) -> None:
    budget(desk, tenant=limits(daily=daily), each_user=limits(daily=daily))
    assert at_once(desk, 20, CENT).count(True) == admitted


@pytest.mark.usefixtures("atomic_calls")
def test_settling_and_reserving_at_once_loses_no_cent(desk: Desk) -> None:
    budget(desk, tenant=limits(daily=1))

    def turn(number: int) -> None:
        own = Desk(desk.settings, Clock())
        reserve(own, request(number), CENT)
        settled(own, number, Decimal("0.003"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(turn, range(24)))
    period = Period.at(Clock().time())
    item = desk.tables.get(desk.settings.bridges_table, f"t#{TENANT}#budget#tenant", period.month)
    assert item is not None
    assert (item["spent"], item["held"]) == (Decimal("0.072"), 0)
    assert [name for name in item if name.startswith("x#")] == []


def test_where_much_is_left_nobody_waits_for_anybody(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hold is taken on what was read, although somebody else took one meanwhile."""
    budget(desk, tenant=limits(daily=100))
    reserve(desk, request(1), CENT)
    tried: list[int] = []
    original: Callable[..., Any] = holds._holding

    def meanwhile(*arguments: Any) -> Any:
        tried.append(1)
        if len(tried) == 1:
            monkeypatch.setattr(holds, "_holding", original)
            reserve(another_process(desk), request(2), CENT)
        return original(*arguments)

    monkeypatch.setattr(holds, "_holding", meanwhile)
    reserve(desk, request(3), CENT)
    assert tried == [1]
    assert today(desk)["heldUsd"] == 0.03
