"""The same audit, reckoned row by row from the ledger: slow and plain. The rollups must agree with it."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from fermata.aws.dynamo import Item
from fermata.usage import ledger
from fermata.usage.quarters import quarter_of
from fermata.usage.records import request
from fermata.usage.rows import phrased
from fermata.usage.sheets import Sums, Totals
from fermata.usage.window import LocalDays

Seen = dict[str, set[str]]


def reckon(items: Iterable[Item], since: str, days: LocalDays, *, with_billable: bool = False) -> dict[str, Any]:
    """Of all rows from `since` on; ends of turns among them say what is not billable."""
    rows = list(items)
    at_our_expense = {row["turn"] for row in rows if row["sk"] == ledger.END and not row["billable"]}
    sums: tuple[Sums, ...] = tuple(defaultdict(Totals) for _ in range(4))
    seen: tuple[Seen, ...] = tuple(defaultdict(set) for _ in range(4))
    for row in rows:
        if row["sk"] == ledger.END or row["at"] < since:
            continue
        is_billable = row["billable"] and row["turn"] not in at_our_expense
        (posting,) = request(row | {"billable": is_billable}).postings
        names = (posting.user, posting.scope, posting.model, days.of(quarter_of(row["at"])).label)
        for by_name, active, name in zip(sums, seen, names, strict=True):
            by_name[name].add(posting.totals)
            active[name].add(row["conversation"])
    for by_name, active in zip(sums, seen, strict=True):
        for name, conversations in active.items():
            by_name[name].chats = len(conversations)
    users, scopes, models, by_day = sums
    return phrased(since, users, scopes, models, by_day, {}, with_billable=with_billable)
