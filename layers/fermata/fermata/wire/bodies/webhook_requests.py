"""Define the bodies of requests on webhooks."""

from typing import Annotated

from pydantic import Field

from fermata.webhooks.webhook_event import WebhookEvent
from fermata.wire.bodies.fields import NonBlankUrl, StrictBody

_Events = Annotated[list[Annotated[WebhookEvent, Field(strict=False)]], Field(max_length=len(WebhookEvent))]


class NewWebhook(StrictBody):
    """A webhook to register: where, for which events (all of turns without any), whether its responses may answer."""

    url: NonBlankUrl
    events: _Events | None = None
    may_answer: bool = False


class WebhookSettings(StrictBody):
    """The new values of a webhook. Members that are left out keep their value."""

    url: NonBlankUrl | None = None
    events: _Events | None = None
    enabled: bool | None = None
    may_answer: bool | None = None
