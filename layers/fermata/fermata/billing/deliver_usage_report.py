"""Deliver a report of usage to the billing system, and try again until it is taken or given up."""

from collections.abc import Mapping
from typing import Any

from fermata.aws import observability
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete
from fermata.aws.resources import Resources
from fermata.billing.billing_receiver import open_receiver_secret, read_billing_receiver
from fermata.billing.usage_report import UsageReport, build_report_key, build_report_message, read_workspace_reports
from fermata.limits.count_row_update import CountRowUpdate
from fermata.webhooks.send_event import SendOutcome, get_next_wait, send_event


def deliver_usage_report(resources: Resources, message: Mapping[str, Any]) -> None:
    """Make one attempt to deliver a report. One that was taken, or is given up, is left alone.

    Args:
        resources: Of the process.
        message: From `build_report_message`. It may arrive more than once.
    """
    tenant = str(message["tenant"])
    item = resources.tables.get_item_by_key(build_report_key(resources, tenant, str(message["usageReport"])))
    receiver = read_billing_receiver(resources)
    report = None if item is None else UsageReport.from_stored(item)
    if report is None or report.state != "waiting" or receiver is None:
        return
    if 0 < int(message.get("attempt", 0)) <= report.attempts:
        return  # it was made; if nobody has queued the next one, `queue_usage_reports` does
    secret = open_receiver_secret(resources, receiver)
    payload = report.to_payload(tenant)
    outcome = (
        send_event(resources, receiver.url, secret, report.id, payload)
        if secret
        else SendOutcome(False, error="The secret of the receiver cannot be opened. Set the receiver again.")
    )
    if outcome.is_delivered:
        _close_report(resources, tenant, report)
    else:
        _keep_report(resources, tenant, report, outcome)


def retry_failed_reports(resources: Resources, tenant: str) -> int:
    """Have the reports of a workspace that were given up sent again, with the next run. Return how many.

    Args:
        resources: Of the deployment.
        tenant: The workspace.
    """
    failed = [one for one in read_workspace_reports(resources, tenant).waiting if one.state == "failed"]
    for report in failed:
        _change_report(resources, tenant, report, state="waiting", since=int(resources.clock.time()), attempted_at=0)
    return len(failed)


def _close_report(resources: Resources, tenant: str, report: UsageReport) -> None:
    key = build_report_key(resources, tenant, report.sort_key)
    resources.tables.write_items(Delete(*key))
    observability.log_event("billing.reported", tenant=tenant, report=report.id, meter=report.meter)


def _keep_report(resources: Resources, tenant: str, report: UsageReport, outcome: SendOutcome) -> None:
    """Store that an attempt has failed, and queue the next one unless there is none."""
    now = resources.clock.time()
    wait = get_next_wait(report.attempts + 1, now - report.since)
    is_newest = _change_report(
        resources,
        tenant,
        report,
        state="waiting" if wait is not None else "failed",
        attempts=report.attempts + 1,
        status=outcome.status,
        error=outcome.error,
        attempted_at=int(now),
    )
    facts = {"tenant": tenant, "report": report.id, "attempt": report.attempts + 1, "status": outcome.status}
    observability.log_warning("billing.failed", **facts, given_up=wait is None)
    if wait is not None and is_newest:
        # After the attempt is counted: a message that comes twice must not leave two for the next attempt.
        resources.webhook_queue.send(build_report_message(tenant, report, report.attempts + 1), delay_seconds=wait)


def _change_report(resources: Resources, tenant: str, report: UsageReport, **changes: Any) -> bool:
    """Change a report that is as it was read. Return False if it was changed or taken meanwhile."""
    update = CountRowUpdate(build_report_key(resources, tenant, report.sort_key))
    for name, value in changes.items():
        update.set(name, value)
    # Of a report that was taken, the id is gone with its row.
    update.require_as_read(report.to_stored(), ["id", "state", "attempts", "since"])
    try:
        resources.tables.write_items(update.build())
    except ConditionFailed:
        return False
    return True
