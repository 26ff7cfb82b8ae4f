"""Keep budget accounts: how much of a month is spent, and how much is held for requests under way.

One item per account and month, in the table of turns; for a tenant several (account_shards.py):

    t#<tenant>#budget#tenant        2026-11     begun; spent, held; spent_28, held_28 of each day; x#… for each hold
    t#<tenant>#budget#user#<user>   2026-11

A hold is an attribute `x#<expires>#<day>#<turn>.<round>.<attempt>` whose value is the amount. Taking a hold is
conditional: neither more spent nor more held than the reader allowed for. Releasing one is unconditional and
idempotent: `held - (the hold, or 0 when it is gone)`. Decision 0055 explains why no lock is needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Item, Update
from fermata.domain.value_dataclass import value_dataclass
from fermata.usage.usage_totals import ZERO_USD

ACCOUNT_RETENTION_SECONDS = 62 * 86400
"""How long an account's item outlives its month."""


@value_dataclass(frozen=True)
class BudgetDate:
    """Month (`2026-11`) and day of the month (`28`) in UTC."""

    month: str
    day: str

    @classmethod
    def from_epoch_seconds(cls, epoch_seconds: float) -> "BudgetDate":
        moment = datetime.fromtimestamp(epoch_seconds, UTC)
        return cls(f"{moment:%Y-%m}", f"{moment:%d}")

    @classmethod
    def from_iso_instant(cls, instant: str) -> "BudgetDate":
        """Return the date of an ISO instant in UTC."""
        return cls(instant[:7], instant[8:10])

    @property
    def _midnight(self) -> datetime:
        return datetime.fromisoformat(f"{self.month}-{self.day}T00:00Z")

    @property
    def next_day(self) -> datetime:
        return self._midnight + timedelta(days=1)

    @property
    def next_month(self) -> datetime:
        return (self._midnight.replace(day=1) + timedelta(days=31)).replace(day=1)


@value_dataclass(frozen=True)
class BudgetAccount:
    """Account of a tenant, or of one of its users, with its limits in USD.

    Attributes:
        possessive: How an error message names the owner.
        user: Empty for the tenant's own account.
        limits_since: ISO instant at which the limits were set; empty without limits.
    """

    tenant: str
    pk: str
    possessive: str
    user: str = ""
    daily_limit: Decimal | None = None
    monthly_limit: Decimal | None = None
    limits_since: str = ""

    @classmethod
    def for_tenant(cls, tenant: str) -> "BudgetAccount":
        """Make the account of all users of a tenant, without limits."""
        return cls(tenant, f"t#{tenant}#budget#tenant", "The workspace's")

    @classmethod
    def for_user(cls, tenant: str, user: str) -> "BudgetAccount":
        """Make the account of one user, without limits."""
        return cls(tenant, f"t#{tenant}#budget#user#{user}", "Your", user)

    def with_limits(self, daily: Decimal | None, monthly: Decimal | None, since: str = "") -> "BudgetAccount":
        """Return the account with limits.

        Args:
            daily: USD a day, in UTC; None for no limit.
            monthly: USD a month, in UTC; None for no limit.
            since: ISO instant from which spending counts against them.
        """
        return replace(self, daily_limit=daily, monthly_limit=monthly, limits_since=since)


@value_dataclass(frozen=True)
class BudgetPeriod:
    """Limit of an account in one day or month, and what is spent and held there, in USD."""

    name: str
    limit: Decimal | None
    spent: Decimal
    held: Decimal
    renews_at: datetime
    spent_attribute: str
    held_attribute: str

    @property
    def used(self) -> Decimal:
        return self.spent + self.held

    @property
    def remaining(self) -> Decimal | None:
        """The USD that is neither spent nor held; None without a limit. Negative when the limit was lowered."""
        return None if self.limit is None else self.limit - self.spent - self.held

    def can_cover(self, amount: Decimal) -> bool:
        """Return whether the amount fits. An amount of 0 means an unknown price: anything has to remain."""
        return self.remaining is None or (self.remaining >= amount if amount else self.remaining > 0)


