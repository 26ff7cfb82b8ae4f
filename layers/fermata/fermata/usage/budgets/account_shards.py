"""Spread a tenant's account over several items, so that no item is written by all of its turns (decision 0242).

Item 0 of a month has the sort key `2026-11`, the others `2026-11#01` … `2026-11#15`. Each may use a part of the limit:
at most its cap, of which all caps together make the limit. A hold depends on the caps and on its own item only, so
holds in different items neither wait for each other nor overdraw the budget together. Where no item alone has enough
left, some of what is spent is moved from one item to others.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal

from fermata.aws.dynamodb_items_and_writes import Item, Update
from fermata.domain.value_dataclass import value_dataclass
from fermata.usage.budgets.budget_accounts import (
    AccountState,
    BudgetAccount,
    BudgetDate,
    BudgetPeriod,
    account_sort_key,
    build_moving_update,
)
from fermata.usage.usage_totals import ZERO_USD

MAX_ACCOUNT_SHARDS = 16
MIN_SHARD_USD = Decimal(5)
"""The smallest part of a limit for which a further item is used. Less would be too little for single requests."""
_CAP_STEP = Decimal("1e-6")
_UNLIMITED = Decimal(10) ** 18


@value_dataclass(frozen=True)
class ShardedAccount:
    """An account as it was read.

    Attributes:
        total: The sums of all items; its `item` has `begun` of the first one.
        items: By shard; the missing ones are empty.
    """

    total: AccountState
    items: tuple[Item, ...]

    @classmethod
    def from_items(
        cls, account: BudgetAccount, date: BudgetDate, items: Mapping[tuple[str, str], Item]
    ) -> "ShardedAccount":
        shards = tuple(items.get(key, {}) for key in list_account_keys(account, date.month))
        return cls(AccountState(account, date, _add_up(shards)), shards)

    @property
    def first_item(self) -> AccountState:
        """The item that is opened, and that accounts from before decision 0242 consist of."""
        return replace(self.total, item=self.items[0])

    def choose_shard(self, turn: str, amount: Decimal) -> AccountState | None:
        """Return the item in which a turn holds an amount: always the same one, unless it has too little left.

        Its limits are its caps. Return None if no item alone has enough left.
        """
        states = self._list_usable_shards()
        first = zlib.crc32(turn.encode()) % len(states)
        in_turn = [*states[first:], *states[:first]]
        return next((state for state in in_turn if _can_cover(state, amount)), None)

    def build_moves(self, table: str, amount: Decimal) -> list[Update]:
        """Build the writes that move spending out of the item with the most left, until it has the amount left.

        They are refused if one of the items that take it over has changed. Empty if that cannot be done.
        """
        target, *others = sorted(self._list_usable_shards(), key=_get_room, reverse=True)
        missing = [max(amount - (_get_rest(period)), ZERO_USD) for period in target.day_and_month_periods]
        taken = [ZERO_USD, ZERO_USD]
        updates: list[Update] = []
        for state in others:
            rests = [_get_rest(period) for period in state.day_and_month_periods]
            parts = [min(missing[at] - taken[at], rests[at]) for at in range(len(taken))]
            if any(parts):
                taken = [taken[at] + parts[at] for at in range(len(taken))]
                updates.append(build_moving_update(table, state, parts))
        if taken != missing or not any(missing):
            return []
        return [*updates, build_moving_update(table, target, [-part for part in taken])]

    def _list_usable_shards(self) -> list[AccountState]:
        account = self.total.account
        count = _count_usable_shards(account) if len(self.items) > 1 else 1
        shards = [replace(self.total, item=item, shard=shard) for shard, item in enumerate(self.items)]
        usable, others = shards[:count], shards[count:]
        daily = _compute_caps(self.total.day_period, [s.day_period for s in usable], [s.day_period for s in others])
        monthly = _compute_caps(
            self.total.month_period, [s.month_period for s in usable], [s.month_period for s in others]
        )
        return [
            replace(shard, account=account.with_limits(day, month, account.limits_since))
            for shard, day, month in zip(usable, daily, monthly, strict=True)
        ]


def list_account_keys(account: BudgetAccount, month: str) -> list[tuple[str, str]]:
    """Return the keys of all items of an account. That of a user is one item."""
    count = 1 if account.user else MAX_ACCOUNT_SHARDS
    return [(account.pk, account_sort_key(month, shard)) for shard in range(count)]


def _count_usable_shards(account: BudgetAccount) -> int:
    limits = [limit for limit in (account.daily_limit, account.monthly_limit) if limit is not None]
    if not limits:
        return MAX_ACCOUNT_SHARDS
    return max(1, min(MAX_ACCOUNT_SHARDS, int(min(limits) / MIN_SHARD_USD)))


def _compute_caps(
    total: BudgetPeriod, usable: Sequence[BudgetPeriod], others: Sequence[BudgetPeriod]
) -> list[Decimal | None]:
    """Return how much each usable item may have spent and held at most; together the limit.

    They have equal parts. An item that has more already (it was the only one, or a limit was lowered) keeps what it
    has, and the others share the rest. So their caps stay the same while they are used.
    """
    if total.limit is None:
        return [None] * len(usable)
    remaining = total.limit - sum((period.used for period in others), ZERO_USD)
    caps: dict[int, Decimal] = {}
    sharing = list(range(len(usable)))
    while sharing:
        part = (remaining / len(sharing)).quantize(_CAP_STEP, ROUND_DOWN)
        last_part = remaining - part * (len(sharing) - 1)
        parts = dict.fromkeys(sharing, part) | {sharing[-1]: last_part}
        exceeding = [at for at in sharing if usable[at].used > parts[at]]
        if not exceeding:
            return [(caps | parts)[at] for at in range(len(usable))]
        caps |= {at: usable[at].used for at in exceeding}
        remaining -= sum((usable[at].used for at in exceeding), ZERO_USD)
        sharing = [at for at in sharing if at not in caps]
    return [caps[at] for at in range(len(usable))]


def _can_cover(state: AccountState, amount: Decimal) -> bool:
    return all(period.can_cover(amount) for period in state.day_and_month_periods)


def _get_room(state: AccountState) -> Decimal:
    """Return the amount that the item can hold alone."""
    return min(_get_rest(period) for period in state.day_and_month_periods)


def _get_rest(period: BudgetPeriod) -> Decimal:
    return _UNLIMITED if period.remaining is None else max(period.remaining, ZERO_USD)


def _add_up(items: Sequence[Item]) -> Item:
    total: Item = {}
    for item in items:
        for name, value in item.items():
            if name.startswith(("spent", "held", "x#")):
                total[name] = total.get(name, ZERO_USD) + value
    return total | {name: items[0][name] for name in ("begun",) if name in items[0]}
