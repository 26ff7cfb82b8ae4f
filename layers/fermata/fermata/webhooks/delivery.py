"""Store how far each delivery of an event to a webhook has come.

    t#<tenant>#hook#<webhook>   <instant>~<event id>   state, attempts, last status; a month after the event it expires

A row says nothing of the event's content: that is read again for every attempt, from the turn's log or the content
store.
"""

from collections.abc import Sequence
from typing import Any, Literal

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put
from fermata.aws.resources import Resources
from fermata.domain.base import StoredModel

DELIVERY_SECONDS = 30 * 86_400
MAX_DELIVERIES_PER_PAGE = 50
DeliveryState = Literal["waiting", "delivered", "failed"]


class Delivery(StoredModel):
    """One event for one webhook. `event_id` is the `webhook-id` of every attempt.

    Attributes:
        turn: The turn whose log has the event; empty for an event of content.
        content: What an event of content is about (`content_subject.py`).
    """

    event_id: str
    event: str
    turn: str = ""
    entry: int = 0
    index: int = 0
    content: str = ""
    at_ms: int
    state: DeliveryState = "waiting"
    attempts: int = 0
    status: int | None = None
    error: str | None = None
    attempted_at: str | None = None

    @property
    def sort_key(self) -> str:
        """Orders the deliveries of a webhook by the time of their events."""
        return f"{iso_from_epoch(self.at_ms / 1000)}~{self.event_id}"

    def to_view(self) -> dict[str, Any]:
        """Return what administrators see."""
        view = {
            "id": self.sort_key,
            "eventId": self.event_id,
            "event": self.event,
            "bridgeId": self.turn or None,
            "at": iso_from_epoch(self.at_ms / 1000),
            "state": self.state,
            "attempts": self.attempts,
            "status": self.status,
            "error": self.error,
            "attemptedAt": self.attempted_at,
        }
        return {name: value for name, value in view.items() if value is not None}


def build_deliveries_pk(tenant: str, webhook_id: str) -> str:
    return f"t#{tenant}#hook#{webhook_id}"


def read_delivery(resources: Resources, tenant: str, webhook_id: str, sort_key: str) -> Delivery | None:
    """Return a delivery, or None if no attempt was made yet.

    Args:
        tenant: The tenant's name.
        webhook_id: The webhook's id.
        sort_key: `Delivery.sort_key`.
    """
    pk = build_deliveries_pk(tenant, webhook_id)
    item = resources.tables.get_item(resources.settings.bridges_table, pk, sort_key)
    return _from_item(item) if item and item["ttl"] > resources.clock.time() else None


def list_deliveries(resources: Resources, tenant: str, webhook_id: str) -> Sequence[Delivery]:
    """Return the newest deliveries of a webhook, the newest first.

    Args:
        tenant: The tenant's name.
        webhook_id: The webhook's id.
    """
    pk = build_deliveries_pk(tenant, webhook_id)
    items = resources.tables.query_items(
        resources.settings.bridges_table, pk, descending=True, limit=MAX_DELIVERIES_PER_PAGE
    )
    return [_from_item(item) for item in items]


def store_attempt(resources: Resources, tenant: str, webhook_id: str, delivery: Delivery) -> bool:
    """Store a delivery after an attempt. Return False if this attempt or a later one is stored by another function.

    Args:
        tenant: The tenant's name.
        webhook_id: The webhook's id.
        delivery: With the number of the attempt.
    """
    data = delivery.to_stored()
    item: Item = {
        "pk": build_deliveries_pk(tenant, webhook_id),
        "sk": delivery.sort_key,
        "v": 1,
        "ttl": delivery.at_ms // 1000 + DELIVERY_SECONDS,
        **data,
    }
    condition = "attribute_not_exists(pk) OR attempts < :attempts"
    put = Put(resources.settings.bridges_table, item, condition=condition, values={":attempts": delivery.attempts})
    try:
        resources.tables.write_items(put)
    except ConditionFailed as refused:
        # Another copy of the message was faster, unless it is this very write, whose response was lost.
        return refused.item is not None and _from_item(refused.item) == delivery
    return True


def _from_item(item: Item) -> Delivery:
    return Delivery.from_stored(item)
