"""Reserve an amount before a provider request, and settle it with the request's ledger row.

A turn makes one request at a time, so it has one hold: t#<tenant>#turn#<turn> hold, in the table of turns. The row
names the request it covers and the accounts it reduces. Settling has no condition, so that a budget can never keep a
ledger row from being written. A hold that is not settled expires, and the next reader of the account releases it
(decision 0055). Every ledger row is charged to the accounts, whether or not a hold is left for it (decision 0142).
"""

import contextlib
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TypeVar

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put, TransactionCanceled, Update, Write
from fermata.aws.resources import Resources
from fermata.domain.errors import ServiceUnavailable
from fermata.domain.value_dataclass import value_dataclass
from fermata.pricing.request_cost import find_price_of_unpriced_models
from fermata.pricing.token_cost import compute_cost
from fermata.usage.budgets.account_shards import ShardedAccount, list_account_keys
from fermata.usage.budgets.budget_accounts import (
    AccountState,
    BudgetAccount,
    BudgetDate,
    account_sort_key,
    build_hold_update,
    build_opening_update,
    build_release_update,
    build_spending_updates,
    hold_attribute,
    list_releasable_holds,
)
from fermata.usage.budgets.budget_limits import get_budgets
from fermata.usage.budgets.budget_refusals import build_refusal, require_budget
from fermata.usage.budgets.earlier_spending import compute_account_spending, load_spending_rollups
from fermata.usage.ledger.ledger_store import RequestUsage, ledger_partition
from fermata.usage.usage_totals import ZERO_USD

_Committed = TypeVar("_Committed")
HOLD_LIFETIME_SECONDS = 3600
"""Longer than any request and its recovery take."""
HOLD_ROW_TTL_SECONDS = 7 * 86400
MAX_RESERVE_ATTEMPTS = 60


@value_dataclass(frozen=True)
class BudgetedRequest:
    """Provider request that is about to be made."""

    tenant: str
    user: str
    turn: str
    round: int
    attempt: int
    model: str = ""
    lifetime_seconds: int = HOLD_LIFETIME_SECONDS
    """After which the hold is released if it was not settled."""

    @property
    def name(self) -> str:
        """What the hold records, so that a request is reserved once however often its function is called."""
        return f"{self.turn}.{self.round}.{self.attempt}"


class AccountsChanged(Exception):
    """The accounts have changed since the writes of a hold were built from them."""


def reserve_budget_and_commit(
    resources: Resources,
    request: BudgetedRequest,
    amount: Decimal | None,
    commit: Callable[[Sequence[Write]], _Committed],
) -> _Committed:
    """Call `commit` with the writes that hold an amount for a request; return what it returns.

    Args:
        amount: USD that the request costs at most; 0 for a free model, None when its price is unknown.
        commit: Applies the writes in one transaction. There are none when the request is held already. It is called
            again after it has raised `AccountsChanged`, with new writes.

    Raises:
        PaymentRequired: A budget has less than the amount left.
        ServiceUnavailable: Other requests changed the accounts in each of MAX_RESERVE_ATTEMPTS attempts.
    """
    for _ in range(MAX_RESERVE_ATTEMPTS):
        row, accounts = _read_hold_and_accounts(resources, request)
        if row and _covers_request(row, request, resources.clock.time()):
            return commit(())
        if _prepare_accounts(resources, accounts, replaced_hold=row["name"] if row else ""):
            continue
        require_budget([account.total for account in accounts], request.model, amount)
        shards = [account.choose_shard(request.turn, amount or ZERO_USD) for account in accounts]
        states = [shard for shard in shards if shard is not None]
        if len(states) < len(accounts):
            _gather_budget(resources, accounts, shards, amount or ZERO_USD)
            continue
        try:
            return commit(_build_hold_writes(resources, request, row, states, amount or ZERO_USD))
        except AccountsChanged:
            resources.clock.sleep(random.uniform(0, 0.02))  # noqa: S311 (jitter, not a secret)
    raise ServiceUnavailable(
        "Too many requests of this workspace began at once. Send the same request again.", retry_after=1
    )


def _read_hold_and_accounts(
    resources: Resources, request: BudgetedRequest
) -> tuple[Item | None, Sequence[ShardedAccount]]:
    date = BudgetDate.from_epoch_seconds(resources.clock.time())
    accounts = get_budgets(resources, request.tenant).list_accounts(request.tenant, request.user, date.month)
    hold_key = (ledger_partition(request.tenant, request.turn), "hold")
    keys = [hold_key, *(key for account in accounts for key in list_account_keys(account, date.month))]
    items = resources.tables.batch_get_items(resources.settings.bridges_table, keys)
    return items.get(hold_key), [ShardedAccount.from_items(account, date, items) for account in accounts]


def _covers_request(row: Item, request: BudgetedRequest, now: float) -> bool:
    """Return whether the turn's open hold covers this request: the same one, or a later one that has taken over."""
    is_effective = _is_open(row) and row["expires"] > now
    return is_effective and (row["round"], row["attempt"]) >= (request.round, request.attempt)


