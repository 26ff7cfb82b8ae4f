"""Turns and settings that meet at a budget hold no more than it has, and lose nothing."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from fermata.aws.clock import Clock
from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.domain.errors import PaymentRequired
from fermata.usage.budgets import holds
from fermata.usage.budgets.budget_accounts import BudgetDate
from fermata.usage.budgets.budget_limits import get_budgets
from tests.faults import FaultScript
from tests.late_writes import WriteRecorder, repeat_single_writes
from tests.resources import resources_of_new_process
from tests.unit.usage.budget_steps import CENT, make_limits, make_request, read_today, set_budget, settle_request
from tests.unit.usage.ledger_factories import TENANT
from tests.unit.usage.reserve_budget import reserve_budget


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
