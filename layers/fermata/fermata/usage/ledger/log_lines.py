"""Render ledger rows as log lines: one per request, and one per turn end that reversed billable cost.

The stream consumer logs a line when it has counted a row (decision 0057). After a rebuild, the operator's command
writes the lines that are missing (decision 0089).
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.usage.ledger.ledger_parsing import find_row_defect, load_ledger_records
from fermata.usage.ledger.ledger_store import TURN_END_SORT_KEY, read_ledger_rows

UsageLogLine = Mapping[str, Any]
USAGE_LOG_EVENT = "usage"
TAKEN_BACK_EVENT = "usage.taken_back"
"""The turn ended in an error of ours or of its provider, so its billable cost is reversed."""
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
"""Attributes of a request row, and their names in a log line. A line also has `cost` and `price` (exact texts) and
`cost_usd` (a number, for sums in log queries).
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
"""Fields that older lines do not have."""


def log_line_from_row(row: Item) -> dict[str, Any]:
    """Return the log line of a row that has no defect."""
    if row["sk"] == TURN_END_SORT_KEY:
        fields = {name: row[name] for name in TURN_END_LINE_FIELDS if name in row}
        return {"event": TAKEN_BACK_EVENT, "tenant": row["tenant"], **fields}
    fields = {name: row[attribute] for attribute, name in REQUEST_LINE_FIELDS.items() if attribute in row}
    cost = Decimal(row["cost"])
    amounts = {
        "cost": f"{cost:f}",
        "cost_usd": float(cost),
        "price": {name: _format_rate(rate) for name, rate in row.get("price", {}).items()},
    }
    return {"event": USAGE_LOG_EVENT, "tenant": row["tenant"], **fields, **amounts}


def _format_rate(rate: Any) -> str:
    return f"{rate:f}" if isinstance(rate, Decimal) else str(rate)


def select_logged_rows(resources: Resources, rows: Iterable[Item]) -> Iterator[Item]:
    """Select the rows that have a log line: requests, and ends that reversed cost. No row may have a defect."""
    for row in rows:
        if row["sk"] != TURN_END_SORT_KEY or any(record.increments for record in load_ledger_records(resources, row)):
            yield row


def describe_usage_row(row: Mapping[str, Any]) -> str:
    """Return a readable name of a ledger row or of its log line; both have the same."""
    if row.get("sk") == TURN_END_SORT_KEY or row.get("event") == TAKEN_BACK_EVENT:
        return f"{row.get('turn')}, its end"
    turn, number, attempt, tried = (row.get(name) for name in ("turn", "round", "attempt", "tried"))
    return f"{turn} round {number}, attempt {attempt}, try {tried}"


def find_missing_log_lines(
    resources: Resources, tenant: str, lines: Iterable[UsageLogLine], start: str, end: str
) -> Iterator[dict[str, Any]]:
    """Return the lines of rows with start <= at < end (ISO instants) that `lines` does not have.

    Args:
        lines: Log lines of any tenant, in any order.
    """
    logged_names = {describe_usage_row(line) for line in lines if line.get("tenant") == tenant}
    now = resources.clock.time()
    readable = [row for row in read_ledger_rows(resources, tenant, start, end) if not find_row_defect(row, now)]
    for row in select_logged_rows(resources, readable):
        if describe_usage_row(row) not in logged_names:
            yield log_line_from_row(row)
