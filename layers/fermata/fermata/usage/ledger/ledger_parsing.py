"""Check ledger rows and parse them into postings for the rollups."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from fermata.aws.dynamodb import Item
from fermata.aws.resources import Resources
from fermata.usage.ledger.ledger_store import TURN_END_SORT_KEY, ledger_row_key, read_turn_requests
from fermata.usage.ledger.postings import MAX_POSTINGS_PER_TRANSACTION, LedgerRecord, Posting
from fermata.usage.quarter_hours import quarter_from_instant
from fermata.usage.usage_totals import ZERO_USD, UsageTotals

_REQUIRED_TEXTS = ("tenant", "user", "scope", "conversation", "turn", "provider", "model", "at")
_REQUIRED_COUNTS = ("prompt", "completion", "cacheRead", "cacheCreation")


class UnreadableRow(ValueError):
    """A ledger row is malformed, so it cannot be counted; the message names the defect (decision 0089)."""


def find_row_defect(item: Item) -> str:
    """Return why a ledger row cannot be counted; empty when it can."""
    for name in _REQUIRED_TEXTS:
        if not isinstance(item.get(name), str):
            return _describe_defect(item, name)
    try:
        quarter_from_instant(item["at"])
    except (ValueError, OverflowError):
        return _describe_defect(item, "at")
    if not isinstance(item.get("billable"), bool):
        return _describe_defect(item, "billable")
    if item["sk"] == TURN_END_SORT_KEY:
        return ""
    wrong = [name for name in _REQUIRED_COUNTS if not _is_count(item.get(name))]
    wrong += [] if _is_amount(item.get("cost")) else ["cost"]
    wrong += [] if isinstance(item.get("price", {}), dict) else ["price"]
    return _describe_defect(item, wrong[0]) if wrong else ""


def _is_count(value: Any) -> bool:
    return _is_amount(value) and value == int(value)


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _describe_defect(item: Item, name: str) -> str:
    return f"{name} is {str(item[name])[:60]!r}" if name in item else f"it has no {name}"


def load_ledger_records(resources: Resources, item: Item) -> list[LedgerRecord]:
    """Parse a stored row. For the end of an unbillable turn, this reads the turn's other rows.

    Raises:
        UnreadableRow: The row is malformed.
    """
    if defect := find_row_defect(item):
        raise UnreadableRow(defect)
    if item["sk"] != TURN_END_SORT_KEY:
        return [parse_request_row(item)]
    rows = [] if item["billable"] else read_turn_requests(resources, item["tenant"], item["turn"])
    return parse_turn_end_row(item, rows)


def parse_request_row(item: Item) -> LedgerRecord:
    """Parse the row of a provider request that has no defect: tokens, cost, and activity of its conversation."""
    totals = UsageTotals(
        requests=1,
        prompt=item["prompt"],
        completion=item["completion"],
        cost=item["cost"] + ZERO_USD,
        cache_read=item["cacheRead"],
        cache_creation=item["cacheCreation"],
        unbillable=ZERO_USD if item["billable"] else item["cost"] + ZERO_USD,
        unpriced=int(not item.get("priced", True)),  # older rows count as priced (decision 0085)
    )
    return LedgerRecord(ledger_row_key(item), (_make_posting(item, totals),), item["conversation"])


def parse_turn_end_row(item: Item, rows: Iterable[Item]) -> list[LedgerRecord]:
    """Parse the end row of a turn whose billable cost is reversed (decision 0053).

    Ledger rows never change, so the reversal is posted in the quarter of each row, in records that fit into a
    transaction.

    Args:
        item: The end row.
        rows: The turn's request rows; none when the turn is billable.
    """
    reversals: dict[int, Posting] = {}
    for row in rows:
        if not find_row_defect(row) and row["billable"] and row["cost"]:
            posting = _make_posting(row, UsageTotals(unbillable=row["cost"] + ZERO_USD))
            reversals.setdefault(posting.quarter, _make_posting(row, UsageTotals())).totals.add(posting.totals)
    postings = tuple(reversals.values())
    starts = range(0, len(postings), MAX_POSTINGS_PER_TRANSACTION)
    parts = [postings[start : start + MAX_POSTINGS_PER_TRANSACTION] for start in starts]
    return [LedgerRecord(f"{ledger_row_key(item)}.{number}", part) for number, part in enumerate(parts)]


def _make_posting(item: Item, totals: UsageTotals) -> Posting:
    model = f"{item['provider']}/{item['model']}"
    return Posting(quarter_from_instant(item["at"]), item["user"], item["scope"], model, totals)
