"""Deliver a message of the queue of webhooks: about an entry of a turn's log, a change of content, or what was used."""

import json
from collections.abc import Mapping
from typing import Any

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.turns.webhooks.deliver_entry import deliver_queued_entry
from fermata.turns.webhooks.queued_entry import QueuedEntry
from fermata.webhooks.send_event import get_next_wait


def deliver_queue_record(resources: Resources, record: Mapping[str, Any]) -> bool:
    """Deliver the message of a record, and return whether it is done.

    One that fails comes again after seconds, as what a receiver does not take (decision 0549).

    Args:
        resources: Tables, secrets and queue.
        record: As Lambda has received it from the queue.
    """
    receives = int(record.get("attributes", {}).get("ApproximateReceiveCount", 1))
    try:
        deliver_webhook_message(resources, json.loads(record["body"]), is_repeated=receives > 1)
    except Exception:  # noqa: BLE001 (whatever it is, the message comes again, and in the end is set aside)
        observability.log_exception("webhooks.message_failed")
        _bring_back_soon(resources, record, receives)
        return False
    return True


def _bring_back_soon(resources: Resources, record: Mapping[str, Any], receives: int) -> None:
    wait = get_next_wait(receives, 0.0)
    try:
        resources.webhook_queue.hide_received(str(record["receiptHandle"]), wait or 0.0)
    except AWS_ERRORS:
        observability.log_exception("webhooks.message_stays_hidden")  # until its time-out of visibility


def deliver_webhook_message(resources: Resources, message: Mapping[str, Any], *, is_repeated: bool = False) -> None:
    """Make the calls that a message asks for.

    Args:
        resources: Tables, secrets and queue.
        message: It may arrive more than once.
        is_repeated: Whether the queue has handed it out before.
    """
    given = {**message, "repeated": True} if is_repeated else message
    if "content" in given:
        from fermata.turns.webhooks.deliver_content_event import (  # few tenants are told about content
            QueuedContentEvent,
            deliver_content_event,
        )

        deliver_content_event(resources, QueuedContentEvent.from_message(given))
    elif "usageReport" in given:
        from fermata.billing.deliver_usage_report import deliver_usage_report  # few deployments have a billing system

        deliver_usage_report(resources, given)
    else:
        deliver_queued_entry(resources, QueuedEntry.from_message(given))
