"""Make reports of what a workspace has used and no report has, each use in one report only."""

from fermata.aws import observability
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, TransactionCanceled, Update
from fermata.aws.resources import Resources
from fermata.aws.workspace_subscription import read_subscription
from fermata.billing.usage_report import (
    METER_NAMES,
    REPORTED_PREFIX,
    UsageReport,
    WorkspaceReports,
    build_report_key,
    build_report_put,
)
from fermata.domain.workspace_plan import Subscription
from fermata.limits.count_row_update import CountRowUpdate
from fermata.limits.month_counts import (
    DELIVERED_BYTES,
    MONTH_PREFIX,
    MONTH_ROW_SECONDS,
    get_included_in_month,
    months_partition,
    read_month_count,
)

_MARK_SECONDS = MONTH_ROW_SECONDS + 60 * 86_400
"""Longer than what was counted: expired rows are deleted in any order, and a use without its mark is reported again."""
_MONTHS = 2
"""The last months with uses that are looked at. What is counted behind midnight is of the month before."""


def make_usage_reports(resources: Resources, tenant: str, known: WorkspaceReports) -> list[UsageReport]:
    """Store a report of each meter of which more is used than reported, and return the new reports.

    A report and the mark of how much is reported are one transaction. So whoever does this at the same time, or again
    because the answer was lost, reports nothing twice.

    Args:
        resources: Of the process.
        tenant: The workspace.
        known: Its reports, as they were read.
    """
    counted = _read_newest_months(resources, tenant, known)
    subscription = read_subscription(resources, tenant)
    made: list[UsageReport] = []
    for month, item in counted.items():
        made += _report_month(resources, tenant, subscription, item, month, known.reported.get(month, {}))
    return made


def _read_newest_months(resources: Resources, tenant: str, known: WorkspaceReports) -> dict[str, Item]:
    """Return what is counted in the last months with uses, the newest first."""
    newest = f"{MONTH_PREFIX}~"
    table = resources.settings.bridges_table
    rows = resources.tables.query_items(
        table, months_partition(tenant), min_sk=MONTH_PREFIX, max_sk=newest, descending=True, limit=_MONTHS
    )
    uses = {row["sk"].removeprefix(MONTH_PREFIX): row for row in rows}
    months = sorted(uses.keys() | known.traffic.keys(), reverse=True)[:_MONTHS]
    return {
        month: {**uses.get(month, {}), DELIVERED_BYTES: read_month_count(known.traffic.get(month), DELIVERED_BYTES)}
        for month in months
    }


def _report_month(
    resources: Resources, tenant: str, subscription: Subscription, counted: Item, month: str, reported: Item
) -> list[UsageReport]:
    now = int(resources.clock.time())
    counts = {meter: read_month_count(counted, meter) for meter in METER_NAMES}
    changed = {meter: total for meter, total in counts.items() if total != read_month_count(reported, meter)}
    if not changed:
        return []
    reports = [
        _build_report(subscription, meter, month, read_month_count(reported, meter), total, now)
        for meter, total in changed.items()
        if total > read_month_count(reported, meter)  # less: a damaged count began anew, and is reported on
    ]
    mark = _build_mark(resources, tenant, month, reported, changed, now)
    try:
        resources.tables.write_items(mark, *(build_report_put(resources, tenant, one) for one in reports))
    except (ConditionFailed, TransactionCanceled):
        observability.log_event("billing.reported_meanwhile", tenant=tenant, month=month)
        return []  # by another process, or by this one if only the answer was lost: the next run sends what is there
    return reports


def _build_report(subscription: Subscription, meter: str, month: str, before: int, total: int, now: int) -> UsageReport:
    included = get_included_in_month(subscription, meter, month)
    exceeding = 0 if included is None else max(0, total - included) - max(0, before - included)
    return UsageReport(
        id=new_id(),
        meter=METER_NAMES[meter],
        month=month,
        plan=subscription.plan,
        quantity=total - before,
        total=total,
        included=included,
        exceeding=exceeding,
        overage=subscription.overage,
        at=now,
        since=now,
    )


def _build_mark(
    resources: Resources, tenant: str, month: str, reported: Item, changed: dict[str, int], now: int
) -> Update:
    """Build the write that says how much is reported. It fails if another one has said so since."""
    mark = CountRowUpdate(build_report_key(resources, tenant, f"{REPORTED_PREFIX}{month}"))
    mark.set("ttl", now + _MARK_SECONDS)
    for meter, total in changed.items():
        mark.set(meter, total)
    mark.require_as_read(reported, list(changed))
    return mark.build()
