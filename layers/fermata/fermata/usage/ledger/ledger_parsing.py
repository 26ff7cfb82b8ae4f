"""From rows of the ledger to what they add to the sheets."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from fermata.aws.dynamodb import Item
from fermata.aws.resources import Resources
from fermata.usage.ledger import ledger_store
from fermata.usage.quarter_hours import quarter_from_instant
from fermata.usage.rollups.period_rollup import ZERO_COST, UsageTotals
from fermata.usage.rollups.rollup_delta import MAX_POSTINGS_PER_TRANSACTION, Posting, RollupRecord

_REQUIRED_TEXTS = ("tenant", "user", "scope", "conversation", "turn", "provider", "model", "at")
_REQUIRED_COUNTS = ("prompt", "completion", "cacheRead", "cacheCreation")


class UnreadableRow(ValueError):
    """A row that we did not write, or that somebody changed: nobody can count it. Says what is wrong with it."""


def find_row_defect(item: Item) -> str:
    """Why a row of the ledger cannot be counted; empty when it can."""
    for name in _REQUIRED_TEXTS:
        if not isinstance(item.get(name), str):
            return _describe_defect(item, name)
    try:
        quarter_from_instant(item["at"])
    except (ValueError, OverflowError):
        return _describe_defect(item, "at")
    if not isinstance(item.get("billable"), bool):
        return _describe_defect(item, "billable")
    if item["sk"] == ledger_store.TURN_END_SORT_KEY:
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


def load_rollup_records(resources: Resources, item: Item) -> list[RollupRecord]:
    """Of a row as it is stored; raises Unreadable. For a turn that ended at our expense, its other rows are read."""
    if why := find_row_defect(item):
        raise UnreadableRow(why)
    if item["sk"] != ledger_store.TURN_END_SORT_KEY:
        return [parse_request_row(item)]
    rows = [] if item["billable"] else ledger_store.read_turn_requests(resources, item["tenant"], item["turn"])
    return parse_turn_end_row(item, rows)


def parse_request_row(item: Item) -> RollupRecord:
    """One provider request: tokens, cost, and activity of its conversation."""
    totals = UsageTotals(
        requests=1,
        prompt=item["prompt"],
        completion=item["completion"],
        cost=item["cost"] + ZERO_COST,
        cache_read=item["cacheRead"],
        cache_creation=item["cacheCreation"],
        unbillable=ZERO_COST if item["billable"] else item["cost"] + ZERO_COST,
        unpriced=int(not item.get("priced", True)),
    )
    return RollupRecord(ledger_store.ledger_row_key(item), (_posting(item, totals),), item["conversation"])


def parse_turn_end_row(item: Item, rows: Iterable[Item]) -> list[RollupRecord]:
    """An end at our own or the provider's expense takes back what was billable so far. Rows cannot be changed, so
    this is posted where each of them was, in records that fit into a transaction.
    """
    taken_back: dict[int, Posting] = {}
    for row in rows:
        if not find_row_defect(row) and row["billable"] and row["cost"]:
            posting = _posting(row, UsageTotals(unbillable=row["cost"] + ZERO_COST))
            taken_back.setdefault(posting.quarter, _posting(row, UsageTotals())).totals.add(posting.totals)
    postings = list(taken_back.values())
    parts = [
        tuple(postings[start : start + MAX_POSTINGS_PER_TRANSACTION])
        for start in range(0, len(postings), MAX_POSTINGS_PER_TRANSACTION)
    ]
    return [RollupRecord(f"{ledger_store.ledger_row_key(item)}.{number}", part) for number, part in enumerate(parts)]


def _posting(item: Item, totals: UsageTotals) -> Posting:
    return Posting(
        quarter_from_instant(item["at"]), item["user"], item["scope"], f"{item['provider']}/{item['model']}", totals
    )