@value_dataclass(frozen=True)
class AccountState:
    """Account as it was read for one month, or one of the items of an account (decision 0242)."""

    account: BudgetAccount
    date: BudgetDate
    item: Item
    shard: int = 0

    @property
    def sort_key(self) -> str:
        return account_sort_key(self.date.month, self.shard)

    @property
    def includes_earlier_spending(self) -> bool:
        """Whether the account contains what was spent before its limits were set; without limits nothing counts."""
        return "begun" in self.item and str(self.item["begun"]) >= self.account.limits_since

    @property
    def day_period(self) -> BudgetPeriod:
        suffix = f"_{self.date.day}"
        return self._period("daily", self.account.daily_limit, self.date.next_day, suffix)

    @property
    def month_period(self) -> BudgetPeriod:
        return self._period("monthly", self.account.monthly_limit, self.date.next_month)

    @property
    def day_and_month_periods(self) -> tuple[BudgetPeriod, BudgetPeriod]:
        return self.day_period, self.month_period

    def _period(self, name: str, limit: Decimal | None, renews_at: datetime, suffix: str = "") -> BudgetPeriod:
        spent_attribute = f"spent{suffix}"
        held_attribute = f"held{suffix}"
        spent = self.item.get(spent_attribute, 0) + ZERO_USD
        held = self.item.get(held_attribute, 0) + ZERO_USD
        return BudgetPeriod(name, limit, spent, held, renews_at, spent_attribute, held_attribute)


def list_releasable_holds(item: Item, now: float, replaced_hold: str) -> Iterator[str]:
    """Return the attributes of holds that were not settled in time, and `replaced_hold` if it is there."""
    for name in item:
        if name == replaced_hold or (name.startswith("x#") and int(name.split("#")[1]) <= now):
            yield name


def account_sort_key(month: str, shard: int) -> str:
    return f"{month}#{shard:02}" if shard else month


def hold_attribute(expires: int, day: str, request: str) -> str:
    return f"x#{expires}#{day}#{request}"


def build_opening_update(table: str, state: AccountState, now: str, month_spent: Decimal, day_spent: Decimal) -> Update:
    """Build the write that opens an account with what was spent before it had limits.

    The rollups lag behind the ledger, so the larger of their sum and the account's own count is kept (decision 0088).
    The write fails when another process opened the account or settled a request meanwhile.

    Args:
        now: ISO instant.
        month_spent: USD spent in the month according to the rollups.
        day_spent: USD spent in the day according to the rollups.
    """
    day = state.day_period
    month = state.month_period
    since = state.account.limits_since
    return Update(
        table,
        state.account.pk,
        state.date.month,
        "SET begun = :now, spent = :month, #day = :today, #ttl = :ttl",
        {
            ":now": max(now, since),
            ":since": since,
            ":was": month.spent,
            ":month": max(month_spent, month.spent),
            ":today": max(day_spent, day.spent),
            ":ttl": int(state.date.next_month.timestamp()) + ACCOUNT_RETENTION_SECONDS,
        },
        names={"#day": day.spent_attribute, "#ttl": "ttl"},
        condition="(attribute_not_exists(begun) OR begun < :since) AND (attribute_not_exists(spent) OR spent = :was)",
    )


def build_hold_update(table: str, state: AccountState, hold: str, amount: Decimal) -> Update:
    """Build the write that holds an amount of USD under the attribute `hold`.

    Other processes may spend and hold half of what remains between the read and this write. So where much remains
    they do not get in each other's way, and where little remains the account must not have changed (decision 0055).
    """
    values: dict[str, Any] = {":amount": amount, ":zero": 0}
    conditions = ["attribute_not_exists(#hold)"]
    for number, period in enumerate(state.day_and_month_periods):
        if period.remaining is not None:
            slack = max((period.remaining - amount) / 2, ZERO_USD)
            values |= {f":s{number}": period.spent + slack, f":h{number}": period.held + slack}
            conditions += [_at_most(f"#s{number}", f":s{number}"), _at_most(f"#h{number}", f":h{number}")]
    expression = (
        "SET #hold = :amount, #h0 = if_not_exists(#h0, :zero) + :amount, #h1 = if_not_exists(#h1, :zero) + :amount"
    )
    condition = " AND ".join(conditions)
    names = {"#hold": hold}
    for number, period in enumerate(state.day_and_month_periods):
        names |= {f"#h{number}": period.held_attribute, f"#s{number}": period.spent_attribute}
    used_names = {name: attribute for name, attribute in names.items() if name in expression or name in condition}
    return Update(table, state.account.pk, state.sort_key, expression, values, used_names, condition)


