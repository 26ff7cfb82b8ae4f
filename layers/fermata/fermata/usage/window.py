"""What a viewer asks for: from when on, and whose days."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from fermata.usage.quarters import SECONDS, begins

DAYS = 30
"""How far back an audit looks when nobody says otherwise."""
LAST = datetime(9999, 12, 31, 23, 45, tzinfo=UTC)
"""The last quarter of an hour that a calendar has."""


def since(text: str | None, now: float) -> datetime:
    """An ISO instant (UTC where it names no zone), to the millisecond. Missing or wrong: 30 days before now."""
    if text:
        for spelled in (text, text.replace(" ", "+")):  # a plus sign in an address is a space
            try:
                return _utc(datetime.fromisoformat(spelled))
            except (ValueError, OverflowError):
                continue
    return _utc(datetime.fromtimestamp(now, UTC) - timedelta(days=DAYS))


def _utc(moment: datetime) -> datetime:
    moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    if moment > LAST:
        raise OverflowError("nothing can be behind it")
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def zone(name: str | None) -> tzinfo:
    """An IANA zone; UTC for what is none."""
    try:
        return ZoneInfo(name or "UTC")
    except (ValueError, OSError, KeyError):
        return UTC


@dataclass(frozen=True)
class LocalDay:
    """A day somewhere: the quarters from `first` up to, not including, `behind`. It may have 23, 24.5 or 25 hours."""

    label: str
    first: int
    behind: int


class LocalDays:
    """The days of one zone. Asked for quarters in order, it computes each day once."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._day = LocalDay("", 0, 0)

    def of(self, quarter: int) -> LocalDay:
        if not self._day.first <= quarter < self._day.behind:
            today = begins(quarter).astimezone(self._zone).date()
            first, behind = self._midnight(today), self._midnight(today + timedelta(days=1))
            self._day = LocalDay(today.isoformat(), first, behind)
        return self._day

    def _midnight(self, day: date) -> int:
        """The first quarter of a day. Where clocks skip midnight, this is the moment they do."""
        return int(datetime.combine(day, time(), self._zone).timestamp()) // SECONDS
