"""Budget holds: reserve an amount before a provider request, and settle it with the request's ledger row.

A turn makes one request at a time, so it has one hold: t#<tenant>#turn#<turn> hold, in the table of turns. The row
names the request it covers and the accounts it reduces. Settling has no condition, so that a budget can never keep a
ledger row from being written. A hold that is not settled expires, and the next reader of the account releases it
(decision 0055). Every ledger row is charged to the accounts, whether or not a hold is left for it (decision 0142).
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put, Update, Write
from fermata.aws.resources import Resources
from fermata.domain.errors import PaymentRequired, ServiceUnavailable
from fermata.usage.budgets.budget_accounts import (
    AccountState,
    BudgetAccount,
    BudgetDate,
    BudgetPeriod,
    build_hold_update,
    build_opening_update,
    build_release_update,
    build_spending_updates,
    hold_attribute,
)
from fermata.usage.budgets.budget_limits import get_budgets
from fermata.usage.ledger.ledger_store import RequestUsage, ledger_partition
from fermata.usage.rollups.period_rollup import PeriodRollup
from fermata.usage.usage_totals import ZERO_USD

_Committed = TypeVar("_Committed")
HOLD_LIFETIME_SECONDS = 3600
"""Longer than any request and its recovery take."""
HOLD_ROW_TTL_SECONDS = 7 * 86400
MAX_RESERVE_ATTEMPTS = 60


@dataclass(frozen=True)
class BudgetedRequest:
    """Provider request that is about to be made."""

    tenant: str
    user: str
    turn: str
    round: int
    attempt: int

    @property
    def name(self) -> str:
        """What the hold records, so that a request is reserved once however often its function is called."""
        return f"{self.turn}.{self.round}.{self.attempt}"


class AccountsChanged(Exception):
    """The accounts have changed since the writes of a hold were built from them."""


def reserve_budget_and_commit(
    resources: Resources, request: BudgetedRequest, amount: Decimal, commit: Callable[[Sequence[Write]], _Committed]
) -> _Committed:
    """Call `commit` with the writes that hold an amount for a request; return what it returns.

    Args:
        amount: USD that the request costs at most; 0 when its price is unknown.
        commit: Applies the writes in one transaction. There are none when the request is held already. It is called
            again after it has raised `AccountsChanged`, with new writes.

    Raises:
        PaymentRequired: A budget has less than the amount left.
        ServiceUnavailable: Other requests changed the accounts in each of MAX_RESERVE_ATTEMPTS attempts.
    """
    for _ in range(MAX_RESERVE_ATTEMPTS):
        row, states = _read_hold_and_accounts(resources, request)
        if row and _covers_request(row, request, resources.clock.time()):
            return commit(())
        if _prepare_accounts(resources, states, replaced_hold=row["name"] if row else ""):
            continue
        _require_budget(states, amount)
        try:
            return commit(_build_hold_writes(resources, request, row, states, amount))
        except AccountsChanged:
            resources.clock.sleep(random.uniform(0, 0.02))  # noqa: S311 (jitter, not a secret)
    raise ServiceUnavailable(
        "Too many requests of this workspace began at once. Send the same request again.", retry_after=1
    )


def _read_hold_and_accounts(
    resources: Resources, request: BudgetedRequest
) -> tuple[Item | None, Sequence[AccountState]]:
    date = BudgetDate.from_epoch_seconds(resources.clock.time())
    accounts = get_budgets(resources, request.tenant).list_accounts(request.tenant, request.user, date.month)
    hold_key = (ledger_partition(request.tenant, request.turn), "hold")
    keys = [hold_key, *((account.pk, date.month) for account in accounts)]
    items = resources.tables.batch_get_items(resources.settings.bridges_table, keys)
    states = [AccountState(account, date, items.get((account.pk, date.month), {})) for account in accounts]
    return items.get(hold_key), states


def _covers_request(row: Item, request: BudgetedRequest, now: float) -> bool:
    """Return whether the turn's open hold covers this request: the same one, or a later one that has taken over."""
    is_effective = _is_open(row) and row["expires"] > now
    return is_effective and (row["round"], row["attempt"]) >= (request.round, request.attempt)


