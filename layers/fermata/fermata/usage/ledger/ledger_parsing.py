"""Check ledger rows and parse them into increments for the rollups."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.usage.ledger.ledger_store import (
    FIRST_LEDGER_MONTH,
    TURN_END_SORT_KEY,
    ledger_row_key,
    read_turn_requests,
)
from fermata.usage.ledger.usage_increments import MAX_INCREMENTS_PER_TRANSACTION, LedgerRecord, UsageIncrement
from fermata.usage.quarter_hours import quarter_from_instant
from fermata.usage.usage_totals import ZERO_USD, UsageTotals

_REQUIRED_TEXTS = ("tenant", "user", "scope", "conversation", "turn", "provider", "model", "at")
_REQUIRED_COUNTS = ("prompt", "completion", "cacheRead", "cacheCreation")
MAX_LEDGER_AMOUNT = 10**12
"""Of tokens or USD. No request has so many, and sums of larger amounts would not be exact."""
MAX_LEDGER_TEXT_BYTES = 1_800
"""Of a text, and of the texts that together are part of a rollup's key. DynamoDB's keys have 2,048 bytes."""
MAX_SECONDS_AHEAD = 86_400
"""How far ahead of the clock a row may be, in case another clock is ahead. A row beyond would make the recent activity
of its conversation look forgotten.
"""


class UnreadableRow(ValueError):
    """A ledger row is malformed, so it cannot be counted; the message names the defect (decision 0089)."""


def find_row_defect(item: Item, now: float) -> str:
    """Return why a ledger row cannot be counted at `now` (epoch seconds); empty when it can (decision 0140)."""
    wrong = [name for name in _REQUIRED_TEXTS if not _is_short_text(item.get(name))]
    wrong += [] if wrong else _list_long_keys(item)
    wrong += [] if _is_countable_instant(item.get("at"), now) else ["at"]
    wrong += [] if isinstance(item.get("billable"), bool) else ["billable"]
    if item["sk"] != TURN_END_SORT_KEY:
        wrong += [name for name in _REQUIRED_COUNTS if not _is_count(item.get(name))]
        wrong += [] if _is_amount(item.get("cost")) else ["cost"]
        wrong += [] if isinstance(item.get("price", {}), dict) else ["price"]
    return _describe_defect(item, wrong[0]) if wrong else ""


def _is_short_text(value: Any) -> bool:
    return isinstance(value, str) and len(value.encode()) <= MAX_LEDGER_TEXT_BYTES


def _list_long_keys(item: Item) -> list[str]:
    """Return the attributes with which a rollup's keys would be too long."""
    texts = {
        "turn": f"{item['tenant']}{item['turn']}{item['sk']}",
        "conversation": item["tenant"] + item["conversation"],
    }
    return [name for name, text in texts.items() if not _is_short_text(text)]


def _is_countable_instant(value: Any, now: float) -> bool:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    is_known = moment.tzinfo is not None and value >= FIRST_LEDGER_MONTH
    return is_known and value <= iso_from_epoch(now + MAX_SECONDS_AHEAD)


def _is_count(value: Any) -> bool:
    return _is_amount(value) and value == int(value)


def _is_amount(value: Any) -> bool:
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return is_number and 0 <= value < MAX_LEDGER_AMOUNT


def _describe_defect(item: Item, name: str) -> str:
    return f"{name} is {str(item[name])[:60]!r}" if name in item else f"it has no {name}"


def load_ledger_records(resources: Resources, item: Item) -> list[LedgerRecord]:
    """Parse a stored row. For the end of an unbillable turn, this reads the turn's other rows.

    Raises:
        UnreadableRow: The row is malformed.
    """
    now = resources.clock.time()
    if defect := find_row_defect(item, now):
        raise UnreadableRow(defect)
    if item["sk"] != TURN_END_SORT_KEY:
        return [parse_request_row(item)]
    rows = [] if item["billable"] else read_turn_requests(resources, item["tenant"], item["turn"])
    return parse_turn_end_row(item, [row for row in rows if not find_row_defect(row, now)])


def parse_request_row(item: Item) -> LedgerRecord:
    """Parse the row of a provider request that has no defect: tokens, cost, and activity of its conversation."""
    totals = UsageTotals(
        requests=1,
        prompt=int(item["prompt"]),
        completion=int(item["completion"]),
        cost=item["cost"] + ZERO_USD,
        cache_read=int(item["cacheRead"]),
        cache_creation=int(item["cacheCreation"]),
        unbillable=ZERO_USD if item["billable"] else item["cost"] + ZERO_USD,
        unpriced=int(not item.get("priced", True)),  # older rows count as priced (decision 0085)
    )
    return LedgerRecord(ledger_row_key(item), (_make_increment(item, totals),), item["conversation"])


def parse_turn_end_row(item: Item, rows: Iterable[Item]) -> list[LedgerRecord]:
    """Parse the end row of a turn whose billable cost is reversed (decision 0053).

    Ledger rows never change, so the reversal is posted in the quarter of each row, in records that fit into a
    transaction.

    Args:
        item: The end row.
        rows: The turn's request rows that have no defect; none when the turn is billable.
    """
    reversals: dict[int, UsageIncrement] = {}
    for row in rows:
        if row["billable"] and row["cost"]:
            increment = _make_increment(row, UsageTotals(unbillable=row["cost"] + ZERO_USD))
            reversals.setdefault(increment.quarter, _make_increment(row, UsageTotals())).totals.add(increment.totals)
    increments = tuple(reversals.values())
    starts = range(0, len(increments), MAX_INCREMENTS_PER_TRANSACTION)
    parts = [increments[start : start + MAX_INCREMENTS_PER_TRANSACTION] for start in starts]
    return [LedgerRecord(f"{ledger_row_key(item)}.{number}", part) for number, part in enumerate(parts)]


def _make_increment(item: Item, totals: UsageTotals) -> UsageIncrement:
    model = f"{item['provider']}/{item['model']}"
    return UsageIncrement(quarter_from_instant(item["at"]), item["user"], item["scope"], model, totals)
