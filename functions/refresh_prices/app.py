"""Refresh the price catalogue on a schedule, so that no turn waits for it."""

from typing import Any

from fermata.aws import observability
from fermata.aws.resources import get_resources, prepare_function
from fermata.pricing.catalogue_refresh import refresh_catalogue


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Handle the schedule, or an operator's `{"force": true}`. Lambda retries a failure, then sends it to a queue."""
    observability.reset_log_keys(request_id=getattr(context, "aws_request_id", ""))
    refresh = refresh_catalogue(get_resources(), force=bool(event.get("force")))
    return {"how": refresh.outcome, "models": refresh.models}


prepare_function("dynamodb")
