"""Compute an audit from ledger rows, one by one. Slow and simple: the audit from the rollups must agree with it."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Item
from fermata.usage.audit.audit_response import AuditTotals, to_audit_response
from fermata.usage.audit.local_days import LocalDays
from fermata.usage.ledger.ledger_parsing import parse_request_row
from fermata.usage.ledger.ledger_store import TURN_END_SORT_KEY

_ConversationsByName = dict[str, set[str]]


def audit_ledger_rows(
    ledger_rows: Iterable[Item], since: str, days: LocalDays, *, with_billable: bool = False
) -> dict[str, Any]:
    """Return the audit's response body, with user ids as labels.

    Args:
        ledger_rows: Rows without defects. The end rows among them say which turns are not billable.
        since: ISO instant; request rows before it are left out.
    """
    rows = list(ledger_rows)
    unbillable_turns = {row["turn"] for row in rows if row["sk"] == TURN_END_SORT_KEY and not row["billable"]}
    totals = AuditTotals()
    sections = (totals.users, totals.scopes, totals.models, totals.days)
    conversations: tuple[_ConversationsByName, ...] = tuple(defaultdict(set) for _ in range(4))
    for row in rows:
        if row["sk"] == TURN_END_SORT_KEY or row["at"] < since:
            continue
        is_billable = row["billable"] and row["turn"] not in unbillable_turns
        (increment,) = parse_request_row(row | {"billable": is_billable}).increments
        names = (increment.user, increment.scope, increment.model, days.day_of_quarter(increment.quarter).label)
        for totals_by_name, conversations_by_name, name in zip(sections, conversations, names, strict=True):
            totals_by_name[name].add(increment.totals)
            conversations_by_name[name].add(row["conversation"])
    for totals_by_name, conversations_by_name in zip(sections, conversations, strict=True):
        for name, active in conversations_by_name.items():
            totals_by_name[name].conversations = len(active)
    return to_audit_response(since, totals, {}, with_billable=with_billable)
