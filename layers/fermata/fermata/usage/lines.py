"""What the logs say of the ledger: a line for each request, and one for each end that took something back.

Lines are told by whoever counts a row (counting.py), or by a rebuild for rows that only it has counted.
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item
from fermata.usage import ledger
from fermata.usage.records import records_of, unreadable

Line = Mapping[str, Any]
USAGE = "usage"
TAKEN_BACK = "usage.taken_back"
"""A turn ended at our own or its provider's expense: what was billable of it is not."""
TOLD = {
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
OF_AN_END = ("user", "scope", "conversation", "turn", "provider", "model", "how", "code", "rounds", "billable", "at")
FACTS = tuple(dict.fromkeys((*TOLD.values(), *OF_AN_END, "cost", "cost_usd", "price")))
LATER = ("price", "budgeted")
"""Older lines do not say these."""


def line_of(row: Item) -> dict[str, Any]:
    """What is to be told of a row that can be read."""
    if row["sk"] == ledger.END:
        return {"event": TAKEN_BACK, "tenant": row["tenant"]} | {name: row[name] for name in OF_AN_END if name in row}
    facts = {name: row[fact] for fact, name in TOLD.items() if fact in row}
    cost, price = Decimal(row["cost"]), row.get("price", {})
    exact = {
        "cost": f"{cost:f}",
        "cost_usd": float(cost),
        "price": {name: _plain(rate) for name, rate in price.items()},
    }
    return {"event": USAGE, "tenant": row["tenant"], **facts, **exact}


def _plain(rate: Any) -> str:
    return f"{rate:f}" if isinstance(rate, Decimal) else str(rate)


def to_tell(desk: Desk, rows: Iterable[Item]) -> Iterator[Item]:
    """Of rows that can be read those that have a line: requests, and ends that took something back."""
    for row in rows:
        if row["sk"] != ledger.END or any(record.postings for record in records_of(desk, row)):
            yield row


def name_of(row: Mapping[str, Any]) -> str:
    """Of a row or its line, as somebody reads it."""
    if row.get("sk") == ledger.END or row.get("event") == TAKEN_BACK:
        return f"{row.get('turn')}, its end"
    turn, number, attempt, tried = (row.get(name) for name in ("turn", "round", "attempt", "tried"))
    return f"{turn} round {number}, attempt {attempt}, try {tried}"


def untold(desk: Desk, tenant: str, lines: Iterable[Line], first: str, behind: str) -> Iterator[dict[str, Any]]:
    """The lines that are missing for rows with first <= at < behind."""
    told = {name_of(line) for line in lines if line.get("tenant") == tenant}
    readable = [row for row in ledger.between(desk, tenant, first, behind) if not unreadable(row)]
    for row in to_tell(desk, readable):
        if name_of(row) not in told:
            yield line_of(row)
