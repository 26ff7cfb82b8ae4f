"""Activity of one conversation: the quarters in which it was active, as needed to count distinct conversations.

Decision 0051 explains the counting.
"""

import bisect
import json
from dataclasses import dataclass, field
from typing import Any

from fermata.usage.quarter_hours import QUARTERS_PER_DAY
from fermata.usage.usage_totals import UsageDimension

MAX_GAP_QUARTERS = 2 * QUARTERS_PER_DAY
"""No local day is longer, so a longer gap counts like no earlier activity."""
ACTIVITY_RETENTION_QUARTERS = 42 * QUARTERS_PER_DAY
"""How long older activity is kept before the newest. The stream delivers rows within a day."""


class ActivityForgotten(Exception):
    """A row is older than the activity that is kept for its conversation: rebuild the tenant's rollups."""


@dataclass
class ConversationActivity:
    """Quarters in which a conversation was active.

    Attributes:
        active_quarters: Ascending.
        latest_by_name: Latest active quarter of each `<dimension>/<name>`. A conversation hardly ever has more than
            one user and scope, but it may have several models.
        forgotten_before: Activity before this quarter is no longer known.
        version: Version of the stored item; 0 when nothing is stored.
    """

    active_quarters: list[int] = field(default_factory=list)
    latest_by_name: dict[str, int] = field(default_factory=dict)
    forgotten_before: int = 0
    version: int = 0
    is_changed: bool = False

    def find_neighbours(self, quarter: int) -> tuple[int | None, int | None]:
        """Return the last active quarter before `quarter`, and the first one from it on.

        Raises:
            ActivityForgotten: The activity around the quarter is no longer known.
        """
        if quarter - MAX_GAP_QUARTERS < self.forgotten_before:
            raise ActivityForgotten(
                f"This conversation's activity before quarter {self.forgotten_before} is forgotten."
            )
        index = bisect.bisect_left(self.active_quarters, quarter)
        before = self.active_quarters[index - 1] if index else None
        after = self.active_quarters[index] if index < len(self.active_quarters) else None
        return before, after

    def add_quarter(self, quarter: int) -> None:
        bisect.insort(self.active_quarters, quarter)
        self.is_changed = True

    def get_latest(self, dimension: UsageDimension, name: str) -> int | None:
        return self.latest_by_name.get(f"{dimension}/{name}")

    def set_latest(self, dimension: UsageDimension, name: str, quarter: int) -> None:
        self.latest_by_name[f"{dimension}/{name}"] = quarter
        self.is_changed = True

    def is_active_between(self, start: int, end: int | None = None) -> bool:
        """Return whether there was activity from `start` on and, if given, before `end`."""
        index = bisect.bisect_left(self.active_quarters, start)
        return index < len(self.active_quarters) and (end is None or self.active_quarters[index] < end)

    def pack(self) -> str:
        """Return JSON of the activity of the last ACTIVITY_RETENTION_QUARTERS."""
        horizon = max(self.active_quarters[-1] - ACTIVITY_RETENTION_QUARTERS, self.forgotten_before)
        recent = [quarter for quarter in self.active_quarters if quarter >= horizon]
        forgotten_before = horizon if len(recent) < len(self.active_quarters) else self.forgotten_before
        return json.dumps({"a": recent, "l": self.latest_by_name, "f": forgotten_before}, separators=(",", ":"))

    @classmethod
    def unpack(cls, item: dict[str, Any]) -> "ConversationActivity":
        data = json.loads(item["data"])
        return cls(data["a"], data["l"], data["f"], item["version"])
