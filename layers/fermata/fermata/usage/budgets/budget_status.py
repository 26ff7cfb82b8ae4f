"""Compute budget status for the API: each limit, what is spent and held, and what remains until it renews."""

from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.resources import Resources
from fermata.usage.budgets.account_shards import ShardedAccount, list_account_keys
from fermata.usage.budgets.budget_accounts import AccountState, BudgetAccount, BudgetDate, BudgetPeriod
from fermata.usage.budgets.budget_limits import BudgetLimits, Budgets, read_budgets
from fermata.usage.budgets.earlier_spending import compute_account_spending, load_spending_rollups
from fermata.usage.rollups.period_rollup import PeriodRollup
from fermata.usage.usage_totals import ZERO_USD


def load_budget_status(resources: Resources, tenant: str) -> dict[str, Any]:
    """Return the response body: the tenant's limits and spending, and those of each user with limits of their own."""
    budgets = read_budgets(resources, tenant)
    date = BudgetDate.from_epoch_seconds(resources.clock.time())
    load_rollups = cache(lambda: load_spending_rollups(resources, tenant, date))

    def load_owner(account: BudgetAccount, limits: BudgetLimits) -> dict[str, Any]:
        state = _load_account_state(resources, account, limits, date, load_rollups)
        return _limits_to_response(limits) | _periods_to_response(state)

    response: dict[str, Any] = {
        "tenant": load_owner(BudgetAccount.for_tenant(tenant), budgets.tenant),
        "eachUser": _limits_to_response(budgets.each_user),
        "users": [
            {"userId": user} | load_owner(BudgetAccount.for_user(tenant, user), limits)
            for user, limits in sorted(budgets.users.items())
        ],
        "dayRenewsAt": iso_from_epoch(date.next_day.timestamp()),
        "monthRenewsAt": iso_from_epoch(date.next_month.timestamp()),
    }
    return response | _last_update(budgets)


def _last_update(budgets: Budgets) -> dict[str, str]:
    if not budgets.updated_at:
        return {}
    return {"updatedAt": budgets.updated_at, "updatedBy": budgets.updated_by}


def _load_account_state(
    resources: Resources,
    account: BudgetAccount,
    limits: BudgetLimits,
    date: BudgetDate,
    load_rollups: Callable[[], tuple[PeriodRollup, PeriodRollup]],
) -> AccountState:
    """Read an account.

    Without limits, and until the first request under them, the account is not opened. Then the larger of its own count
    and the rollups' sum is shown (decision 0088).
    """
    account = account.with_limits(limits.daily_usd, limits.monthly_usd, limits.since)
    keys = list_account_keys(account, date.month)
    items = resources.tables.batch_get_items(resources.settings.bridges_table, keys)
    state = ShardedAccount.from_items(account, date, items).total
    if state.includes_earlier_spending and limits.has_limits:
        return state
    month_rollup, day_rollup = load_rollups()
    spent = {
        state.month_period.spent_attribute: max(
            compute_account_spending(month_rollup, account), state.month_period.spent
        ),
        state.day_period.spent_attribute: max(compute_account_spending(day_rollup, account), state.day_period.spent),
    }
    return AccountState(account, date, state.item | spent)


def _limits_to_response(limits: BudgetLimits) -> dict[str, Any]:
    return {"dailyUsd": _float_or_none(limits.daily_usd), "monthlyUsd": _float_or_none(limits.monthly_usd)}


def _periods_to_response(state: AccountState) -> dict[str, Any]:
    return {"today": _period_to_response(state.day_period), "thisMonth": _period_to_response(state.month_period)}


def _period_to_response(period: BudgetPeriod) -> dict[str, Any]:
    remaining = None if period.remaining is None else max(period.remaining, ZERO_USD)
    return {"spentUsd": float(period.spent), "heldUsd": float(period.held), "leftUsd": _float_or_none(remaining)}


def _float_or_none(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)
