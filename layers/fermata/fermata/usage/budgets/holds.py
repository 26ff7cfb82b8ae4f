"""Reserve before a provider is asked, settle with the ledger row, and free what a crash left.

A turn asks for one thing at a time, so it has one hold: t#<tenant>#turn#<turn> hold, in the table of its log. It says
which request it is for and which accounts it lies in. Settling needs no condition, so that it can never keep a ledger
row from being written; a hold that has expired and was freed meanwhile is simply not there to be subtracted.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from fermata.aws.dynamodb import ConditionFailed, Item, Put, TransactionCanceled, Update, Write
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
    hold_attribute,
)
from fermata.usage.budgets.budget_limits import get_budgets
from fermata.usage.ledger.ledger_store import RequestUsage, ledger_partition
from fermata.usage.rollups.period_rollup import PeriodRollup

HOLD_LIFETIME_SECONDS = 3600
"""Longer than any request and its recovery take."""
HOLD_ROW_TTL_SECONDS = 7 * 86400
MAX_RESERVE_ATTEMPTS = 60


@dataclass(frozen=True)
class BudgetedRequest:
    """One provider request that is about to be made."""

    tenant: str
    user: str
    turn: str
    round: int
    attempt: int

    @property
    def name(self) -> str:
        return f"{self.turn}.{self.round}.{self.attempt}"


def reserve_budget(resources: Resources, request: BudgetedRequest, amount: Decimal) -> None:
    """Raises PaymentRequired where a budget does not have that much left. Again for the same request: nothing."""
    table, pk = resources.settings.bridges_table, ledger_partition(request.tenant, request.turn)
    for _ in range(MAX_RESERVE_ATTEMPTS):
        period = BudgetDate.from_timestamp(resources.clock.time())
        accounts = get_budgets(resources, request.tenant).list_accounts(request.tenant, request.user, period.month)
        found = resources.tables.batch_get_items(
            table, [(pk, "hold"), *((account.pk, period.month) for account in accounts)]
        )
        row = found.get((pk, "hold"))
        if row and _covers_request(row, request, resources.clock.time()):
            return
        states = [AccountState(account, period, found.get((account.pk, period.month), {})) for account in accounts]
        if _prepare_accounts(resources, states):
            continue
        _require_budget(states, amount)
        try:
            resources.tables.write_items(*_build_hold_writes(resources, request, row, states, amount))
        except (ConditionFailed, TransactionCanceled):
            resources.clock.sleep(random.uniform(0, 0.02))  # noqa: S311 (jitter, not a secret)
        else:
            return
    raise ServiceUnavailable(
        "Very many requests of this workspace began at once. Send the same request again.", retry_after=1
    )


def _covers_request(row: Item, request: BudgetedRequest, now: float) -> bool:
    """Whether the turn's hold is good for this request: it is the same one, or a later one that has taken over."""
    is_open = not row["settled"] and row["expires"] > now
    return is_open and (row["round"], row["attempt"]) >= (request.round, request.attempt)


def _prepare_accounts(resources: Resources, states: Sequence[AccountState]) -> bool:
    """Free what has expired, begin what is new. True when something was done: the accounts are to be read again."""
    table, done = resources.settings.bridges_table, False
    for state in states:
        for name in state.list_expired_holds(resources.clock.time()):
            resources.tables.write_items(
                build_release_update(table, state.account.pk, state.date.month, name, Decimal(0))
            )
            done = True
        if not state.is_opened:
            _open_account(resources, state)
            done = True
    return done


def _open_account(resources: Resources, state: AccountState) -> None:
    """A budget that is set today counts from the first of the month."""
    account, table = state.account, resources.settings.bridges_table
    month, today = load_spending_rollups(resources, account.pk.split("#")[1], state.date)
    try:
        resources.tables.write_items(
            build_opening_update(
                table, state, resources.clock.now_iso(), account_cost(month, account), account_cost(today, account)
            )
        )
    except ConditionFailed:
        return


