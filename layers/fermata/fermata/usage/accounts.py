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

from fermata.aws.dynamo import Item, Update

ZERO = Decimal(0)
KEPT_SECONDS = 62 * 86400


@dataclass(frozen=True)
class Period:
    """The day and the month of a request, UTC."""

    month: str
    day: str

    @classmethod
    def at(cls, now: float) -> "Period":
        moment = datetime.fromtimestamp(now, UTC)
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
class Account:
    """`whose` as it is said to somebody. `user` is empty for the tenant's own. `since`: when its limits were set."""

    pk: str
    whose: str
    user: str = ""
    daily: Decimal | None = None
    monthly: Decimal | None = None
    since: str = ""

    @classmethod
    def of_tenant(cls, tenant: str) -> "Account":
        return cls(f"t#{tenant}#budget#tenant", "The workspace's")

    @classmethod
    def of_user(cls, tenant: str, user: str) -> "Account":
        return cls(f"t#{tenant}#budget#user#{user}", "Your", user)

    def limited(self, daily: Decimal | None, monthly: Decimal | None, since: str = "") -> "Account":
        return replace(self, daily=daily, monthly=monthly, since=since)


@dataclass(frozen=True)
class Pot:
    """One limit in one period."""

    name: str
    limit: Decimal | None
    spent: Decimal
    held: Decimal
    renews: datetime
    names: tuple[str, str]
    """The attributes of `spent` and `held`."""

    @property
    def left(self) -> Decimal | None:
        return None if self.limit is None else self.limit - self.spent - self.held

    def takes(self, amount: Decimal) -> bool:
        """Whether it fits. What has no known price needs something to be left, however little."""
        return self.left is None or (self.left >= amount if amount else self.left > 0)


@dataclass(frozen=True)
class State:
    """An account as it was read."""

    account: Account
    period: Period
    item: Item

    @property
    def is_begun(self) -> bool:
        """Whether what was spent before there was a limit is in it (holds.py): while there is none, nobody counts."""
        return "begun" in self.item and str(self.item["begun"]) >= self.account.since

    @property
    def pots(self) -> tuple[Pot, Pot]:
        day = (f"spent_{self.period.day}", f"held_{self.period.day}")
        return (
            self._pot("daily", self.account.daily, day, self.period.next_day),
            self._pot("monthly", self.account.monthly, ("spent", "held"), self.period.next_month),
        )

    def _pot(self, name: str, limit: Decimal | None, names: tuple[str, str], renews: datetime) -> Pot:
        spent, held = (self.item.get(attribute, 0) + ZERO for attribute in names)
        return Pot(name, limit, spent, held, renews, names)

    def expired(self, now: float) -> Iterator[str]:
        """Holds that nobody came back for."""
        for name in self.item:
            if name.startswith("x#") and int(name.split("#")[1]) <= now:
                yield name


def hold_name(expires: int, day: str, request: str) -> str:
    return f"x#{expires}#{day}#{request}"


def begin(table: str, state: State, now: str, month: Decimal, day: Decimal) -> Update:
    """Put in what the rollups say was spent so far. They lag: what was counted here already is never made less. Refused
    when somebody began it meanwhile, or settled something.
    """
    today, whole = state.pots
    since = state.account.since
    return Update(
        table,
        state.account.pk,
        state.period.month,
        "SET begun = :now, spent = :month, #day = :today, #ttl = :ttl",
        {
            ":now": max(now, since),
            ":since": since,
            ":was": whole.spent,
            ":month": max(month, whole.spent),
            ":today": max(day, today.spent),
            ":ttl": int(state.period.next_month.timestamp()) + KEPT_SECONDS,
        },
        names={"#day": today.names[0], "#ttl": "ttl"},
        condition="(attribute_not_exists(begun) OR begun < :since) AND (attribute_not_exists(spent) OR spent = :was)",
    )


def take(table: str, state: State, name: str, amount: Decimal) -> Update:
    """Hold an amount. Where much is left, others may spend and hold half of that meanwhile; where little is, nobody."""
    values: dict[str, Any] = {":amount": amount, ":zero": 0}
    conditions = []
    for number, pot in enumerate(state.pots):
        if pot.left is not None:
            room = max((pot.left - amount) / 2, ZERO)
            values |= {f":s{number}": pot.spent + room, f":h{number}": pot.held + room}
            conditions += [_at_most(f"#s{number}", f":s{number}"), _at_most(f"#h{number}", f":h{number}")]
    day, month = state.pots
    names = {"#hold": name, "#h0": day.names[1], "#h1": month.names[1], "#s0": day.names[0], "#s1": month.names[0]}
    expression = (
        "SET #hold = :amount, #h0 = if_not_exists(#h0, :zero) + :amount, #h1 = if_not_exists(#h1, :zero) + :amount"
    )
    condition = " AND ".join(["attribute_not_exists(#hold)", *conditions])
    used = {name: it for name, it in names.items() if name in expression or name in condition}
    return Update(table, state.account.pk, state.period.month, expression, values, used, condition)


def _at_most(name: str, value: str) -> str:
    return f"(attribute_not_exists({name}) OR {name} <= {value})"


def give_back(table: str, pk: str, month: str, name: str, spent: Decimal) -> Update:
    """The hold is over, and this much was spent; nothing, where nobody came back for it."""
    day = name.split("#")[2]
    freed = "{0} = if_not_exists({0}, :zero) - if_not_exists(#hold, :zero)"
    expression = f"SET {freed.format('#held')}, {freed.format('#held_day')} REMOVE #hold"
    names = {"#hold": name, "#held": "held", "#held_day": f"held_{day}"}
    values: dict[str, Any] = {":zero": 0}
    if spent:
        expression += " ADD #spent :spent, #spent_day :spent"
        names |= {"#spent": "spent", "#spent_day": f"spent_{day}"}
        values[":spent"] = spent
    return Update(table, pk, month, expression, values, names, condition="")
