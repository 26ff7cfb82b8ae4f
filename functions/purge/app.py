"""Go on with exports and erasures; once an hour report usage, purge what was deleted long ago and sweep spaces."""

from collections.abc import Callable
from typing import Any

from fermata.aws import observability
from fermata.aws.resources import get_resources, prepare_function
from fermata.billing.queue_usage_reports import queue_usage_reports
from fermata.content.sweep_spaces import sweep_due_spaces
from fermata.conversations.purge import BIN_RETENTION_DAYS, purge_deleted_conversations
from fermata.domain.errors import NotFound
from fermata.privacy.run_jobs import run_open_jobs
from fermata.wire.auth.tenant_store import get_tenant

MIN_REMAINING_MS = 30_000
"""No conversation is begun with less time left, because Lambda would stop the function in the middle of it."""


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """Handle the three schedules. The next run continues where the time ends."""
    observability.reset_log_keys(request_id=context.aws_request_id)

    def has_time() -> bool:
        return bool(context.get_remaining_time_in_millis() > MIN_REMAINING_MS)

    if event.get("jobsOnly"):
        return {"jobs": run_open_jobs(get_resources(), has_time), "purged": 0, "swept": 0, "reported": 0}
    # Jobs have a schedule of their own: a long one would leave no time for the purge. Reports are a moment's work.
    reported = 0 if event.get("wholeBin") else queue_usage_reports(get_resources(), has_time)
    purged = _purge(has_time, is_whole_bin_read=bool(event.get("wholeBin")))
    swept = sweep_due_spaces(get_resources(), has_time)
    return {"jobs": 0, "purged": purged, "swept": swept, "reported": reported}


prepare_function("dynamodb", "s3", "stepfunctions")


def _purge(has_time: Callable[[], bool], *, is_whole_bin_read: bool) -> int:
    return purge_deleted_conversations(
        get_resources(), has_time, _get_retention_days, is_whole_bin_read=is_whole_bin_read
    )


def _get_retention_days(tenant: str) -> int:
    """Return the tenant's setting; the usual time if it has none, or is gone."""
    try:
        days = get_tenant(get_resources(), tenant).limits.deleted_days
    except NotFound:
        return BIN_RETENTION_DAYS
    return BIN_RETENTION_DAYS if days is None else days
