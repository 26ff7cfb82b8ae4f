"""Sum the usage of one UTC day or quarter of an hour by user, scope and model. Rollups of periods can be added.

The rollup of a day also holds its quarters, and for each quarter how long its conversations had been inactive before.
With these gaps, distinct conversations of any stretch of time can be counted by addition (decision 0051).
"""

import json
import zlib
from collections import defaultdict
from dataclasses import dataclass, field

from fermata.usage.usage_totals import TotalsByName, UsageDimension, UsageTotals, new_totals_by_name

GapCounts = dict[int, dict[int, int]]


def _new_gap_counts() -> GapCounts:
    return defaultdict(lambda: defaultdict(int))


@dataclass(slots=True)
class PeriodRollup:
    """Sums of one period.

    Attributes:
        quarters: Totals by quarter of the day, 0 to 95; empty in the rollup of a quarter.
        gaps: `gaps[quarter][gap]` counts the conversations that were active in a quarter of the day and inactive for
            `gap` quarters before; 0 stands for no earlier activity.
    """

    users: TotalsByName = field(default_factory=new_totals_by_name)
    scopes: TotalsByName = field(default_factory=new_totals_by_name)
    models: TotalsByName = field(default_factory=new_totals_by_name)
    quarters: dict[int, UsageTotals] = field(default_factory=lambda: defaultdict(UsageTotals))
    gaps: GapCounts = field(default_factory=_new_gap_counts)

    def add(self, other: "PeriodRollup") -> None:
        """Add the totals of another rollup of the same period to this one, in place."""
        for own_totals, other_totals in zip(self._dimensions(), other._dimensions(), strict=True):
            for name, totals in other_totals.items():
                own_totals[name].add(totals)
        for quarter, totals in other.quarters.items():
            self.quarters[quarter].add(totals)
        for quarter, counts in other.gaps.items():
            for gap, count in counts.items():
                self.gaps[quarter][gap] += count

    def get_totals(self, dimension: UsageDimension) -> TotalsByName:
        totals_by_name: TotalsByName = getattr(self, dimension)
        return totals_by_name

    def _dimensions(self) -> tuple[TotalsByName, TotalsByName, TotalsByName]:
        return self.users, self.scopes, self.models

    def pack(self) -> bytes:
        """Return deflated JSON: a day of a thousand users takes about 20 KB."""
        users, scopes, models = (
            {name: listed for name, totals in totals_by_name.items() if (listed := totals.to_list())}
            for totals_by_name in self._dimensions()
        )
        quarters = {quarter: listed for quarter, totals in self.quarters.items() if (listed := totals.to_list())}
        gaps = {quarter: nonzero for quarter, counts in self.gaps.items() if (nonzero := _without_zeros(counts))}
        data = {"u": users, "s": scopes, "m": models, "q": quarters, "g": gaps}
        return zlib.compress(json.dumps(data, separators=(",", ":"), sort_keys=True).encode())

    @classmethod
    def unpack(cls, packed: bytes) -> "PeriodRollup":
        data = json.loads(zlib.decompress(packed))
        rollup = cls()
        for totals_by_name, member in zip(rollup._dimensions(), ("u", "s", "m"), strict=True):
            totals_by_name.update({name: UsageTotals.from_list(values) for name, values in data[member].items()})
        rollup.quarters.update({int(key): UsageTotals.from_list(values) for key, values in data["q"].items()})
        for quarter, counts in data["g"].items():
            rollup.gaps[int(quarter)].update({int(gap): count for gap, count in counts.items()})
        return rollup


def _without_zeros(counts: dict[int, int]) -> dict[int, int]:
    return {gap: count for gap, count in counts.items() if count}
