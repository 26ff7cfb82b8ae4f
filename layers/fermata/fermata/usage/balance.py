"""Budgets as they are shown: each limit, what is spent and held, and what is left until it renews."""

from collections.abc import Callable
from functools import cache
from typing import Any

from fermata.aws.clock import instant
from fermata.aws.desk import Desk
from fermata.usage.accounts import ZERO, Account, Period, Pot, State
from fermata.usage.budgets import Budgets, Limits, read
from fermata.usage.holds import cost_of, so_far
from fermata.usage.sheets import Sheet


def balance(desk: Desk, tenant: str) -> dict[str, Any]:
    """Of the tenant, and of each user with limits of their own."""
    budgets, period = read(desk, tenant), Period.at(desk.clock.time())
    owners = {Account.of_tenant(tenant): budgets.tenant}
    owners |= {Account.of_user(tenant, user): limits for user, limits in sorted(budgets.users.items())}
    sheets = cache(lambda: so_far(desk, tenant, period))
    states = [_state(desk, account, limits, period, sheets) for account, limits in owners.items()]
    shown = [_limits(limits) | _pots(state) for state, limits in zip(states, owners.values(), strict=True)]
    return _phrased(budgets, shown, period)


def _phrased(budgets: Budgets, shown: list[dict[str, Any]], period: Period) -> dict[str, Any]:
    told = {
        "tenant": shown[0],
        "eachUser": _limits(budgets.each_user),
        "users": [{"userId": user} | it for user, it in zip(sorted(budgets.users), shown[1:], strict=True)],
        "dayRenewsAt": instant(period.next_day.timestamp()),
        "monthRenewsAt": instant(period.next_month.timestamp()),
    }
    return told | ({"updatedAt": budgets.updated_at, "updatedBy": budgets.updated_by} if budgets.updated_at else {})


def _state(
    desk: Desk, account: Account, limits: Limits, period: Period, sheets: Callable[[], tuple[Sheet, Sheet]]
) -> State:
    """As it is counted; until the first request under a limit, and without one, what the rollups say, unless more was
    counted already.
    """
    account = account.limited(limits.daily_usd, limits.monthly_usd, limits.since)
    item = desk.tables.get(desk.settings.bridges_table, account.pk, period.month) or {}
    state = State(account, period, item)
    if state.is_begun and limits.are_set:
        return state
    month, today = sheets()
    day, whole = state.pots
    spent = {"spent": max(cost_of(month, account), whole.spent)}
    spent[day.names[0]] = max(cost_of(today, account), day.spent)
    return State(account, period, item | spent)


def _limits(limits: Limits) -> dict[str, Any]:
    return {"dailyUsd": _usd(limits.daily_usd), "monthlyUsd": _usd(limits.monthly_usd)}


def _pots(state: State) -> dict[str, Any]:
    day, month = state.pots
    return {"today": _pot(day), "thisMonth": _pot(month)}


def _pot(pot: Pot) -> dict[str, Any]:
    left = None if pot.left is None else max(pot.left, ZERO)
    return {"spentUsd": float(pot.spent), "heldUsd": float(pot.held), "leftUsd": _usd(left)}


def _usd(amount: Any) -> float | None:
    return None if amount is None else float(amount)
