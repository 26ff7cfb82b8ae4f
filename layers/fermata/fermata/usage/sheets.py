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

from fermata.usage.chats import Dimension

ZERO = Decimal(0)


@dataclass(slots=True)
class Totals:
    """`chats`: conversations whose latest activity is here. `unbillable`: the part of `cost` that is ours to bear.
    `unpriced`: requests of which nobody knows what they cost.
    """

    chats: int = 0
    requests: int = 0
    prompt: int = 0
    completion: int = 0
    cost: Decimal = ZERO
    cache_read: int = 0
    cache_creation: int = 0
    unbillable: Decimal = ZERO
    unpriced: int = 0

    def add(self, other: "Totals") -> None:
        self.chats += other.chats
        self.requests += other.requests
        self.prompt += other.prompt
        self.completion += other.completion
        self.cost += other.cost
        self.cache_read += other.cache_read
        self.cache_creation += other.cache_creation
        self.unbillable += other.unbillable
        self.unpriced += other.unpriced

    def listed(self) -> list[Any]:
        """For JSON: exact costs as text, zeros at the end left out."""
        values: list[Any] = [self.chats, self.requests, self.prompt, self.completion, _exact(self.cost)]
        values += [self.cache_read, self.cache_creation, _exact(self.unbillable), self.unpriced]
        while values and not values[-1]:
            values.pop()
        return values

    @classmethod
    def read(cls, values: list[Any]) -> "Totals":
        totals = cls(*values)
        totals.cost, totals.unbillable = Decimal(totals.cost or 0), Decimal(totals.unbillable or 0)
        return totals


def _exact(cost: Decimal) -> str | int:
    return f"{cost.normalize():f}" if cost else 0


Sums = dict[str, Totals]
Counts = dict[int, dict[int, int]]


def _sums() -> Sums:
    return defaultdict(Totals)


def _gaps() -> Counts:
    return defaultdict(lambda: defaultdict(int))


@dataclass(slots=True)
class Sheet:
    """`quarters` and `gaps` are by quarter of the day, 0 to 95; `gaps[quarter][gap]` counts conversations."""

    users: Sums = field(default_factory=_sums)
    scopes: Sums = field(default_factory=_sums)
    models: Sums = field(default_factory=_sums)
    quarters: dict[int, Totals] = field(default_factory=lambda: defaultdict(Totals))
    gaps: Counts = field(default_factory=_gaps)

    def add(self, other: "Sheet") -> None:
        for mine, theirs in zip(self._dimensions(), other._dimensions(), strict=True):
            for name, totals in theirs.items():
                mine[name].add(totals)
        for quarter, totals in other.quarters.items():
            self.quarters[quarter].add(totals)
        for quarter, counts in other.gaps.items():
            for gap, count in counts.items():
                self.gaps[quarter][gap] += count

    def sums(self, dimension: Dimension) -> Sums:
        sums: Sums = getattr(self, dimension)
        return sums

    def _dimensions(self) -> tuple[Sums, Sums, Sums]:
        return self.users, self.scopes, self.models

    def pack(self) -> bytes:
        """JSON, deflated: a day of a thousand users is about 20 KB."""
        users, scopes, models = (
            {name: listed for name, totals in sums.items() if (listed := totals.listed())}
            for sums in self._dimensions()
        )
        quarters = {quarter: listed for quarter, totals in self.quarters.items() if (listed := totals.listed())}
        gaps = {quarter: left for quarter, counts in self.gaps.items() if (left := _without_zeros(counts))}
        whole = {"u": users, "s": scopes, "m": models, "q": quarters, "g": gaps}
        return zlib.compress(json.dumps(whole, separators=(",", ":"), sort_keys=True).encode())

    @classmethod
    def unpack(cls, packed: bytes) -> "Sheet":
        whole = json.loads(zlib.decompress(packed))
        sheet = cls()
        for sums, name in zip(sheet._dimensions(), ("u", "s", "m"), strict=True):
            sums.update({key: Totals.read(values) for key, values in whole[name].items()})
        sheet.quarters.update({int(key): Totals.read(values) for key, values in whole["q"].items()})
        for quarter, counts in whole["g"].items():
            sheet.gaps[int(quarter)].update({int(gap): count for gap, count in counts.items()})
        return sheet


def _without_zeros(counts: dict[int, int]) -> dict[int, int]:
    return {gap: count for gap, count in counts.items() if count}
