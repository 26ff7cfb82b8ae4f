"""When a conversation was active, as far as counting needs it."""

import bisect
import json
from dataclasses import dataclass, field
from typing import Any, Literal

from fermata.usage.quarters import A_DAY

Dimension = Literal["users", "scopes", "models"]
LONGEST_GAP = 2 * A_DAY
"""No local day is longer, so a gap beyond it need not be told from none."""
KEPT = 42 * A_DAY
"""How far behind its newest activity a conversation's older ones are remembered; a stream delivers within a day."""


class TooLate(Exception):
    """A row from so long ago that what lies around it is forgotten: rebuild the tenant's rollups."""


@dataclass
class Chat:
    """`active`: the quarters it was active in, ascending. `latest`: the last of them for each of its models, and for
    its user and scope, which hardly ever change.
    """

    active: list[int] = field(default_factory=list)
    latest: dict[str, int] = field(default_factory=dict)
    forgotten: int = 0
    """Nothing before this quarter is remembered."""
    version: int = 0
    changed: bool = False

    def around(self, quarter: int) -> tuple[int | None, int | None]:
        """The activity right before and right after a quarter."""
        if quarter - LONGEST_GAP < self.forgotten:
            raise TooLate(f"This conversation's activity before quarter {self.forgotten} is forgotten.")
        place = bisect.bisect_left(self.active, quarter)
        after = self.active[place] if place < len(self.active) else None
        return (self.active[place - 1] if place else None), after

    def add(self, quarter: int) -> None:
        bisect.insort(self.active, quarter)
        self.changed = True

    def last(self, dimension: Dimension, name: str) -> int | None:
        return self.latest.get(f"{dimension}/{name}")

    def use(self, dimension: Dimension, name: str, quarter: int) -> None:
        self.latest[f"{dimension}/{name}"] = quarter
        self.changed = True

    def is_active(self, first: int, behind: int | None = None) -> bool:
        """Whether there was activity from `first` on (and before `behind`)."""
        place = bisect.bisect_left(self.active, first)
        return place < len(self.active) and (behind is None or self.active[place] < behind)

    def pack(self) -> str:
        horizon = max(self.active[-1] - KEPT, self.forgotten)
        recent = [quarter for quarter in self.active if quarter >= horizon]
        forgotten = horizon if len(recent) < len(self.active) else self.forgotten
        return json.dumps({"a": recent, "l": self.latest, "f": forgotten}, separators=(",", ":"))

    @classmethod
    def unpack(cls, item: dict[str, Any]) -> "Chat":
        data = json.loads(item["data"])
        return cls(data["a"], data["l"], data["f"], item["version"])
