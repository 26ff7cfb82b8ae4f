"""Budgets as they are shown: each limit, what is spent and held, and what is left until it renews."""

from collections.abc import Callable
from functools import cache
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.resources import Resources
from fermata.usage.budgets.budget_accounts import ZERO_USD, AccountState, BudgetAccount, BudgetDate, BudgetPeriod
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, read_budgets
from fermata.usage.budgets.holds import account_cost, load_spending_rollups
from fermata.usage.rollups.period_rollup import PeriodRollup


def load_budget_status(resources: Resources, tenant: str) -> dict[str, Any]:
    """Of the tenant, and of each user with limits of their own."""
    budgets, period = read_budgets(resources, tenant), BudgetDate.from_timestamp(resources.clock.time())
    owners = {BudgetAccount.for_tenant(tenant): budgets.tenant}
    owners |= {BudgetAccount.for_user(tenant, user): limits for user, limits in sorted(budgets.users.items())}
    sheets = cache(lambda: load_spending_rollups(resources, tenant, period))
    states = [_load_account_state(resources, account, limits, period, sheets) for account, limits in owners.items()]
    shown = [
        _limits_to_response(limits) | _periods_to_response(state)
        for state, limits in zip(states, owners.values(), strict=True)
    ]
    return _to_response(budgets, shown, period)


def _to_response(budgets: Budgets, shown: list[dict[str, Any]], period: BudgetDate) -> dict[str, Any]:
    told = {
        "tenant": shown[0],
        "eachUser": _limits_to_response(budgets.each_user),
        "users": [{"userId": user} | it for user, it in zip(sorted(budgets.users), shown[1:], strict=True)],
        "dayRenewsAt": iso_from_epoch(period.next_day.timestamp()),
        "monthRenewsAt": iso_from_epoch(period.next_month.timestamp()),
    }
    return told | ({"updatedAt": budgets.updated_at, "updatedBy": budgets.updated_by} if budgets.updated_at else {})


def _load_account_state(
    resources: Resources,
    account: BudgetAccount,
    limits: BudgetLimits,
    date: BudgetDate,
    load_rollups: Callable[[], tuple[PeriodRollup, PeriodRollup]],
) -> AccountState:
    """As it is counted; until the first request under a limit, and without one, what the rollups say, unless more was
    counted already.
    """
    account = account.with_limits(limits.daily_usd, limits.monthly_usd, limits.since)
    item = resources.tables.get_item(resources.settings.bridges_table, account.pk, date.month) or {}
    state = AccountState(account, date, item)
    if state.is_opened and limits.has_limits:
        return state
    month, today = load_rollups()
    day, whole = state.periods
    spent = {"spent": max(account_cost(month, account), whole.spent)}
    spent[day.attributes[0]] = max(account_cost(today, account), day.spent)
    return AccountState(account, date, item | spent)


def _limits_to_response(limits: BudgetLimits) -> dict[str, Any]:
    return {"dailyUsd": _float_or_none(limits.daily_usd), "monthlyUsd": _float_or_none(limits.monthly_usd)}


def _periods_to_response(state: AccountState) -> dict[str, Any]:
    day, month = state.periods
    return {"today": _period_to_response(day), "thisMonth": _period_to_response(month)}


def _period_to_response(period: BudgetPeriod) -> dict[str, Any]:
    left = None if period.remaining is None else max(period.remaining, ZERO_USD)
    return {"spentUsd": float(period.spent), "heldUsd": float(period.held), "leftUsd": _float_or_none(left)}


def _float_or_none(amount: Any) -> float | None:
    return None if amount is None else float(amount)
