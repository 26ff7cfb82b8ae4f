"""Time in quarters of an hour, counted from 1970 in UTC.

Every zone's days begin with a quarter (all offsets are multiples of 15 minutes), so what is summed by quarter can be
summed again by anybody's days.
"""

from datetime import UTC, datetime
from functools import lru_cache

SECONDS = 900
A_DAY = 96


def quarter_of(instant: str) -> int:
    """Of an ISO instant as it is stored."""
    return int(datetime.fromisoformat(instant).timestamp()) // SECONDS


def begins(quarter: int) -> datetime:
    return datetime.fromtimestamp(quarter * SECONDS, UTC)


@lru_cache(4096)
def day_of(quarter: int) -> str:
    """The UTC day, `2026-11-28`."""
    return begins(quarter).date().isoformat()


@lru_cache(4096)
def name_of(quarter: int) -> str:
    """The quarter itself, `2026-11-28T07:15`."""
    return begins(quarter).replace(tzinfo=None).isoformat(timespec="minutes")
