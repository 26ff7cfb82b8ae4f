"""Sums on a sheet: what a UTC day or a quarter of an hour came to, by user, scope and model. Sheets can be added.

A day's sheet also holds its quarters, and how long before each of them its conversations had last been active: with
that, distinct conversations can be counted in any stretch of time by addition alone (docs/decisions/0051).
"""

import json
import zlib
from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from fermata.usage.rollups.conversation_activity import RollupDimension

ZERO_COST = Decimal(0)


@dataclass(slots=True)
class UsageTotals:
    """`chats`: conversations whose latest activity is here. `unbillable`: the part of `cost` that is ours to bear.
    `unpriced`: requests of which nobody knows what they cost.
    """

    conversations: int = 0
    requests: int = 0
    prompt: int = 0
    completion: int = 0
    cost: Decimal = ZERO_COST
    cache_read: int = 0
    cache_creation: int = 0
    unbillable: Decimal = ZERO_COST
    unpriced: int = 0

    def add(self, other: "UsageTotals") -> None:
        self.conversations += other.conversations
        self.requests += other.requests
        self.prompt += other.prompt
        self.completion += other.completion
        self.cost += other.cost
        self.cache_read += other.cache_read
        self.cache_creation += other.cache_creation
        self.unbillable += other.unbillable
        self.unpriced += other.unpriced

    def to_list(self) -> list[Any]:
        """For JSON: exact costs as text, zeros at the end left out."""
        values: list[Any] = [self.conversations, self.requests, self.prompt, self.completion, _cost_to_json(self.cost)]
        values += [self.cache_read, self.cache_creation, _cost_to_json(self.unbillable), self.unpriced]
        while values and not values[-1]:
            values.pop()
        return values

    @classmethod
    def from_list(cls, values: list[Any]) -> "UsageTotals":
        totals = cls(*values)
        totals.cost, totals.unbillable = Decimal(totals.cost or 0), Decimal(totals.unbillable or 0)
        return totals


def _cost_to_json(cost: Decimal) -> str | int:
    return f"{cost.normalize():f}" if cost else 0


TotalsByName = dict[str, UsageTotals]
GapCounts = dict[int, dict[int, int]]


def _new_totals_by_name() -> TotalsByName:
    return defaultdict(UsageTotals)


def _new_gap_counts() -> GapCounts:
    return defaultdict(lambda: defaultdict(int))


@dataclass(slots=True)
class PeriodRollup:
    """`quarters` and `gaps` are by quarter of the day, 0 to 95; `gaps[quarter][gap]` counts conversations."""

    users: TotalsByName = field(default_factory=_new_totals_by_name)
    scopes: TotalsByName = field(default_factory=_new_totals_by_name)
    models: TotalsByName = field(default_factory=_new_totals_by_name)
    quarters: dict[int, UsageTotals] = field(default_factory=lambda: defaultdict(UsageTotals))
    gaps: GapCounts = field(default_factory=_new_gap_counts)

    def add(self, other: "PeriodRollup") -> None:
        for mine, theirs in zip(self._dimensions(), other._dimensions(), strict=True):
            for name, totals in theirs.items():
                mine[name].add(totals)
        for quarter, totals in other.quarters.items():
            self.quarters[quarter].add(totals)
        for quarter, counts in other.gaps.items():
            for gap, count in counts.items():
                self.gaps[quarter][gap] += count

    def get_totals(self, dimension_name: RollupDimension) -> TotalsByName:
        sums: TotalsByName = getattr(self, dimension_name)
        return sums

    def _dimensions(self) -> tuple[TotalsByName, TotalsByName, TotalsByName]:
        return self.users, self.scopes, self.models

    def pack(self) -> bytes:
        """JSON, deflated: a day of a thousand users is about 20 KB."""
        users, scopes, models = (
            {name: listed for name, totals in sums.items() if (listed := totals.to_list())}
            for sums in self._dimensions()
        )
        quarters = {quarter: listed for quarter, totals in self.quarters.items() if (listed := totals.to_list())}
        gaps = {quarter: left for quarter, counts in self.gaps.items() if (left := _without_zeros(counts))}
        whole = {"u": users, "s": scopes, "m": models, "q": quarters, "g": gaps}
        return zlib.compress(json.dumps(whole, separators=(",", ":"), sort_keys=True).encode())

    @classmethod
    def unpack(cls, packed: bytes) -> "PeriodRollup":
        whole = json.loads(zlib.decompress(packed))
        sheet = cls()
        for sums, name in zip(sheet._dimensions(), ("u", "s", "m"), strict=True):
            sums.update({key: UsageTotals.from_list(values) for key, values in whole[name].items()})
        sheet.quarters.update({int(key): UsageTotals.from_list(values) for key, values in whole["q"].items()})
        for quarter, counts in whole["g"].items():
            sheet.gaps[int(quarter)].update({int(gap): count for gap, count in counts.items()})
        return sheet


def _without_zeros(counts: dict[int, int]) -> dict[int, int]:
    return {gap: count for gap, count in counts.items() if count}
