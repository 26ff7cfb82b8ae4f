"""Compute the days of a time zone, in quarters of an hour."""

from datetime import date, datetime, time, timedelta, tzinfo

from fermata.domain.value_dataclass import value_dataclass
from fermata.usage.quarter_hours import QUARTER_SECONDS, quarter_start


@value_dataclass(frozen=True)
class LocalDay:
    """Quarters of a local day, from `first_quarter` up to but not including `end_quarter`: 23, 24, 24.5 or 25 hours."""

    label: str
    first_quarter: int
    end_quarter: int


class LocalDays:
    """Days of one time zone. Each day is computed once when the quarters are asked for in order."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._day = LocalDay("", 0, 0)

    def day_of_quarter(self, quarter: int) -> LocalDay:
        """Return the local day that contains a quarter."""
        if not self._day.first_quarter <= quarter < self._day.end_quarter:
            today = quarter_start(quarter).astimezone(self._zone).date()
            tomorrow = today + timedelta(days=1)
            self._day = LocalDay(today.isoformat(), self._first_quarter_of(today), self._first_quarter_of(tomorrow))
        return self._day

    def _first_quarter_of(self, day: date) -> int:
        """Return the first quarter of a day. Where the clocks skip midnight, it starts with the change."""
        return int(datetime.combine(day, time(), self._zone).timestamp()) // QUARTER_SECONDS