def _is_open(row: Item) -> bool:
    """Return whether the hold is not settled. Rows from before decision 0142 have True where others have a name."""
    return row["settled"] not in (True, row["name"])


def _prepare_accounts(resources: Resources, states: Sequence[AccountState], replaced_hold: str) -> bool:
    """Release expired holds and open new accounts. Return True when the accounts have to be read again.

    Args:
        replaced_hold: The turn's last hold. It is released too, because its request died and has no ledger row.
    """
    table = resources.settings.bridges_table
    is_changed = False
    for state in states:
        for hold in state.list_releasable_holds(resources.clock.time(), replaced_hold):
            update = build_release_update(table, state.account.pk, state.date.month, hold)
            resources.tables.write_items(update)
            is_changed = True
        if not state.includes_earlier_spending:
            _open_account(resources, state)
            is_changed = True
    return is_changed


def _open_account(resources: Resources, state: AccountState) -> None:
    """Open an account, so that a budget set today counts from the first day of the month (decision 0056)."""
    month_rollup, day_rollup = load_spending_rollups(resources, state.account.tenant, state.date)
    month_spent = compute_account_spending(month_rollup, state.account)
    day_spent = compute_account_spending(day_rollup, state.account)
    now = resources.clock.now_iso()
    update = build_opening_update(resources.settings.bridges_table, state, now, month_spent, day_spent)
    try:
        resources.tables.write_items(update)
    except ConditionFailed:
        return


def load_spending_rollups(resources: Resources, tenant: str, date: BudgetDate) -> tuple[PeriodRollup, PeriodRollup]:
    """Return the tenant's rollups of the month up to this day, and of this day."""
    # Imported here because few turns open an account; the others need no rollups.
    from fermata.usage.rollups.edition_row import RollupEdition, read_from_current_edition
    from fermata.usage.rollups.rollup_store import load_rollups

    today = f"{date.month}-{date.day}"

    def add_up(edition: RollupEdition) -> tuple[PeriodRollup, PeriodRollup]:
        month_rollup, day_rollup = PeriodRollup(), PeriodRollup()
        for day, rollup in load_rollups(resources, edition, "day", date.month, today):
            month_rollup.add(rollup)
            if day == today:
                day_rollup.add(rollup)
        return month_rollup, day_rollup

    return read_from_current_edition(resources, tenant, add_up)


def compute_account_spending(rollup: PeriodRollup, account: BudgetAccount) -> Decimal:
    """Return the USD in a tenant's rollup that count for the account: the user's, or all."""
    if account.user:
        return rollup.users[account.user].cost
    return sum((totals.cost for totals in rollup.scopes.values()), ZERO_USD)


def _require_budget(states: Sequence[AccountState], amount: Decimal) -> None:
    for state in states:
        for period in state.day_and_month_periods:
            if not period.can_cover(amount):
                raise PaymentRequired(_refusal_message(state.account, period, amount))


def _refusal_message(account: BudgetAccount, period: BudgetPeriod, amount: Decimal) -> str:
    remaining = _format_usd(max(period.remaining or ZERO_USD, ZERO_USD))
    limit = _format_usd(period.limit or ZERO_USD)
    held = f" ({_format_usd(period.held)} is held for requests under way)" if period.held else ""
    price = "the cost of this request is not known in advance"
    if amount:
        price = f"this request may take {_format_usd(amount)}"
    return (
        f"{account.possessive} {period.name} budget of {limit} has {remaining} left{held}, and {price}. "
        f"It renews at {period.renews_at:%Y-%m-%dT%H:%MZ}."
    )


def _format_usd(amount: Decimal) -> str:
    """Format an amount in cents, or with as many decimals as a smaller amount needs."""
    return f"${amount:,.2f}" if not amount or amount >= Decimal("0.01") else f"${amount.normalize():f}"


