"""Define a report of what a workspace has used since the one before, and the rows that keep it until it is delivered.

    t#<tenant>#limits#reports   reported#<2026-11>        how much of each meter is in reports of this month
    t#<tenant>#limits#reports   open#<instant>~<id>       a report that the billing system has not taken yet
    t#<tenant>#limits#reports   traffic#<2026-11>         what was delivered (limits/delivered_traffic.py)
    t#<tenant>#limits#reports   media                     which hour of stored media was counted (count_media_hours.py)

What is used is counted in rows of months (`limits/month_counts.py`). A report takes from them what no report has.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Literal

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item, ItemKey, Put
from fermata.aws.resources import Resources
from fermata.domain.base import StoredModel
from fermata.domain.value_dataclass import value_dataclass
from fermata.domain.workspace_plan import PlanMeter
from fermata.limits.delivered_traffic import TRAFFIC_PREFIX, reports_partition
from fermata.limits.month_counts import DELIVERED_BYTES, MEDIA_BYTE_HOURS, MONTH_ROW_SECONDS

METER_NAMES: dict[str, str] = {
    PlanMeter.CHAT_MESSAGES.value: "ai_messages",
    PlanMeter.API_MESSAGES.value: "api_messages",
    PlanMeter.MCP_CALLS.value: "mcp_calls",
    PlanMeter.FORM_SUBMISSIONS.value: "form_submissions",
    MEDIA_BYTE_HOURS: "media_storage_byte_hours",
    DELIVERED_BYTES: "cdn_bandwidth_bytes",
}
"""What billing systems call the numbers of a month's row."""
OPEN_PREFIX, REPORTED_PREFIX = "open#", "reported#"
ReportState = Literal["waiting", "failed"]


class UsageReport(StoredModel):
    """What a workspace has used of one meter since the report before.

    Attributes:
        id: The same in every attempt: receivers know by it what they have counted.
        meter: One of the values of `METER_NAMES`.
        quantity: How much.
        total: How much there was in the month with this report.
        included: What the plan includes in a month, when the report was made; None for any number.
        exceeding: How much of the quantity is beyond that.
        overage: Whether what is beyond is billed.
        since: When it was made, or given back to be sent (epoch seconds). It is given up three days later.
        state: `failed` once it is given up. A person decides what becomes of it.
    """

    id: str
    meter: str
    month: str
    plan: str
    quantity: int
    total: int
    included: int | None = None
    exceeding: int = 0
    overage: bool = False
    at: int
    since: int
    state: ReportState = "waiting"
    attempts: int = 0
    status: int | None = None
    error: str | None = None
    attempted_at: int = 0

    @property
    def sort_key(self) -> str:
        """Orders the reports of a workspace by their time."""
        return f"{OPEN_PREFIX}{iso_from_epoch(self.at)}~{self.id}"

    def to_payload(self, tenant: str) -> dict[str, Any]:
        """Return what the billing system is sent."""
        facts = ("id", "meter", "month", "plan", "quantity", "total", "included", "exceeding", "overage")
        data = {"tenant": tenant, **{name: getattr(self, name) for name in facts}}
        return {"type": "usage.reported", "timestamp": iso_from_epoch(self.at), "data": data}

    def to_view(self, tenant: str) -> dict[str, Any]:
        """Return what operators see."""
        state = {"state": self.state, "attempts": self.attempts, "status": self.status, "error": self.error}
        return {"tenant": tenant, "at": iso_from_epoch(self.at), **self.to_payload(tenant)["data"], **state}


@value_dataclass(frozen=True)
class WorkspaceReports:
    """What is in reports of a workspace, and the reports that are open.

    Attributes:
        reported: The rows that say what is reported, by month.
        waiting: The reports that were not taken yet, the oldest first.
        traffic: The rows that count what was delivered, by month.
    """

    reported: dict[str, Item]
    waiting: Sequence[UsageReport]
    traffic: dict[str, Item] = field(default_factory=dict)


def read_workspace_reports(resources: Resources, tenant: str) -> WorkspaceReports:
    """Read what is in reports of a workspace, and the reports that are open."""
    rows = resources.tables.query_items(resources.settings.bridges_table, reports_partition(tenant))
    waiting = [UsageReport.from_stored(row) for row in rows if row["sk"].startswith(OPEN_PREFIX)]
    return WorkspaceReports(_index_months(rows, REPORTED_PREFIX), waiting, _index_months(rows, TRAFFIC_PREFIX))


def _index_months(rows: Sequence[Item], prefix: str) -> dict[str, Item]:
    return {row["sk"].removeprefix(prefix): row for row in rows if row["sk"].startswith(prefix)}


def build_report_key(resources: Resources, tenant: str, sort_key: str) -> ItemKey:
    """Return the key of a row of a workspace's reports."""
    return ItemKey(resources.settings.bridges_table, reports_partition(tenant), sort_key)


def build_report_put(resources: Resources, tenant: str, report: UsageReport) -> Put:
    """Build the write of a new report."""
    key = build_report_key(resources, tenant, report.sort_key)
    item: Item = {"pk": key.pk, "sk": key.sk, "v": 1, "ttl": report.at + MONTH_ROW_SECONDS, **report.to_stored()}
    return Put(key.table, item, if_absent=True)


def build_report_message(tenant: str, report: UsageReport, made: int) -> dict[str, Any]:
    """Return the message that asks for the next attempt to deliver a report, of which so many were made.

    It has the number of that attempt, so that messages that come twice leave one chain of attempts (decision 0549).
    """
    return {"tenant": tenant, "usageReport": report.sort_key, "attempt": made + 1}
