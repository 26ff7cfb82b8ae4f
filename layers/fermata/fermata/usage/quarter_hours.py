"""Count quarters of an hour, numbered from 1970 in UTC.

The offset of every IANA time zone is a multiple of 15 minutes, so every local day starts with a quarter. Sums by
quarter can therefore be added up to the days of any zone (decision 0050).
"""

from datetime import UTC, datetime
from functools import lru_cache

QUARTER_SECONDS = 900
QUARTERS_PER_DAY = 96


def quarter_from_instant(instant: str) -> int:
    """Return the quarter that contains an ISO instant.

    Raises:
        ValueError, OverflowError: The text is no ISO instant, or its year is out of range.
    """
    return int(datetime.fromisoformat(instant).timestamp()) // QUARTER_SECONDS


def quarter_start(quarter: int) -> datetime:
    return datetime.fromtimestamp(quarter * QUARTER_SECONDS, UTC)


@lru_cache(4096)
def quarter_day(quarter: int) -> str:
    """Return the UTC day of a quarter, such as `2026-11-28`."""
    return quarter_start(quarter).date().isoformat()


@lru_cache(4096)
def quarter_label(quarter: int) -> str:
    """Return the start of a quarter in UTC, such as `2026-11-28T07:15`."""
    return quarter_start(quarter).replace(tzinfo=None).isoformat(timespec="minutes")
