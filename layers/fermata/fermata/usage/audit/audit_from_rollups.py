"""Compute an audit: what a tenant used since an instant, by user, scope, model and the viewer's local days.

The audit reads a rollup for each day, and for the day in which it begins the rollups of its quarters. When it begins
within a quarter, the rest of that quarter is read from the ledger, so that every row counts by its instant
(decision 0052).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.usage.audit.audit_response import AuditTotals, to_audit_response
from fermata.usage.audit.local_days import LocalDays
from fermata.usage.audit.query_parameters import LAST_QUARTER_START, format_instant, parse_since, parse_time_zone
from fermata.usage.audit.user_labels import load_user_labels
from fermata.usage.ledger.ledger_parsing import find_row_defect, parse_request_row
from fermata.usage.ledger.ledger_store import TURN_END_SORT_KEY, read_ledger_rows, read_turn_billability
from fermata.usage.ledger.usage_increments import UsageIncrement
from fermata.usage.quarter_hours import (
    QUARTER_SECONDS,
    QUARTERS_PER_DAY,
    quarter_day,
    quarter_from_instant,
    quarter_label,
    quarter_start,
)
from fermata.usage.rollups.conversation_activity import ConversationActivity
from fermata.usage.rollups.period_rollup import PeriodRollup
from fermata.usage.rollups.rollup_store import load_activities, load_rollups
from fermata.usage.rollups.rollup_version import RollupEdition, read_from_current_edition
from fermata.usage.usage_totals import UsageDimension

_LAST_DAY = "9999"


def audit_usage(
    resources: Resources,
    tenant: str,
    since: str | None = None,
    time_zone: str | None = None,
    *,
    with_billable: bool = False,
) -> dict[str, Any]:
    """Return the audit's response body.

    Args:
        since: Instant as the client wrote it; 30 days ago when it is missing or malformed.
        time_zone: IANA name of the zone whose days are shown; UTC when it is missing.
        with_billable: Whether rows have `billableCostUsd`.

    Raises:
        InvalidRequest: There is no such time zone.
    """
    zone = parse_time_zone(time_zone)
    start = parse_since(since, resources.clock.time())
    written_start = format_instant(start)
    if start > LAST_QUARTER_START:
        return to_audit_response(written_start, AuditTotals(), {}, with_billable=with_billable)

    def add_up(edition: RollupEdition) -> AuditSums:
        sums = AuditSums(_first_whole_quarter(start), LocalDays(zone))
        _add_rollups(resources, edition, sums)
        if start < quarter_start(sums.first_quarter):
            end = iso_from_epoch(sums.first_quarter * QUARTER_SECONDS)
            _add_partial_quarter(resources, edition, sums, _read_requests(resources, tenant, written_start, end))
        return sums

    sums = read_from_current_edition(resources, tenant, add_up)
    labels = load_user_labels(resources, tenant)
    return to_audit_response(written_start, sums.totals, labels, with_billable=with_billable)


def _first_whole_quarter(start: datetime) -> int:
    return -(-round(start.timestamp() * 1000) // (QUARTER_SECONDS * 1000))


@dataclass
class AuditSums:
    """Add rollups, increments and conversations to the totals of an audit.

    `first_quarter` is the first quarter that counts as a whole.
    """

    first_quarter: int
    local_days: LocalDays
    totals: AuditTotals = field(default_factory=AuditTotals)

    def add_day(self, name: str, rollup: PeriodRollup) -> None:
        """Add the rollup of a UTC day.

        When the audit begins within the day, only the local days take their part of it here; the totals come from the
        rollups of its quarters.
        """
        midnight = quarter_from_instant(f"{name}T00:00Z")
        if midnight >= self.first_quarter:
            self.add_rollup(rollup)
        for number, totals in rollup.quarters.items():
            if midnight + number >= self.first_quarter:
                self.totals.days[self.local_days.day_of_quarter(midnight + number).label].add(totals)
        for number, gaps in rollup.gaps.items():
            if midnight + number >= self.first_quarter:
                self._add_gaps(midnight + number, gaps)

    def add_rollup(self, rollup: PeriodRollup) -> None:
        """Add a rollup's totals by user, scope and model."""
        dimensions: tuple[UsageDimension, ...] = ("users", "scopes", "models")
        for dimension in dimensions:
            own_totals = self.totals.get_totals(dimension)
            for name, totals in rollup.get_totals(dimension).items():
                own_totals[name].add(totals)

    def _add_gaps(self, quarter: int, gaps: Mapping[int, int]) -> None:
        """Count conversations in the local day of their first activity there (decision 0051).

        An activity is the first of its day when the gap before it reaches back beyond the start of the day.
        """
        day = self.local_days.day_of_quarter(quarter)
        start = max(day.first_quarter, self.first_quarter)
        first_activities = [count for gap, count in gaps.items() if not gap or quarter - gap < start]
        self.totals.days[day.label].conversations += sum(first_activities)

    def add_increment(self, increment: UsageIncrement) -> None:
        for dimension, name in increment.names:
            self.totals.get_totals(dimension)[name].add(increment.totals)
        self.totals.days[self.local_days.day_of_quarter(increment.quarter).label].add(increment.totals)

    def add_conversation(self, activity: ConversationActivity, increments: Iterable[UsageIncrement]) -> None:
        """Count a conversation whose increments lie right before `first_quarter`, unless a later activity counts it."""
        day = self.local_days.day_of_quarter(self.first_quarter - 1)
        if not activity.is_active_between(self.first_quarter, day.end_quarter):
            self.totals.days[day.label].conversations += 1
        for dimension, name in {pair for increment in increments for pair in increment.names}:
            if (activity.get_latest(dimension, name) or 0) < self.first_quarter:
                self.totals.get_totals(dimension)[name].conversations += 1


def _add_rollups(resources: Resources, edition: RollupEdition, sums: AuditSums) -> None:
    """Add all days from the first quarter on; of the first day, add the quarters."""
    first_day = quarter_day(sums.first_quarter)
    for day, rollup in load_rollups(resources, edition, "day", first_day, _LAST_DAY):
        sums.add_day(day, rollup)
    if sums.first_quarter % QUARTERS_PER_DAY:
        first_label = quarter_label(sums.first_quarter)
        for _, rollup in load_rollups(resources, edition, "quarter", first_label, f"{first_day}T"):
            sums.add_rollup(rollup)


def _read_requests(resources: Resources, tenant: str, start: str, end: str) -> list[Item]:
    """Read request rows without defects. A row is unbillable when the end of its turn says so (decision 0053)."""
    rows = [
        row
        for row in read_ledger_rows(resources, tenant, start, end)
        if row["sk"] != TURN_END_SORT_KEY and not find_row_defect(row, resources.clock.time())
    ]
    billability = read_turn_billability(resources, tenant, {row["turn"] for row in rows})
    return [row | {"billable": row["billable"] and billability.get(row["turn"], True)} for row in rows]


def _add_partial_quarter(resources: Resources, edition: RollupEdition, sums: AuditSums, rows: list[Item]) -> None:
    """Add request rows of the quarter before the first whole one."""
    increments_by_conversation: dict[str, list[UsageIncrement]] = defaultdict(list)
    for row in rows:
        record = parse_request_row(row)
        for increment in record.increments:
            sums.add_increment(increment)
            increments_by_conversation[record.conversation].append(increment)
    activities = load_activities(resources, edition, increments_by_conversation)
    for conversation, increments in increments_by_conversation.items():
        sums.add_conversation(activities.get(conversation, ConversationActivity()), increments)