def _is_open(row: Item) -> bool:
    """Return whether the hold is not settled. Rows from before decision 0142 have True where others have a name."""
    return row["settled"] not in (True, row["name"])


def _prepare_accounts(resources: Resources, accounts: Sequence[ShardedAccount], replaced_hold: str) -> bool:
    """Release expired holds and open new accounts. Return True when the accounts have to be read again.

    Args:
        replaced_hold: The turn's last hold. It is released too, because its request died and has no ledger row.
    """
    table = resources.settings.bridges_table
    is_changed = False
    for account in accounts:
        state = account.total
        for shard, item in enumerate(account.items):
            for hold in list_releasable_holds(item, resources.clock.time(), replaced_hold):
                sort_key = account_sort_key(state.date.month, shard)
                resources.tables.write_items(build_release_update(table, state.account.pk, sort_key, hold))
                is_changed = True
        if not state.includes_earlier_spending:
            _open_account(resources, state.account, state.date)
            is_changed = True
    return is_changed


def _open_account(resources: Resources, account: BudgetAccount, date: BudgetDate) -> None:
    """Open an account, so that a budget set today counts from the first day of the month (decision 0056).

    Its items are read after the rollups, so that they have everything that the rollups have. The first item gets what
    the others do not have.
    """
    month_rollup, day_rollup = load_spending_rollups(resources, account.tenant, date)
    table = resources.settings.bridges_table
    items = resources.tables.batch_get_items(table, list_account_keys(account, date.month))
    read = ShardedAccount.from_items(account, date, items)
    first = read.first_item
    month_spent = compute_account_spending(month_rollup, account) - (
        read.total.month_period.spent - first.month_period.spent
    )
    day_spent = compute_account_spending(day_rollup, account) - (read.total.day_period.spent - first.day_period.spent)
    update = build_opening_update(table, first, resources.clock.now_iso(), month_spent, day_spent)
    try:
        resources.tables.write_items(update)
    except ConditionFailed:
        return


def _gather_budget(
    resources: Resources, accounts: Sequence[ShardedAccount], shards: Sequence[AccountState | None], amount: Decimal
) -> None:
    """Make room for an amount in one item of each account that has it in several only.

    Raises:
        PaymentRequired: That cannot be done, because different items have the most of the day and of the month left.
    """
    for account, shard in zip(accounts, shards, strict=True):
        if shard is not None:
            continue
        moves = account.build_moves(resources.settings.bridges_table, amount)
        if not moves:
            raise build_refusal(account.total, amount)
        with contextlib.suppress(ConditionFailed, TransactionCanceled):
            resources.tables.write_items(*moves)


def _build_hold_writes(
    resources: Resources, request: BudgetedRequest, row: Item | None, states: Sequence[AccountState], amount: Decimal
) -> list[Write]:
    """Build the writes of a hold: its row, in place of the turn's last one, and the hold in each account."""
    now = int(resources.clock.time())
    # The date at which the accounts were read, also when midnight has passed since (decision 0170).
    date = states[0].date if states else BudgetDate.from_epoch_seconds(now)
    expires = now + request.lifetime_seconds
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
        "shards": {state.account.pk: state.shard for state in states if state.shard},
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
    return [
        build_release_update(table, account, account_sort_key(row["month"], _get_shard(row, account)), row["name"])
        for account in remaining
    ]


def _get_shard(row: Item, account: str) -> int:
    """Return which item of an account a hold is in. Rows from before decision 0242 do not say, and mean the first."""
    return int(row.get("shards", {}).get(account, 0))


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
    latest = max(((usage.round, usage.hold_attempt) for usage in usages), default=(0, 0))
    is_settled = _is_open(row) and (ends_turn or latest >= (row["round"], row["attempt"]))
    return _build_account_writes(resources, row, usages, is_settled=is_settled)


def _build_account_writes(
    resources: Resources, row: Item, usages: Sequence[RequestUsage], *, is_settled: bool
) -> list[Write]:
    """Build the writes that charge ledger rows, and with `is_settled` those that settle the hold, naming it.

    A later hold has another name, so it is never settled by them.
    """
    table = resources.settings.bridges_table
    costs = _sum_cost_by_date(resources, usages)
    writes: list[Write] = []
    if is_settled:
        settled = "SET settled = :name"
        writes.append(Update(table, row["pk"], row["sk"], settled, {":name": row["name"]}, condition=""))
    for account in row["accounts"]:
        hold = row["name"] if is_settled else ""
        writes += build_spending_updates(
            table, account, costs, hold=hold, hold_month=row["month"], shard=_get_shard(row, account)
        )
    return writes


def _sum_cost_by_date(resources: Resources, usages: Sequence[RequestUsage]) -> dict[BudgetDate, Decimal]:
    costs: dict[BudgetDate, Decimal] = {}
    for usage in usages:
        cost = usage.cost if usage.is_priced else compute_cost(find_price_of_unpriced_models(resources), usage.tokens)
        if cost:
            date = BudgetDate.from_iso_instant(usage.recorded_at)
            costs[date] = costs.get(date, ZERO_USD) + cost
    return costs
