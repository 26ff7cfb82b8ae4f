"""Forgets conversations that were deleted a month ago."""

from typing import Any

from fermata.aws import signals
from fermata.aws.desk import open_desk
from fermata.conversations.purging import purge

SPARE_MS = 30_000
"""What is begun must also come to its end before Lambda ends the function."""


@signals.traced
def handler(event: dict[str, Any], context: Any) -> dict[str, int]:
    """From the schedule. What there is no time for waits for the next hour."""
    signals.afresh(request_id=context.aws_request_id)
    return {"purged": purge(open_desk(), lambda: context.get_remaining_time_in_millis() > SPARE_MS)}
