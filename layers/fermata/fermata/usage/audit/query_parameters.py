"""Parse the query parameters of an audit: `since` and `tz` (decision 0052)."""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from fermata.domain.errors import InvalidRequest

DEFAULT_AUDIT_DAYS = 30
MAX_QUOTED_ZONE_CHARS = 60
_UNDETERMINED_ZONE = "Etc/Unknown"
"""What a browser calls the zone of a machine that does not say."""
_MACHINE_ZONE = re.compile(r"(?:right|posix)/|(?:localtime|posixrules|Factory)$")
"""Files beside the zones of some machines: the machine's own zone, or copies that count leap seconds."""
LAST_QUARTER_START = datetime(9999, 12, 31, 23, 45, tzinfo=UTC)
"""Start of the last quarter of an hour that a `datetime` can express. An audit that begins later is empty."""
_EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
_LATEST = datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)
_INSTANT_PATTERN = re.compile(
    r"(?P<year>\d{4})(-(?P<month>\d\d)(-(?P<day>\d\d))?)?"
    r"([T ](?P<clock>\d\d:\d\d(:\d\d(\.\d+)?)?)(?P<offset>Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_DEFAULT_PARTS = {"month": "01", "day": "01", "clock": "00:00", "offset": "Z"}
_LAST_MIDNIGHT = re.compile(r"24:00(:00(\.0+)?)?\Z")
"""ISO 8601 lets a day end with 24:00."""


def parse_since(text: str | None, now: float) -> datetime:
    """Parse an instant in the forms that JavaScript's `Date` accepts, to the millisecond; without a zone it is UTC.

    Args:
        text: Value of `since`; when it is missing or malformed, the audit covers DEFAULT_AUDIT_DAYS.
        now: POSIX seconds.
    """
    # In a URL a plus sign is a space, so an offset is tried with its plus sign restored.
    for spelling in (text, text.replace(" ", "+")) if text else ():
        if (moment := _parse_instant(spelling)) is not None:
            return moment
    return _to_utc(datetime.fromtimestamp(now, UTC) - timedelta(days=DEFAULT_AUDIT_DAYS))


def _parse_instant(text: str) -> datetime | None:
    match = _INSTANT_PATTERN.fullmatch(text.upper())
    if match is None:
        return None
    month, day, clock, offset = (match[name] or default for name, default in _DEFAULT_PARTS.items())
    extra_day = timedelta()
    if _LAST_MIDNIGHT.match(clock):
        extra_day = timedelta(days=1)
        clock = clock.replace("24", "00", 1)
    try:
        moment = datetime.fromisoformat(f"{match['year']}-{month}-{day}T{clock}{offset}")
    except ValueError:
        return None
    try:
        return _to_utc(moment + extra_day)
    except OverflowError:  # within the years 1 to 9999 in its own zone, but not in UTC
        return _EARLIEST if moment.year == 1 else _LATEST


def _to_utc(moment: datetime) -> datetime:
    moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def format_instant(moment: datetime) -> str:
    """Return the ISO text in the form of stored instants.

    The text is not made from POSIX seconds, because a float is no longer exact to the millisecond in the year 9999.
    """
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def parse_time_zone(name: str | None) -> tzinfo:
    """Return the IANA time zone; UTC when the name is missing or empty, or the browser could not determine its zone.

    Raises:
        InvalidRequest: There is no such zone.
    """
    try:
        if name is None or name in ("", _UNDETERMINED_ZONE):
            return UTC
        if _MACHINE_ZONE.match(name):
            raise ValueError(name)
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        quoted = (name or "")[:MAX_QUOTED_ZONE_CHARS]
        raise InvalidRequest(f"{quoted!r} is no time zone. Give an IANA name, such as Europe/Berlin.") from None
