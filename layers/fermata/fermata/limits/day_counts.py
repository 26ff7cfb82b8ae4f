"""Count what is used in a day in UTC, in `day`, `uploads` and `bytes`. They are added in any order."""

from collections.abc import Mapping
from datetime import UTC, datetime

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.domain.value_dataclass import value_dataclass
from fermata.limits.count_row_update import CountRowUpdate
from fermata.limits.is_count import is_count

UPLOADS, STORED_BYTES = "uploads", "bytes"
_DAY = "day"
_COUNTS = (UPLOADS, STORED_BYTES)


@value_dataclass(frozen=True)
class DayCounts:
    """The counts of a day of a row as it was read."""

    item: Item
    now: float

    @property
    def seconds_left(self) -> float:
        return 86_400 - self.now % 86_400

    def get_count(self, name: str) -> int:
        """Return how many uploads or bytes were used in the day."""
        count = self.item.get(name)
        return count if self.item.get(_DAY) == self._day and is_count(count) else 0

    def count(self, update: CountRowUpdate, used: Mapping[str, int], limits: Mapping[str, int]) -> None:
        """Count uploads and bytes, on condition that they are within the limits."""
        update.set(_DAY, self._day)
        if self._is_healthy:
            update.require_as_read_or(self.item, _DAY, self._day)
            for name in (name for name in _COUNTS if used[name]):
                update.require_at_most(name, limits[name] - used[name])
                update.add(name, used[name])
        else:
            update.require_as_read(self.item, [_DAY, *_COUNTS])
            for name in _COUNTS:
                update.set(name, self.get_count(name) + used[name])

    @property
    def _day(self) -> str:
        """The day that counts: today, or a later one that a process with another clock has begun."""
        today = _to_day(self.now)
        stored = self.item.get(_DAY)
        return max(today, stored) if stored in (today, _to_day(self.now + 86_400)) else today

    @property
    def _is_healthy(self) -> bool:
        """Whether the row has counts of this day, or none at all."""
        stored = [self.item[name] for name in _COUNTS if name in self.item]
        return not stored or (self.item.get(_DAY) == self._day and all(map(is_count, stored)))


def _to_day(epoch_seconds: float) -> str:
    return f"{datetime.fromtimestamp(epoch_seconds, UTC):%Y-%m-%d}"
