"""One audit: what a tenant used since some instant, by user, scope, model and the viewer's days.

It reads a sheet for each day, and for the day it begins in the sheets of its quarters. Where it begins in the middle
of a quarter, the rest of that quarter is read from the ledger, so that every row counts exactly by its instant.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb import Item
from fermata.aws.resources import Resources
from fermata.usage.audit import query_parameters
from fermata.usage.audit.audit_response import to_audit_response
from fermata.usage.audit.query_parameters import LocalDays
from fermata.usage.audit.user_labels import load_user_labels
from fermata.usage.ledger import ledger_store
from fermata.usage.ledger.ledger_parsing import find_row_defect, parse_request_row
from fermata.usage.quarter_hours import (
    QUARTER_SECONDS,
    QUARTERS_PER_DAY,
    quarter_day,
    quarter_from_instant,
    quarter_label,
    quarter_start,
)
from fermata.usage.rollups.conversation_activity import ConversationActivity, RollupDimension
from fermata.usage.rollups.period_rollup import PeriodRollup, TotalsByName, UsageTotals
from fermata.usage.rollups.rollup_delta import Posting
from fermata.usage.rollups.rollup_store import RollupEdition, load_activities, load_rollups, read_editions

_LAST_DAY = "9999"


def audit_usage(
    resources: Resources,
    tenant: str,
    since: str | None = None,
    time_zone: str | None = None,
    *,
    with_billable: bool = False,
) -> dict[str, Any]:
    start = query_parameters.parse_since(since, resources.clock.time())
    if start > query_parameters.LAST_QUARTER_START:
        return to_audit_response(
            query_parameters.format_instant(start), {}, {}, {}, {}, {}, with_billable=with_billable
        )
    first = -(-round(start.timestamp() * 1000) // (QUARTER_SECONDS * 1000))
    found = AuditSums(first, LocalDays(query_parameters.parse_time_zone(time_zone)))
    edition = read_editions(resources, tenant)[0]
    for day, sheet in load_rollups(resources, edition, "day", quarter_day(first), _LAST_DAY):
        found.add_day(day, sheet)
    if first % QUARTERS_PER_DAY:
        for _, sheet in load_rollups(resources, edition, "quarter", quarter_label(first), f"{quarter_day(first)}T"):
            found.add_rollup(sheet)
    if start < quarter_start(first):
        rows = _read_requests(
            resources, tenant, query_parameters.format_instant(start), iso_from_epoch(first * QUARTER_SECONDS)
        )
        _add_partial_quarter(resources, edition, found, rows)
    return to_audit_response(
        query_parameters.format_instant(start),
        found.users,
        found.scopes,
        found.models,
        found.days,
        load_user_labels(resources, tenant),
        with_billable=with_billable,
    )


def _new_totals_by_name() -> TotalsByName:
    return defaultdict(UsageTotals)


@dataclass
class AuditSums:
    """What was found so far. `first` is the first quarter that counts wholly."""

    first_quarter: int
    local_days: LocalDays
    users: TotalsByName = field(default_factory=_new_totals_by_name)
    scopes: TotalsByName = field(default_factory=_new_totals_by_name)
    models: TotalsByName = field(default_factory=_new_totals_by_name)
    days: TotalsByName = field(default_factory=_new_totals_by_name)

    def add_day(self, name: str, sheet: PeriodRollup) -> None:
        midnight = quarter_from_instant(f"{name}T00:00Z")
        if midnight >= self.first_quarter:
            self.add_rollup(sheet)
        for number, totals in sheet.quarters.items():
            if midnight + number >= self.first_quarter:
                self.days[self.local_days.day_of_quarter(midnight + number).label].add(totals)
        for number, gaps in sheet.gaps.items():
            if midnight + number >= self.first_quarter:
                self._add_gaps(midnight + number, gaps)

    def add_rollup(self, sheet: PeriodRollup) -> None:
        for mine, theirs in ((self.users, sheet.users), (self.scopes, sheet.scopes), (self.models, sheet.models)):
            for name, totals in theirs.items():
                mine[name].add(totals)

    def _add_gaps(self, quarter: int, gaps: Mapping[int, int]) -> None:
        """A conversation counts in a day at its first activity there: where the gap before reaches out of the day."""
        day = self.local_days.day_of_quarter(quarter)
        begin = max(day.first_quarter, self.first_quarter)
        self.days[day.label].conversations += sum(
            count for gap, count in gaps.items() if not gap or quarter - gap < begin
        )

    def add_posting(self, posting: Posting) -> None:
        for dimension, name in posting.names:
            self._get_totals(dimension)[name].add(posting.totals)
        self.days[self.local_days.day_of_quarter(posting.quarter).label].add(posting.totals)

    def add_conversation(self, activity: ConversationActivity, postings: Iterable[Posting]) -> None:
        """A conversation that was active right before `first`; it counts there unless it does later."""
        day = self.local_days.day_of_quarter(self.first_quarter - 1)
        if not activity.is_active_between(self.first_quarter, day.end_quarter):
            self.days[day.label].conversations += 1
        for dimension, name in {pair for posting in postings for pair in posting.names}:
            if (activity.get_latest(dimension, name) or 0) < self.first_quarter:
                self._get_totals(dimension)[name].conversations += 1

    def _get_totals(self, dimension: RollupDimension) -> TotalsByName:
        sums: TotalsByName = getattr(self, dimension)
        return sums


def _read_requests(resources: Resources, tenant: str, start: str, end: str) -> list[Item]:
    """Rows of requests that can be read; what the end of their turn took back is not billable in them."""
    found = ledger_store.read_ledger_rows(resources, tenant, start, end)
    rows = [row for row in found if row["sk"] != ledger_store.TURN_END_SORT_KEY and not find_row_defect(row)]
    ends = ledger_store.read_turn_billability(resources, tenant, {row["turn"] for row in rows})
    return [row | {"billable": row["billable"] and ends.get(row["turn"], True)} for row in rows]


def _add_partial_quarter(resources: Resources, edition: RollupEdition, sums: AuditSums, rows: list[Item]) -> None:
    chats: dict[str, list[Posting]] = defaultdict(list)
    for row in rows:
        record = parse_request_row(row)
        for posting in record.postings:
            sums.add_posting(posting)
            chats[record.conversation].append(posting)
    known = load_activities(resources, edition, chats)
    for conversation, postings in chats.items():
        sums.add_conversation(known.get(conversation, ConversationActivity()), postings)
