"""Reserve before a provider is asked, settle with the ledger row, and free what a crash left.

A turn asks for one thing at a time, so it has one hold: t#<tenant>#turn#<turn> hold, in the table of its log. It says
which request it is for and which accounts it lies in. Settling needs no condition, so that it can never keep a ledger
row from being written; a hold that has expired and was freed meanwhile is simply not there to be subtracted.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from fermata.aws.desk import Desk
from fermata.aws.dynamo import ConditionFailed, Item, Put, TransactionRefused, Update, Write
from fermata.usage.accounts import Account, Period, Pot, State, begin, give_back, hold_name, take
from fermata.usage.budgets import budgets_of
from fermata.usage.ledger import Spent, partition
from fermata.usage.sheets import Sheet
from fermata.words.errors import PaymentRequired, Unavailable

HOLD_SECONDS = 3600
"""Longer than any request and its recovery take."""
HOLD_ROW_SECONDS = 7 * 86400
TRIES = 60


@dataclass(frozen=True)
class Request:
    """One provider request that is about to be made."""

    tenant: str
    user: str
    turn: str
    round: int
    attempt: int

    @property
    def name(self) -> str:
        return f"{self.turn}.{self.round}.{self.attempt}"


def reserve(desk: Desk, request: Request, amount: Decimal) -> None:
    """Raises PaymentRequired where a budget does not have that much left. Again for the same request: nothing."""
    table, pk = desk.settings.bridges_table, partition(request.tenant, request.turn)
    for _ in range(TRIES):
        period = Period.at(desk.clock.time())
        accounts = budgets_of(desk, request.tenant).accounts(request.tenant, request.user, period.month)
        found = desk.tables.batch_get(table, [(pk, "hold"), *((account.pk, period.month) for account in accounts)])
        row = found.get((pk, "hold"))
        if row and _is_for(row, request, desk.clock.time()):
            return
        states = [State(account, period, found.get((account.pk, period.month), {})) for account in accounts]
        if _prepare(desk, states):
            continue
        _refuse_what_does_not_fit(states, amount)
        try:
            desk.tables.write(*_holding(desk, request, row, states, amount))
        except (ConditionFailed, TransactionRefused):
            desk.clock.sleep(random.uniform(0, 0.02))  # noqa: S311 (jitter, not a secret)
        else:
            return
    raise Unavailable("Very many requests of this workspace began at once. Send the same request again.", retry_after=1)


def _is_for(row: Item, request: Request, now: float) -> bool:
    """Whether the turn's hold is good for this request: it is the same one, or a later one that has taken over."""
    is_open = not row["settled"] and row["expires"] > now
    return is_open and (row["round"], row["attempt"]) >= (request.round, request.attempt)


def _prepare(desk: Desk, states: Sequence[State]) -> bool:
    """Free what has expired, begin what is new. True when something was done: the accounts are to be read again."""
    table, done = desk.settings.bridges_table, False
    for state in states:
        for name in state.expired(desk.clock.time()):
            desk.tables.write(give_back(table, state.account.pk, state.period.month, name, Decimal(0)))
            done = True
        if not state.is_begun:
            _begin(desk, state)
            done = True
    return done


def _begin(desk: Desk, state: State) -> None:
    """A budget that is set today counts from the first of the month."""
    account, table = state.account, desk.settings.bridges_table
    month, today = so_far(desk, account.pk.split("#")[1], state.period)
    try:
        desk.tables.write(begin(table, state, desk.clock.instant(), cost_of(month, account), cost_of(today, account)))
    except ConditionFailed:
        return


def so_far(desk: Desk, tenant: str, period: Period) -> tuple[Sheet, Sheet]:
    """What the rollups know of this month and this day."""
    from fermata.usage.rollups import editions, load_sheets  # few turns begin a period; no other needs them

    month, today, last = Sheet(), Sheet(), f"{period.month}-{period.day}"
    for day, sheet in load_sheets(desk, editions(desk, tenant)[0], "day", period.month, last):
        month.add(sheet)
        if day == last:
            today.add(sheet)
    return month, today


def cost_of(sheet: Sheet, account: Account) -> Decimal:
    if account.user:
        return sheet.users[account.user].cost
    return sum((totals.cost for totals in sheet.scopes.values()), Decimal(0))


def _refuse_what_does_not_fit(states: Sequence[State], amount: Decimal) -> None:
    for state in states:
        for pot in state.pots:
            if not pot.takes(amount):
                raise PaymentRequired(_refusal(state.account, pot, amount))


def _refusal(account: Account, pot: Pot, amount: Decimal) -> str:
    left, limit = max(pot.left or Decimal(0), Decimal(0)), pot.limit or Decimal(0)
    held = f" ({_usd(pot.held)} is held for requests under way)" if pot.held else ""
    price = f"this request may take {_usd(amount)}" if amount else "what this request costs is not known beforehand"
    return (
        f"{account.whose} {pot.name} budget of {_usd(limit)} has {_usd(left)} left{held}, and {price}. "
        f"It renews at {pot.renews:%Y-%m-%dT%H:%MZ}."
    )


def _usd(amount: Decimal) -> str:
    """Cents, or as much finer as it takes to see anything."""
    return f"${amount:,.2f}" if not amount or amount >= Decimal("0.01") else f"${amount.normalize():f}"


def _holding(desk: Desk, request: Request, row: Item | None, states: Sequence[State], amount: Decimal) -> list[Write]:
    now = int(desk.clock.time())
    period, expires = Period.at(now), now + HOLD_SECONDS
    name = hold_name(expires, period.day, request.name)
    item: Item = {
        "pk": partition(request.tenant, request.turn),
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
        "ttl": now + HOLD_ROW_SECONDS,
    }
    table = desk.settings.bridges_table
    put = Put(table, item, absent=True)
    if row:
        was, names = {":was": row["version"]}, {"#version": "version"}
        put = Put(table, item, condition="#version = :was", values=was, names=names)
    return [put, *(take(table, state, name, amount) for state in states)]


def settle(desk: Desk, tenant: str, turn: str, spent: Sequence[Spent]) -> list[Write]:
    """The writes that go along with the ledger rows of a request: its hold is over, this is what it cost."""
    pk = partition(tenant, turn)
    row = desk.tables.get(desk.settings.bridges_table, pk, "hold")
    if row is None or row["settled"]:
        return []
    cost = sum((told.cost for told in spent), Decimal(0))
    over = Update(desk.settings.bridges_table, pk, "hold", "SET settled = :yes", {":yes": True}, condition="")
    freed = [
        give_back(desk.settings.bridges_table, account, row["month"], row["name"], cost) for account in row["accounts"]
    ]
    return [over, *freed]


def release(desk: Desk, tenant: str, turn: str) -> None:
    """The request will not be made."""
    if writes := settle(desk, tenant, turn, ()):
        desk.tables.write(*writes)
