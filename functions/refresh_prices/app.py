"""Keeps the price catalogue young, away from every turn."""

from typing import Any

from fermata.aws import observability
from fermata.aws.resources import get_resources
from fermata.pricing.catalogue_refresh import refresh_catalogue


@observability.trace_handler
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """From the schedule, or from an operator with `{"force": true}`. A failure is tried again, then kept in a queue."""
    observability.reset_log_keys(request_id=getattr(context, "aws_request_id", ""))
    done = refresh_catalogue(get_resources(), force=bool(event.get("force")))
    return {"how": done.outcome, "models": done.models}
