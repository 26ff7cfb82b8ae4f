"""What the logs say of the ledger: a line for each request, and one for each end that took something back.

Lines are told by whoever counts a row (counting.py), or by a rebuild for rows that only it has counted.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from fermata.aws.dynamodb import Item
from fermata.aws.resources import Resources
from fermata.usage.ledger import ledger_store
from fermata.usage.ledger.ledger_parsing import find_row_defect, load_rollup_records

UsageLogLine = Mapping[str, Any]
USAGE_EVENT = "usage"
TAKEN_BACK_EVENT = "usage.taken_back"
"""A turn ended at our own or its provider's expense: what was billable of it is not."""
REQUEST_LINE_FIELDS = {
    "user": "user",
    "scope": "scope",
    "conversation": "conversation",
    "turn": "turn",
    "round": "round",
    "attempt": "attempt",
    "tried": "tried",
    "provider": "provider",
    "model": "model",
    "credential": "credential",
    "prompt": "prompt",
    "completion": "completion",
    "cacheRead": "cache_read",
    "cacheCreation": "cache_creation",
    "priced": "priced",
    "billable": "billable",
    "estimated": "estimated",
    "budgeted": "budgeted",
    "outcome": "outcome",
    "at": "at",
}
"""What a line says of its request, by the names that lines have. `cost` is exact, `cost_usd` is for sums, `price` is
what it was reckoned by, exact, if it was.
"""
TURN_END_LINE_FIELDS = (
    "user",
    "scope",
    "conversation",
    "turn",
    "provider",
    "model",
    "how",
    "code",
    "rounds",
    "billable",
    "at",
)
COMPARED_LINE_FIELDS = tuple(
    dict.fromkeys((*REQUEST_LINE_FIELDS.values(), *TURN_END_LINE_FIELDS, "cost", "cost_usd", "price"))
)
OPTIONAL_LINE_FIELDS = ("price", "budgeted")
"""Older lines do not say these."""


def log_line_from_row(row: Item) -> dict[str, Any]:
    """What is to be told of a row that can be read."""
    if row["sk"] == ledger_store.TURN_END_SORT_KEY:
        return {"event": TAKEN_BACK_EVENT, "tenant": row["tenant"]} | {
            name: row[name] for name in TURN_END_LINE_FIELDS if name in row
        }
    facts = {name: row[fact] for fact, name in REQUEST_LINE_FIELDS.items() if fact in row}
    cost, price = Decimal(row["cost"]), row.get("price", {})
    exact = {
        "cost": f"{cost:f}",
        "cost_usd": float(cost),
        "price": {name: _format_rate(rate) for name, rate in price.items()},
    }
    return {"event": USAGE_EVENT, "tenant": row["tenant"], **facts, **exact}


def _format_rate(rate: Any) -> str:
    return f"{rate:f}" if isinstance(rate, Decimal) else str(rate)


def select_logged_rows(resources: Resources, rows: Iterable[Item]) -> Iterator[Item]:
    """Of rows that can be read those that have a line: requests, and ends that took something back."""
    for row in rows:
        if row["sk"] != ledger_store.TURN_END_SORT_KEY or any(
            record.postings for record in load_rollup_records(resources, row)
        ):
            yield row


def describe_usage_row(row: Mapping[str, Any]) -> str:
    """Of a row or its line, as somebody reads it."""
    if row.get("sk") == ledger_store.TURN_END_SORT_KEY or row.get("event") == TAKEN_BACK_EVENT:
        return f"{row.get('turn')}, its end"
    turn, number, attempt, tried = (row.get(name) for name in ("turn", "round", "attempt", "tried"))
    return f"{turn} round {number}, attempt {attempt}, try {tried}"


def find_missing_log_lines(
    resources: Resources, tenant: str, lines: Iterable[UsageLogLine], start: str, end: str
) -> Iterator[dict[str, Any]]:
    """The lines that are missing for rows with first <= at < behind."""
    told = {describe_usage_row(line) for line in lines if line.get("tenant") == tenant}
    readable = [row for row in ledger_store.read_ledger_rows(resources, tenant, start, end) if not find_row_defect(row)]
    for row in select_logged_rows(resources, readable):
        if describe_usage_row(row) not in told:
            yield log_line_from_row(row)
