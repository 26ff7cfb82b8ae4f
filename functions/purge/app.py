"""Forgets conversations that were deleted a month ago."""

from typing import Any

from fermata.aws import observability
from fermata.aws.resources import get_resources
from fermata.conversations.purge import purge_deleted_conversations

SPARE_MS = 30_000
"""What is begun must also come to its end before Lambda ends the function."""


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """From the schedule. What there is no time for waits for the next hour."""
    observability.reset_log_keys(request_id=context.aws_request_id)
    return {
        "purged": purge_deleted_conversations(
            get_resources(), lambda: context.get_remaining_time_in_millis() > SPARE_MS
        )
    }
