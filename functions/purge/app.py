"""Purge conversations that were deleted a month ago."""

from typing import Any

from fermata.aws import observability
from fermata.aws.resources import get_resources, prepare_function
from fermata.conversations.purge import purge_deleted_conversations

MIN_REMAINING_MS = 30_000
"""No conversation is begun with less time left, because Lambda would stop the function in the middle of it."""


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """Handle the hourly schedule. The next run continues where the time ends."""
    observability.reset_log_keys(request_id=context.aws_request_id)
    return {
        "purged": purge_deleted_conversations(
            get_resources(), lambda: context.get_remaining_time_in_millis() > MIN_REMAINING_MS
        )
    }


prepare_function("dynamodb", "s3")
