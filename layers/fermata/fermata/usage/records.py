"""From rows of the ledger to what they add to the sheets."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item
from fermata.usage import ledger
from fermata.usage.books import AT_ONCE, Posting, Record
from fermata.usage.quarters import quarter_of
from fermata.usage.sheets import ZERO, Totals

TEXTS = ("tenant", "user", "scope", "conversation", "turn", "provider", "model", "at")
COUNTS = ("prompt", "completion", "cacheRead", "cacheCreation")


class Unreadable(ValueError):
    """A row that we did not write, or that somebody changed: nobody can count it. Says what is wrong with it."""


def unreadable(item: Item) -> str:
    """Why a row of the ledger cannot be counted; empty when it can."""
    for name in TEXTS:
        if not isinstance(item.get(name), str):
            return _wrong(item, name)
    try:
        quarter_of(item["at"])
    except (ValueError, OverflowError):
        return _wrong(item, "at")
    if not isinstance(item.get("billable"), bool):
        return _wrong(item, "billable")
    if item["sk"] == ledger.END:
        return ""
    wrong = [name for name in COUNTS if not _is_count(item.get(name))]
    wrong += [] if _is_amount(item.get("cost")) else ["cost"]
    wrong += [] if isinstance(item.get("price", {}), dict) else ["price"]
    return _wrong(item, wrong[0]) if wrong else ""


def _is_count(value: Any) -> bool:
    return _is_amount(value) and value == int(value)


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


def _wrong(item: Item, name: str) -> str:
    return f"{name} is {str(item[name])[:60]!r}" if name in item else f"it has no {name}"


def records_of(desk: Desk, item: Item) -> list[Record]:
    """Of a row as it is stored; raises Unreadable. For a turn that ended at our expense, its other rows are read."""
    if why := unreadable(item):
        raise Unreadable(why)
    if item["sk"] != ledger.END:
        return [request(item)]
    rows = [] if item["billable"] else ledger.of_turn(desk, item["tenant"], item["turn"])
    return end(item, rows)


def request(item: Item) -> Record:
    """One provider request: tokens, cost, and activity of its conversation."""
    totals = Totals(
        requests=1,
        prompt=item["prompt"],
        completion=item["completion"],
        cost=item["cost"] + ZERO,
        cache_read=item["cacheRead"],
        cache_creation=item["cacheCreation"],
        unbillable=ZERO if item["billable"] else item["cost"] + ZERO,
        unpriced=int(not item.get("priced", True)),
    )
    return Record(ledger.key(item), (_posting(item, totals),), item["conversation"])


def end(item: Item, rows: Iterable[Item]) -> list[Record]:
    """An end at our own or the provider's expense takes back what was billable so far. Rows cannot be changed, so
    this is posted where each of them was, in records that fit into a transaction.
    """
    taken_back: dict[int, Posting] = {}
    for row in rows:
        if not unreadable(row) and row["billable"] and row["cost"]:
            posting = _posting(row, Totals(unbillable=row["cost"] + ZERO))
            taken_back.setdefault(posting.quarter, _posting(row, Totals())).totals.add(posting.totals)
    postings = list(taken_back.values())
    parts = [tuple(postings[start : start + AT_ONCE]) for start in range(0, len(postings), AT_ONCE)]
    return [Record(f"{ledger.key(item)}.{number}", part) for number, part in enumerate(parts)]


def _posting(item: Item, totals: Totals) -> Posting:
    return Posting(quarter_of(item["at"]), item["user"], item["scope"], f"{item['provider']}/{item['model']}", totals)
