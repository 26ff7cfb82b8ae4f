"""Show the deliveries of a webhook, and deliver one again on request."""

from typing import Any

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.errors import NotFound
from fermata.webhooks.delivery import list_deliveries, read_delivery
from fermata.webhooks.webhook import read_webhooks

MAX_DELIVERY_ID_CHARS = 400


def list_webhook_deliveries(resources: Resources, caller: Caller, webhook_id: str) -> list[dict[str, Any]]:
    """Return the newest deliveries of a webhook, the newest first.

    Args:
        resources: The tables.
        caller: The administrator.
        webhook_id: The webhook's id, as a client sent it.

    Raises:
        NotFound: The tenant has no such webhook.
    """
    _require_webhook(resources, caller, webhook_id)
    return [delivery.to_view() for delivery in list_deliveries(resources, caller.tenant, webhook_id)]


def redeliver_event(resources: Resources, caller: Caller, webhook_id: str, delivery_id: str) -> None:
    """Queue an event again for a webhook, whether it was delivered or not. It keeps its id.

    Args:
        resources: Tables and queue.
        caller: The administrator.
        webhook_id: The webhook's id, as a client sent it.
        delivery_id: The delivery's id, as a client sent it.

    Raises:
        NotFound: The tenant has no such webhook or delivery.
    """
    _require_webhook(resources, caller, webhook_id)
    is_possible = 0 < len(delivery_id) <= MAX_DELIVERY_ID_CHARS
    delivery = read_delivery(resources, caller.tenant, webhook_id, delivery_id) if is_possible else None
    if delivery is None:
        raise NotFound("There is no such delivery.")
    message: dict[str, Any] = {"tenant": caller.tenant, "webhook": webhook_id, "redelivery": True}
    if delivery.content:
        message |= {"content": delivery.content, "event": delivery.event}
    else:
        message |= {"turn": delivery.turn, "entry": delivery.entry, "index": delivery.index}
    resources.webhook_queue.send(message)
    observability.log_audit_event("ai.webhook.redelivered", tenant=caller.tenant, user=caller.user, webhook=webhook_id)


def _require_webhook(resources: Resources, caller: Caller, webhook_id: str) -> None:
    if read_webhooks(resources, caller.tenant).find(webhook_id) is None:
        raise NotFound("The tenant has no such webhook.")
