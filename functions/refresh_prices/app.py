"""Keeps the price catalogue young, away from every turn."""

from typing import Any

from fermata.aws import signals
from fermata.aws.desk import open_desk
from fermata.pricing.refreshing import refresh


@signals.traced
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """From the schedule, or from an operator with `{"force": true}`. A failure is tried again, then kept in a queue."""
    signals.afresh(request_id=getattr(context, "aws_request_id", ""))
    done = refresh(open_desk(), force=bool(event.get("force")))
    return {"how": done.how, "models": done.models}
