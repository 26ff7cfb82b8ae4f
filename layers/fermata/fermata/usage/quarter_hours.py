"""Time in quarters of an hour, counted from 1970 in UTC.

Every zone's days begin with a quarter (all offsets are multiples of 15 minutes), so what is summed by quarter can be
summed again by anybody's days.
"""

from datetime import UTC, datetime
from functools import lru_cache

QUARTER_SECONDS = 900
QUARTERS_PER_DAY = 96


def quarter_from_instant(instant: str) -> int:
    """Of an ISO instant as it is stored."""
    return int(datetime.fromisoformat(instant).timestamp()) // QUARTER_SECONDS


def quarter_start(quarter: int) -> datetime:
    return datetime.fromtimestamp(quarter * QUARTER_SECONDS, UTC)


@lru_cache(4096)
def quarter_day(quarter: int) -> str:
    """The UTC day, `2026-11-28`."""
    return quarter_start(quarter).date().isoformat()


@lru_cache(4096)
def quarter_label(quarter: int) -> str:
    """The quarter itself, `2026-11-28T07:15`."""
    return quarter_start(quarter).replace(tzinfo=None).isoformat(timespec="minutes")
