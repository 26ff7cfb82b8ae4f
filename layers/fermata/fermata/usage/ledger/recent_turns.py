"""Find the turns of a tenant by their newest ledger rows, the newest first (decision 0278).

What one page reads is bounded, however many requests a tenant makes. A turn is on the page of its newest row only.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.domain.page_cursor import match_page_cursor
from fermata.usage.ledger.ledger_store import (
    FIRST_LEDGER_MONTH,
    build_time_index_key,
    read_month_rows,
    read_turn_ends,
    read_turn_requests,
)

RECENT_CURSOR_PATTERN = re.compile(r"\d{4}-\d{2}(-\d{2}T[0-9:.]{8,15}Z#[A-Za-z0-9_-]{1,64}#(end|r\d+#a\d+#t\d+))?")
_ROWS_PER_READ = 200
_READS_PER_PAGE = 3
"""Months without a turn that one page skips."""
_MONTHS_AHEAD = 12
"""Months before a page in which a row is looked for, so that the last page says that it is the last."""


class RecentTurn(NamedTuple):
    """A turn, one of its rows, the rows of its requests, and the row of its end; None while it has not ended."""

    id: str
    row: Item
    requests: list[Item]
    end: Item | None


class RecentTurnsPage(NamedTuple):
    turns: list[RecentTurn]
    next_cursor: str | None


def read_recent_turns(resources: Resources, tenant: str, cursor: str, limit: int) -> RecentTurnsPage:
    """Return a page of turns that have sent a request to a provider.

    Args:
        cursor: `next_cursor` of the page before; empty for the first page.
        limit: The greatest number of turns, at most 100.

    Raises:
        InvalidRequest: The cursor is malformed.
    """
    if cursor:
        match_page_cursor(cursor, RECENT_CURSOR_PATTERN)
    position: str | None = cursor or _current_month(resources)
    turns: list[RecentTurn] = []
    for _ in range(_READS_PER_PAGE):
        if position is None or turns:
            break
        turns, position = _read_part(resources, tenant, position, limit)
    return RecentTurnsPage(turns, _skip_empty_months(resources, tenant, position))


def _skip_empty_months(resources: Resources, tenant: str, position: str | None) -> str | None:
    """Return a position as it is, or if it is that of a whole month, that of the next month which has rows."""
    for _ in range(_MONTHS_AHEAD):
        if position is None or len(position) > len("2026-01"):
            break
        if read_month_rows(resources, tenant, position, limit=1, start_after=None):
            break
        position = _previous_month(position)
    return position


def _read_part(resources: Resources, tenant: str, position: str, limit: int) -> tuple[list[RecentTurn], str | None]:
    """Read rows of one month from a position on. Return their turns, and the position after them."""
    month = position[:7]
    start_after = build_time_index_key(tenant, position) if len(position) > len(month) else None
    rows = read_month_rows(resources, tenant, month, limit=_ROWS_PER_READ, start_after=start_after)
    found: dict[str, Item] = {}
    consumed = 0
    for row in rows:
        if row["turn"] not in found and len(found) == limit:
            break
        found.setdefault(row["turn"], row)
        consumed += 1
    is_month_read = consumed == len(rows) < _ROWS_PER_READ
    next_position = _previous_month(month) if is_month_read else rows[consumed - 1]["gsk"]
    turns = _read_recent_turns(resources, tenant, found)
    return [turn for turn in turns if not _is_on_earlier_page(turn, position)], next_position


def _read_recent_turns(resources: Resources, tenant: str, found: Mapping[str, Item]) -> list[RecentTurn]:
    ends = read_turn_ends(resources, tenant, found)
    return [
        RecentTurn(turn, row, read_turn_requests(resources, tenant, turn), ends.get(turn))
        for turn, row in found.items()
    ]


def _is_on_earlier_page(turn: RecentTurn, position: str) -> bool:
    """Return whether a row of the turn was read before this position."""
    rows = [*turn.requests, *([turn.end] if turn.end else [])]
    first_of_earlier = position if len(position) > len("2026-01") else f"{position}~"
    return any(row["gsk"] >= first_of_earlier for row in rows)


def _current_month(resources: Resources) -> str:
    return resources.clock.now_iso()[:7]


def _previous_month(month: str) -> str | None:
    year, number = int(month[:4]), int(month[5:])
    previous = f"{year - (number == 1):04d}-{(number - 2) % 12 + 1:02d}"
    return previous if previous >= FIRST_LEDGER_MONTH else None
