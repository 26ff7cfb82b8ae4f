"""Define the response bodies of operations on webhooks."""

from typing import Literal

from fermata.webhooks.webhook_event import WebhookEvent
from fermata.wire.bodies.responses.common import CountField, InstantField, ResponseModel


class WebhookView(ResponseModel):
    """A webhook without its secret."""

    id: str
    url: str
    events: list[WebhookEvent]
    enabled: bool
    may_answer: bool
    created_at: InstantField
    updated_at: InstantField


class WebhookListResponse(ResponseModel):
    webhooks: list[WebhookView]


class WebhookResponse(ResponseModel):
    webhook: WebhookView


class NewWebhookResponse(ResponseModel):
    """A webhook with its signing secret, which is never shown again."""

    webhook: WebhookView
    signing_secret: str


class DeliveryView(ResponseModel):
    """A delivery. `status` and `error` are those of the last attempt. An event of content has no bridge."""

    id: str
    event_id: str
    event: str
    bridge_id: str | None = None
    at: InstantField
    state: Literal["waiting", "delivered", "failed"]
    attempts: CountField
    status: int | None = None
    error: str | None = None
    attempted_at: InstantField | None = None


class DeliveryListResponse(ResponseModel):
    deliveries: list[DeliveryView]
