"""The same audit, reckoned row by row from the ledger: slow and plain. The rollups must agree with it."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from fermata.aws.dynamodb import Item
from fermata.usage.audit.audit_response import to_audit_response
from fermata.usage.audit.query_parameters import LocalDays
from fermata.usage.ledger import ledger_store
from fermata.usage.ledger.ledger_parsing import parse_request_row
from fermata.usage.quarter_hours import quarter_from_instant
from fermata.usage.rollups.period_rollup import TotalsByName, UsageTotals

_ConversationsByName = dict[str, set[str]]


def audit_ledger_rows(
    ledger_rows: Iterable[Item], since: str, days: LocalDays, *, with_billable: bool = False
) -> dict[str, Any]:
    """Of all rows from `since` on; ends of turns among them say what is not billable."""
    rows = list(ledger_rows)
    at_our_expense = {
        row["turn"] for row in rows if row["sk"] == ledger_store.TURN_END_SORT_KEY and not row["billable"]
    }
    sums: tuple[TotalsByName, ...] = tuple(defaultdict(UsageTotals) for _ in range(4))
    seen: tuple[_ConversationsByName, ...] = tuple(defaultdict(set) for _ in range(4))
    for row in rows:
        if row["sk"] == ledger_store.TURN_END_SORT_KEY or row["at"] < since:
            continue
        is_billable = row["billable"] and row["turn"] not in at_our_expense
        (posting,) = parse_request_row(row | {"billable": is_billable}).postings
        names = (posting.user, posting.scope, posting.model, days.day_of_quarter(quarter_from_instant(row["at"])).label)
        for by_name, active, name in zip(sums, seen, names, strict=True):
            by_name[name].add(posting.totals)
            active[name].add(row["conversation"])
    for by_name, active in zip(sums, seen, strict=True):
        for name, conversations in active.items():
            by_name[name].conversations = len(conversations)
    users, scopes, models, by_day = sums
    return to_audit_response(since, users, scopes, models, by_day, {}, with_billable=with_billable)
