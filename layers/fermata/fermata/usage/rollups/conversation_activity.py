"""When a conversation was active, as far as counting needs it."""

import bisect
import json
from dataclasses import dataclass, field
from typing import Any, Literal

from fermata.usage.quarter_hours import QUARTERS_PER_DAY

RollupDimension = Literal["users", "scopes", "models"]
MAX_GAP_QUARTERS = 2 * QUARTERS_PER_DAY
"""No local day is longer, so a gap beyond it need not be told from none."""
ACTIVITY_RETENTION_QUARTERS = 42 * QUARTERS_PER_DAY
"""How far behind its newest activity a conversation's older ones are remembered; a stream delivers within a day."""


class ActivityForgotten(Exception):
    """A row from so long ago that what lies around it is forgotten: rebuild the tenant's rollups."""


@dataclass
class ConversationActivity:
    """`active`: the quarters it was active in, ascending. `latest`: the last of them for each of its models, and for
    its user and scope, which hardly ever change.
    """

    active_quarters: list[int] = field(default_factory=list)
    latest_by_name: dict[str, int] = field(default_factory=dict)
    forgotten_before: int = 0
    """Nothing before this quarter is remembered."""
    version: int = 0
    is_changed: bool = False

    def find_neighbours(self, quarter: int) -> tuple[int | None, int | None]:
        """The activity right before and right after a quarter."""
        if quarter - MAX_GAP_QUARTERS < self.forgotten_before:
            raise ActivityForgotten(
                f"This conversation's activity before quarter {self.forgotten_before} is forgotten."
            )
        place = bisect.bisect_left(self.active_quarters, quarter)
        after = self.active_quarters[place] if place < len(self.active_quarters) else None
        return (self.active_quarters[place - 1] if place else None), after

    def add_quarter(self, quarter: int) -> None:
        bisect.insort(self.active_quarters, quarter)
        self.is_changed = True

    def get_latest(self, dimension: RollupDimension, name: str) -> int | None:
        return self.latest_by_name.get(f"{dimension}/{name}")

    def set_latest(self, dimension: RollupDimension, name: str, quarter: int) -> None:
        self.latest_by_name[f"{dimension}/{name}"] = quarter
        self.is_changed = True

    def is_active_between(self, start: int, end: int | None = None) -> bool:
        """Whether there was activity from `first` on (and before `behind`)."""
        place = bisect.bisect_left(self.active_quarters, start)
        return place < len(self.active_quarters) and (end is None or self.active_quarters[place] < end)

    def pack(self) -> str:
        horizon = max(self.active_quarters[-1] - ACTIVITY_RETENTION_QUARTERS, self.forgotten_before)
        recent = [quarter for quarter in self.active_quarters if quarter >= horizon]
        forgotten = horizon if len(recent) < len(self.active_quarters) else self.forgotten_before
        return json.dumps({"a": recent, "l": self.latest_by_name, "f": forgotten}, separators=(",", ":"))

    @classmethod
    def unpack(cls, item: dict[str, Any]) -> "ConversationActivity":
        data = json.loads(item["data"])
        return cls(data["a"], data["l"], data["f"], item["version"])