def _build_hold_writes(
    resources: Resources, request: BudgetedRequest, row: Item | None, states: Sequence[AccountState], amount: Decimal
) -> list[Write]:
    """Build the writes of a hold: its row, in place of the turn's last one, and the hold in each account."""
    now = int(resources.clock.time())
    # The date at which the accounts were read, also when midnight has passed since (decision 0170).
    date = states[0].date if states else BudgetDate.from_epoch_seconds(now)
    expires = now + HOLD_LIFETIME_SECONDS
    hold = hold_attribute(expires, date.day, request.name)
    item: Item = {
        "pk": ledger_partition(request.tenant, request.turn),
        "sk": "hold",
        "v": 1,
        "version": row["version"] + 1 if row else 1,
        "round": request.round,
        "attempt": request.attempt,
        "name": hold,
        "month": date.month,
        "accounts": [state.account.pk for state in states],
        "settled": "",
        "expires": expires,
        "ttl": now + HOLD_ROW_TTL_SECONDS,
    }
    table = resources.settings.bridges_table
    put = _build_hold_put(table, item, row["version"] if row else None)
    holds = [build_hold_update(table, state, hold, amount) for state in states]
    return [put, *holds, *_build_remaining_releases(table, row, states)]


def _build_remaining_releases(table: str, row: Item | None, states: Sequence[AccountState]) -> list[Write]:
    """Release the turn's last hold where `_prepare_accounts` did not look: in the month before, mostly."""
    if row is None or not _is_open(row):
        return []
    read = {(state.account.pk, state.date.month) for state in states}
    remaining = [account for account in row["accounts"] if (account, row["month"]) not in read]
    return [build_release_update(table, account, row["month"], row["name"]) for account in remaining]


def _build_hold_put(table: str, item: Item, expected_version: int | None) -> Put:
    if expected_version is None:
        return Put(table, item, if_absent=True)
    values = {":was": expected_version}
    return Put(table, item, condition="#version = :was", values=values, names={"#version": "version"})


def build_settlement_writes(
    resources: Resources, tenant: str, turn: str, usages: Sequence[RequestUsage], *, ends_turn: bool = False
) -> list[Write]:
    """Build the writes that charge ledger rows to the accounts and settle the turn's hold. They go along with the rows.

    The hold stays if it is for a later request than the rows are: then they are of a function that was superseded.

    Args:
        ends_turn: Whether no request follows, so that the hold is settled in any case.
    """
    row = resources.tables.get_item(resources.settings.bridges_table, ledger_partition(tenant, turn), "hold")
    if row is None:
        return []
    latest = max(((usage.round, usage.attempt) for usage in usages), default=(0, 0))
    is_settled = _is_open(row) and (ends_turn or latest >= (row["round"], row["attempt"]))
    return _build_account_writes(resources, row, usages, is_settled=is_settled)


def _build_account_writes(
    resources: Resources, row: Item, usages: Sequence[RequestUsage], *, is_settled: bool
) -> list[Write]:
    """Build the writes that charge ledger rows, and with `is_settled` those that settle the hold, naming it.

    A later hold has another name, so it is never settled by them.
    """
    table = resources.settings.bridges_table
    costs = _sum_cost_by_date(usages)
    writes: list[Write] = []
    if is_settled:
        settled = "SET settled = :name"
        writes.append(Update(table, row["pk"], row["sk"], settled, {":name": row["name"]}, condition=""))
    for account in row["accounts"]:
        hold = row["name"] if is_settled else ""
        writes += build_spending_updates(table, account, costs, hold=hold, hold_month=row["month"])
    return writes


def _sum_cost_by_date(usages: Sequence[RequestUsage]) -> dict[BudgetDate, Decimal]:
    costs: dict[BudgetDate, Decimal] = {}
    for usage in usages:
        if usage.cost:
            date = BudgetDate.from_iso_instant(usage.recorded_at)
            costs[date] = costs.get(date, ZERO_USD) + usage.cost
    return costs