def load_spending_rollups(resources: Resources, tenant: str, date: BudgetDate) -> tuple[PeriodRollup, PeriodRollup]:
    """What the rollups know of this month and this day."""
    from fermata.usage.rollups.rollup_store import (  # few turns begin a period; no other needs them
        load_rollups,
        read_editions,
    )

    month, today, last = PeriodRollup(), PeriodRollup(), f"{date.month}-{date.day}"
    for day, sheet in load_rollups(resources, read_editions(resources, tenant)[0], "day", date.month, last):
        month.add(sheet)
        if day == last:
            today.add(sheet)
    return month, today


def account_cost(rollup: PeriodRollup, account: BudgetAccount) -> Decimal:
    if account.user:
        return rollup.users[account.user].cost
    return sum((totals.cost for totals in rollup.scopes.values()), Decimal(0))


def _require_budget(states: Sequence[AccountState], amount: Decimal) -> None:
    for state in states:
        for pot in state.periods:
            if not pot.can_cover(amount):
                raise PaymentRequired(_refusal_message(state.account, pot, amount))


def _refusal_message(account: BudgetAccount, period: BudgetPeriod, amount: Decimal) -> str:
    left, limit = max(period.remaining or Decimal(0), Decimal(0)), period.limit or Decimal(0)
    held = f" ({_format_usd(period.held)} is held for requests under way)" if period.held else ""
    price = (
        f"this request may take {_format_usd(amount)}" if amount else "what this request costs is not known beforehand"
    )
    return (
        f"{account.possessive} {period.name} budget of {_format_usd(limit)} has {_format_usd(left)} left{held}, "
        f"and {price}. "
        f"It renews at {period.renews_at:%Y-%m-%dT%H:%MZ}."
    )


def _format_usd(amount: Decimal) -> str:
    """Cents, or as much finer as it takes to see anything."""
    return f"${amount:,.2f}" if not amount or amount >= Decimal("0.01") else f"${amount.normalize():f}"


def _build_hold_writes(
    resources: Resources, request: BudgetedRequest, row: Item | None, states: Sequence[AccountState], amount: Decimal
) -> list[Write]:
    now = int(resources.clock.time())
    period, expires = BudgetDate.from_timestamp(now), now + HOLD_LIFETIME_SECONDS
    name = hold_attribute(expires, period.day, request.name)
    item: Item = {
        "pk": ledger_partition(request.tenant, request.turn),
        "sk": "hold",
        "v": 1,
        "version": row["version"] + 1 if row else 1,
        "round": request.round,
        "attempt": request.attempt,
        "name": name,
        "month": period.month,
        "accounts": [state.account.pk for state in states],
        "settled": False,
        "expires": expires,
        "ttl": now + HOLD_ROW_TTL_SECONDS,
    }
    table = resources.settings.bridges_table
    put = Put(table, item, if_absent=True)
    if row:
        was, names = {":was": row["version"]}, {"#version": "version"}
        put = Put(table, item, condition="#version = :was", values=was, names=names)
    return [put, *(build_hold_update(table, state, name, amount) for state in states)]


def build_settlement_writes(
    resources: Resources, tenant: str, turn: str, usages: Sequence[RequestUsage]
) -> list[Write]:
    """The writes that go along with the ledger rows of a request: its hold is over, this is what it cost."""
    pk = ledger_partition(tenant, turn)
    row = resources.tables.get_item(resources.settings.bridges_table, pk, "hold")
    if row is None or row["settled"]:
        return []
    cost = sum((told.cost for told in usages), Decimal(0))
    over = Update(resources.settings.bridges_table, pk, "hold", "SET settled = :yes", {":yes": True}, condition="")
    freed = [
        build_release_update(resources.settings.bridges_table, account, row["month"], row["name"], cost)
        for account in row["accounts"]
    ]
    return [over, *freed]


def release_hold(resources: Resources, tenant: str, turn: str) -> None:
    """The request will not be made."""
    if writes := build_settlement_writes(resources, tenant, turn, ()):
        resources.tables.write_items(*writes)
