"""Look through all workspaces for what is used and not reported, and queue what the billing system has to be sent."""

import hashlib
from collections.abc import Callable, Iterator

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.resources import Resources
from fermata.billing.billing_receiver import read_billing_receiver
from fermata.billing.count_media_hours import count_media_hours
from fermata.billing.make_usage_reports import make_usage_reports
from fermata.billing.usage_report import build_report_message, read_workspace_reports
from fermata.webhooks.send_event import MAX_WAIT_SECONDS

_LOST_SECONDS = 2 * MAX_WAIT_SECONDS
"""How long after an attempt the message for the next one is taken for lost."""


def queue_usage_reports(resources: Resources, has_time: Callable[[], bool]) -> int:
    """Report what every workspace has used, and return how many reports were queued; none without a receiver.

    What is used while there is no receiver, or while it is down, stays counted or stored: the next run goes on.

    Args:
        resources: Of the process.
        has_time: Whether another workspace may be begun. The next run begins with the first one that was left.
    """
    if read_billing_receiver(resources) is None:
        return 0
    queued, position = 0, _read_position(resources)
    tenants = sorted(list_tenant_names(resources), key=lambda tenant: (_place(tenant), tenant))
    late = [tenant for tenant in tenants if _place(tenant) < position]
    for number, tenant in enumerate([*tenants[len(late) :], *late]):
        if number and not has_time():
            _store_position(resources, _place(tenant))
            return queued
        try:
            queued += _queue_reports_of(resources, tenant)
        except Exception:  # noqa: BLE001 - logged with its traceback; the others are reported, and the next run tries again
            observability.log_exception("billing.workspace_failed", tenant=tenant)
    return queued


def list_tenant_names(resources: Resources) -> Iterator[str]:
    """Yield the names of all tenants, in no order."""
    start = None
    while True:
        rows, start = resources.tables.scan_page(resources.settings.settings_table, start)
        yield from (row["pk"].removeprefix("t#") for row in rows if row["sk"] == "tenant" and row["pk"][:2] == "t#")
        if start is None:
            return


def _queue_reports_of(resources: Resources, tenant: str) -> int:
    count_media_hours(resources, tenant)
    known = read_workspace_reports(resources, tenant)
    now = resources.clock.time()
    lost = [
        one for one in known.waiting if one.state == "waiting" and (one.attempted_at or one.at) + _LOST_SECONDS < now
    ]
    sent = [*make_usage_reports(resources, tenant, known), *lost]
    for report in sent:
        resources.webhook_queue.send(build_report_message(tenant, report, report.attempts))
    return len(sent)


def _place(tenant: str) -> str:
    """Return the place of a workspace in the order of a run. It tells no name, as that of one that is erased later."""
    return hashlib.sha256(tenant.encode()).hexdigest()[:4]


def _read_position(resources: Resources) -> str:
    item = resources.tables.get_item(resources.settings.settings_table, "billing", "position") or {}
    if "tenant" in item:  # by an earlier release: a name, which may be one that was erased
        _store_position(resources, "")
    return str(item.get("place", ""))


def _store_position(resources: Resources, place: str) -> None:
    """Store where the next run begins. Any order of such writes is right: all workspaces are looked at again."""
    item = {"pk": "billing", "sk": "position", "v": 1, "place": place}
    resources.tables.write_items(Put(resources.settings.settings_table, item))
