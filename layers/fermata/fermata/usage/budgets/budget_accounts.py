"""Accounts: how much of a month is spent, and how much is held for requests under way. One item per month:

    t#<tenant>#budget#tenant        2026-11     begun; spent, held; spent_28, held_28 of each day; x#… for each hold
    t#<tenant>#budget#user#<user>   2026-11

A hold is an attribute named `x#<expires>#<day>#<turn>.<round>.<attempt>`, its value the amount. To take one, two
things must be so at once: not more spent, and not more held, than the reader allowed for. To give it back is
`held - (the hold, or 0 where it is gone)`, which needs no condition and is right however often it is done.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from fermata.aws.dynamodb import Item, Update

ZERO_USD = Decimal(0)
ACCOUNT_RETENTION_SECONDS = 62 * 86400


@dataclass(frozen=True)
class BudgetDate:
    """The day and the month of a request, UTC."""

    month: str
    day: str

    @classmethod
    def from_timestamp(cls, timestamp: float) -> "BudgetDate":
        moment = datetime.fromtimestamp(timestamp, UTC)
        return cls(f"{moment:%Y-%m}", f"{moment:%d}")

    @property
    def _midnight(self) -> datetime:
        return datetime.fromisoformat(f"{self.month}-{self.day}T00:00Z")

    @property
    def next_day(self) -> datetime:
        return self._midnight + timedelta(days=1)

    @property
    def next_month(self) -> datetime:
        return (self._midnight.replace(day=1) + timedelta(days=31)).replace(day=1)


@dataclass(frozen=True)
class BudgetAccount:
    """`whose` as it is said to somebody. `user` is empty for the tenant's own. `since`: when its limits were set."""

    pk: str
    possessive: str
    user: str = ""
    daily_limit: Decimal | None = None
    monthly_limit: Decimal | None = None
    limits_since: str = ""

    @classmethod
    def for_tenant(cls, tenant: str) -> "BudgetAccount":
        return cls(f"t#{tenant}#budget#tenant", "The workspace's")

    @classmethod
    def for_user(cls, tenant: str, user: str) -> "BudgetAccount":
        return cls(f"t#{tenant}#budget#user#{user}", "Your", user)

    def with_limits(self, daily: Decimal | None, monthly: Decimal | None, since: str = "") -> "BudgetAccount":
        return replace(self, daily_limit=daily, monthly_limit=monthly, limits_since=since)


@dataclass(frozen=True)
class BudgetPeriod:
    """One limit in one period."""

    name: str
    limit: Decimal | None
    spent: Decimal
    held: Decimal
    renews_at: datetime
    attributes: tuple[str, str]
    """The attributes of `spent` and `held`."""

    @property
    def remaining(self) -> Decimal | None:
        return None if self.limit is None else self.limit - self.spent - self.held

    def can_cover(self, amount: Decimal) -> bool:
        """Whether it fits. What has no known price needs something to be left, however little."""
        return self.remaining is None or (self.remaining >= amount if amount else self.remaining > 0)


@dataclass(frozen=True)
class AccountState:
    """An account as it was read."""

    account: BudgetAccount
    date: BudgetDate
    item: Item

    @property
    def is_opened(self) -> bool:
        """Whether what was spent before there was a limit is in it (holds.py): while there is none, nobody counts."""
        return "begun" in self.item and str(self.item["begun"]) >= self.account.limits_since

    @property
    def periods(self) -> tuple[BudgetPeriod, BudgetPeriod]:
        day = (f"spent_{self.date.day}", f"held_{self.date.day}")
        return (
            self._period("daily", self.account.daily_limit, day, self.date.next_day),
            self._period("monthly", self.account.monthly_limit, ("spent", "held"), self.date.next_month),
        )

    def _period(
        self, name: str, limit: Decimal | None, attributes: tuple[str, str], renews_at: datetime
    ) -> BudgetPeriod:
        spent, held = (self.item.get(attribute, 0) + ZERO_USD for attribute in attributes)
        return BudgetPeriod(name, limit, spent, held, renews_at, attributes)

    def list_expired_holds(self, now: float) -> Iterator[str]:
        """Holds that nobody came back for."""
        for name in self.item:
            if name.startswith("x#") and int(name.split("#")[1]) <= now:
                yield name


def hold_attribute(expires: int, day: str, request: str) -> str:
    return f"x#{expires}#{day}#{request}"


def build_opening_update(table: str, state: AccountState, now: str, month_spent: Decimal, day_spent: Decimal) -> Update:
    """Put in what the rollups say was spent so far. They lag: what was counted here already is never made less. Refused
    when somebody began it meanwhile, or settled something.
    """
    today, whole = state.periods
    since = state.account.limits_since
    return Update(
        table,
        state.account.pk,
        state.date.month,
        "SET begun = :now, spent = :month, #day = :today, #ttl = :ttl",
        {
            ":now": max(now, since),
            ":since": since,
            ":was": whole.spent,
            ":month": max(month_spent, whole.spent),
            ":today": max(day_spent, today.spent),
            ":ttl": int(state.date.next_month.timestamp()) + ACCOUNT_RETENTION_SECONDS,
        },
        names={"#day": today.attributes[0], "#ttl": "ttl"},
        condition="(attribute_not_exists(begun) OR begun < :since) AND (attribute_not_exists(spent) OR spent = :was)",
    )


def build_hold_update(table: str, state: AccountState, hold: str, amount: Decimal) -> Update:
    """Hold an amount. Where much is left, others may spend and hold half of that meanwhile; where little is, nobody."""
    values: dict[str, Any] = {":amount": amount, ":zero": 0}
    conditions = []
    for number, pot in enumerate(state.periods):
        if pot.remaining is not None:
            room = max((pot.remaining - amount) / 2, ZERO_USD)
            values |= {f":s{number}": pot.spent + room, f":h{number}": pot.held + room}
            conditions += [_at_most(f"#s{number}", f":s{number}"), _at_most(f"#h{number}", f":h{number}")]
    day, month = state.periods
    names = {
        "#hold": hold,
        "#h0": day.attributes[1],
        "#h1": month.attributes[1],
        "#s0": day.attributes[0],
        "#s1": month.attributes[0],
    }
    expression = (
        "SET #hold = :amount, #h0 = if_not_exists(#h0, :zero) + :amount, #h1 = if_not_exists(#h1, :zero) + :amount"
    )
    condition = " AND ".join(["attribute_not_exists(#hold)", *conditions])
    used = {name: it for name, it in names.items() if name in expression or name in condition}
    return Update(table, state.account.pk, state.date.month, expression, values, used, condition)


def _at_most(name: str, value: str) -> str:
    return f"(attribute_not_exists({name}) OR {name} <= {value})"


def build_release_update(table: str, pk: str, month: str, hold: str, spent: Decimal) -> Update:
    """The hold is over, and this much was spent; nothing, where nobody came back for it."""
    day = hold.split("#")[2]
    freed = "{0} = if_not_exists({0}, :zero) - if_not_exists(#hold, :zero)"
    expression = f"SET {freed.format('#held')}, {freed.format('#held_day')} REMOVE #hold"
    names = {"#hold": hold, "#held": "held", "#held_day": f"held_{day}"}
    values: dict[str, Any] = {":zero": 0}
    if spent:
        expression += " ADD #spent :spent, #spent_day :spent"
        names |= {"#spent": "spent", "#spent_day": f"spent_{day}"}
        values[":spent"] = spent
    return Update(table, pk, month, expression, values, names, condition="")