def build_moving_update(table: str, state: AccountState, amounts: Sequence[Decimal]) -> Update:
    """Build the write that adds to what an item has spent, where other items have less for it (decision 0242).

    It fails if the item took part in another move, or if it takes spending over and has more now than was read.

    Args:
        amounts: USD of the day and of the month; negative ones are taken away.
    """
    names = {"#moves": "moves"}
    values: dict[str, Any] = {":one": 1}
    conditions = ["attribute_not_exists(#moves)"]
    if "moves" in state.item:
        values[":moves"] = state.item["moves"]
        conditions = ["#moves = :moves"]
    for number, (period, amount) in enumerate(zip(state.day_and_month_periods, amounts, strict=True)):
        names[f"#s{number}"] = period.spent_attribute
        values[f":a{number}"] = amount or ZERO_USD  # without the exponent that a rounded 0 has
        if amount > 0:
            names[f"#h{number}"] = period.held_attribute
            values |= {f":s{number}": period.spent, f":h{number}": period.held}
            conditions += [_at_most(f"#s{number}", f":s{number}"), _at_most(f"#h{number}", f":h{number}")]
    expression = "ADD #s0 :a0, #s1 :a1, #moves :one"
    return Update(table, state.account.pk, state.sort_key, expression, values, names, " AND ".join(conditions))


def _at_most(name: str, value: str) -> str:
    return f"(attribute_not_exists({name}) OR {name} <= {value})"


def build_release_update(table: str, pk: str, sort_key: str, hold: str) -> Update:
    """Build the write that releases a hold for which nothing was spent."""
    return _build_spending_update(table, pk, sort_key, hold, {})


def build_spending_updates(
    table: str, pk: str, costs: Mapping[BudgetDate, Decimal], *, hold: str = "", hold_month: str = "", shard: int = 0
) -> list[Update]:
    """Build the writes that record costs (USD) in an account, one write for each month, and release a hold.

    A cost counts on its own date, as it does in the rollups, also where the hold was taken the month before
    (decision 0170). The writes have no condition. They belong to a transaction that happens once.
    """
    months = sorted({date.month for date in costs} | ({hold_month} if hold else set()))
    return [
        _build_spending_update(
            table,
            pk,
            account_sort_key(month, shard),
            hold if month == hold_month else "",
            {date.day: cost for date, cost in costs.items() if date.month == month},
        )
        for month in months
    ]


def _build_spending_update(table: str, pk: str, sort_key: str, hold: str, costs: Mapping[str, Decimal]) -> Update:
    """Build one write. A hold that is gone subtracts 0, so a release may be repeated (decision 0055).

    Args:
        hold: The attribute to release; empty for none.
        costs: By day of the month.
    """
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    clauses: list[str] = []
    if hold:
        released = "{0} = if_not_exists({0}, :zero) - if_not_exists(#hold, :zero)"
        clauses.append(f"SET {released.format('#held')}, {released.format('#held_day')} REMOVE #hold")
        names |= {"#hold": hold, "#held": "held", "#held_day": f"held_{hold.split('#')[2]}"}
        values[":zero"] = 0
    if costs:
        clauses.append(", ".join(["ADD #spent :spent", *(f"#spent_{day} :spent_{day}" for day in costs)]))
        names |= {"#spent": "spent"} | {f"#spent_{day}": f"spent_{day}" for day in costs}
        values |= {":spent": sum(costs.values(), ZERO_USD)} | {f":spent_{day}": cost for day, cost in costs.items()}
    return Update(table, pk, sort_key, " ".join(clauses), values, names, condition="")
