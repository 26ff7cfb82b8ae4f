"""From rows of the ledger to what they add to the sheets."""

from collections.abc import Iterable

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item
from fermata.usage import ledger
from fermata.usage.books import AT_ONCE, Posting, Record
from fermata.usage.quarters import quarter_of
from fermata.usage.sheets import ZERO, Totals


def records_of(desk: Desk, item: Item) -> list[Record]:
    """Of a row as it is stored. For a turn that ended at our expense, its other rows are read."""
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
        if row["billable"] and row["cost"]:
            posting = _posting(row, Totals(unbillable=row["cost"] + ZERO))
            taken_back.setdefault(posting.quarter, _posting(row, Totals())).totals.add(posting.totals)
    postings = list(taken_back.values())
    parts = [tuple(postings[start : start + AT_ONCE]) for start in range(0, len(postings), AT_ONCE)]
    return [Record(f"{ledger.key(item)}.{number}", part) for number, part in enumerate(parts)]


def _posting(item: Item, totals: Totals) -> Posting:
    return Posting(quarter_of(item["at"]), item["user"], item["scope"], f"{item['provider']}/{item['model']}", totals)
