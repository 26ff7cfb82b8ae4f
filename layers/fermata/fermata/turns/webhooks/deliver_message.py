"""Deliver a message of the queue of webhooks: about an entry of a turn's log, a change of content, or what was used."""

from collections.abc import Mapping
from typing import Any

from fermata.aws.resources import Resources
from fermata.turns.webhooks.deliver_entry import deliver_queued_entry
from fermata.turns.webhooks.queued_entry import QueuedEntry


def deliver_webhook_message(resources: Resources, message: Mapping[str, Any]) -> None:
    """Make the calls that a message asks for.

    Args:
        resources: Tables, secrets and queue.
        message: It may arrive more than once.
    """
    if "content" in message:
        from fermata.turns.webhooks.deliver_content_event import (  # few tenants are told about content
            QueuedContentEvent,
            deliver_content_event,
        )

        deliver_content_event(resources, QueuedContentEvent.from_message(message))
    elif "usageReport" in message:
        from fermata.billing.deliver_usage_report import deliver_usage_report  # few deployments have a billing system

        deliver_usage_report(resources, message)
    else:
        deliver_queued_entry(resources, QueuedEntry.from_message(message))
