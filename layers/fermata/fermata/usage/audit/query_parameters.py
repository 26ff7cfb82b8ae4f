"""What a viewer asks for: from when on, and whose days."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from fermata.usage.quarter_hours import QUARTER_SECONDS, quarter_start

DEFAULT_AUDIT_DAYS = 30
"""How far back an audit looks when nobody says otherwise."""
LAST_QUARTER_START = datetime(9999, 12, 31, 23, 45, tzinfo=UTC)
"""The last quarter of an hour that a calendar has: nothing can be behind it."""
_EARLIEST, _LATEST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)
_INSTANT_PATTERN = re.compile(
    r"(?P<year>\d{4})(-(?P<month>\d\d)(-(?P<day>\d\d))?)?"
    r"([T ](?P<clock>\d\d:\d\d(:\d\d(\.\d+)?)?)(?P<offset>Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_DEFAULT_PARTS = {"month": "01", "day": "01", "clock": "00:00", "offset": "Z"}
_LAST_MIDNIGHT = re.compile(r"24:00(:00(\.0+)?)?\Z")
"""As days end in ISO 8601."""


def parse_since(text: str | None, now: float) -> datetime:
    """An instant as JavaScript's dates are written (UTC where it names no zone), to the millisecond. Missing or wrong:
    30 days before now.
    """
    for spelled in (text, text.replace(" ", "+")) if text else ():  # a plus sign in an address is a space
        if (moment := _parse_instant(spelled)) is not None:
            return moment
    return _to_utc(datetime.fromtimestamp(now, UTC) - timedelta(days=DEFAULT_AUDIT_DAYS))


def _parse_instant(text: str) -> datetime | None:
    found = _INSTANT_PATTERN.fullmatch(text.upper())
    if found is None:
        return None
    month, day, clock, offset = (found[name] or usual for name, usual in _DEFAULT_PARTS.items())
    midnight = timedelta(days=1) if _LAST_MIDNIGHT.match(clock) else timedelta()
    clock = clock.replace("24", "00", 1) if midnight else clock
    try:
        moment = datetime.fromisoformat(f"{found['year']}-{month}-{day}T{clock}{offset}")
    except ValueError:
        return None
    try:
        return _to_utc(moment + midnight)
    except OverflowError:  # in its own zone it is in the first year or the last, in UTC in none
        return _EARLIEST if moment.year == 1 else _LATEST


def _to_utc(moment: datetime) -> datetime:
    moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def format_instant(moment: datetime) -> str:
    """As instants are stored. Not by way of seconds, which are no longer exact to the millisecond in the year 9999."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def parse_time_zone(name: str | None) -> tzinfo:
    """An IANA zone; UTC for what is none."""
    try:
        return ZoneInfo(name or "UTC")
    except (ValueError, OSError, KeyError):
        return UTC


@dataclass(frozen=True)
class LocalDay:
    """A day somewhere: the quarters from `first` up to, not including, `behind`. It may have 23, 24.5 or 25 hours."""

    label: str
    first_quarter: int
    end_quarter: int


class LocalDays:
    """The days of one zone. Asked for quarters in order, it computes each day once."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._day = LocalDay("", 0, 0)

    def day_of_quarter(self, quarter: int) -> LocalDay:
        if not self._day.first_quarter <= quarter < self._day.end_quarter:
            today = quarter_start(quarter).astimezone(self._zone).date()
            first, behind = self._first_quarter_of(today), self._first_quarter_of(today + timedelta(days=1))
            self._day = LocalDay(today.isoformat(), first, behind)
        return self._day

    def _first_quarter_of(self, day: date) -> int:
        """The first quarter of a day. Where clocks skip midnight, this is the moment they do."""
        return int(datetime.combine(day, time(), self._zone).timestamp()) // QUARTER_SECONDS
