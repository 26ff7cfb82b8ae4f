"""Deliver the events of a change of content to the webhooks of its tenant (decision 0491)."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.webhooks.content_event import build_content_payload, list_content_events
from fermata.turns.webhooks.content_subject import ContentFacts, ContentSubject, read_content_facts
from fermata.turns.webhooks.delivery_slots import hold_delivery_slot
from fermata.turns.webhooks.queued_entry import describe_attempt
from fermata.turns.webhooks.record_attempt import is_attempt_due, record_attempt
from fermata.webhooks.delivery import Delivery, read_delivery
from fermata.webhooks.send_event import send_event
from fermata.webhooks.webhook import Webhook, open_webhook_secret, read_webhooks
from fermata.webhooks.webhook_event import WebhookEvent


@value_dataclass(frozen=True)
class QueuedContentEvent:
    """A message of the queue: a change of content, or one event of it for one webhook.

    Attributes:
        subject: What has changed.
        webhook: The webhook that is told; empty for a whole change.
        event: What it is told.
        deferrals: How often the call had to wait for other calls of its tenant.
        attempt: Which attempt the message asks for, from 1 on; 0 if any (decision 0549).
        is_repeated: Whether a function may have handled the message before, and died.
    """

    tenant: str
    subject: str
    webhook: str = ""
    event: str = ""
    is_redelivery: bool = False
    deferrals: int = 0
    attempt: int = 0
    is_repeated: bool = False

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> "QueuedContentEvent":
        """Return what a message of the queue names."""
        return cls(
            str(message["tenant"]),
            str(message["content"]),
            str(message.get("webhook", "")),
            str(message.get("event", "")),
            bool(message.get("redelivery", False)),
            int(message.get("deferrals", 0)),
            int(message.get("attempt", 0)),
            bool(message.get("repeated", False)),
        )

    def to_message(self) -> dict[str, Any]:
        """Return the message of the queue."""
        message: dict[str, Any] = {"tenant": self.tenant, "content": self.subject}
        if self.webhook:
            message |= {"webhook": self.webhook, "event": self.event}
        if self.deferrals:
            message |= {"deferrals": self.deferrals}
        message |= describe_attempt(self.attempt, is_repeated=self.is_repeated)
        return message | ({"redelivery": True} if self.is_redelivery else {})


def deliver_content_event(resources: Resources, queued: QueuedContentEvent) -> None:
    """Make the call that a message names, or queue those that a change asks for.

    What was erased meanwhile, or is in a space that was deleted, is told to nobody.

    Args:
        resources: Tables, secrets and queue.
        queued: The message. It may arrive more than once.
    """
    subject = ContentSubject.parse(queued.tenant, queued.subject)
    facts = read_content_facts(resources, subject)
    if facts is None:
        return
    if queued.webhook:
        _make_call(resources, subject, facts, queued)
        return
    calls = list(_list_calls(resources, subject, facts, queued))
    if len(calls) == 1:
        _make_call(resources, subject, facts, calls[0])
        return
    for call in calls:
        resources.webhook_queue.send(call.to_message())


def _list_calls(
    resources: Resources, subject: ContentSubject, facts: ContentFacts, queued: QueuedContentEvent
) -> Iterator[QueuedContentEvent]:
    events = list_content_events(subject, facts)
    for webhook in read_webhooks(resources, queued.tenant).webhooks:
        for event in events:
            if _is_told(webhook, event):
                yield replace(queued, webhook=webhook.id, event=event.value, attempt=1)


def _is_told(webhook: Webhook, event: str) -> bool:
    return webhook.enabled and event in webhook.events


def _make_call(resources: Resources, subject: ContentSubject, facts: ContentFacts, queued: QueuedContentEvent) -> None:
    again = replace(queued, deferrals=queued.deferrals + 1)
    with hold_delivery_slot(resources, queued.tenant, queued.webhook, queued.deferrals, again.to_message()) as has_slot:
        if has_slot:
            _tell_webhook(resources, subject, facts, queued)


def _tell_webhook(
    resources: Resources, subject: ContentSubject, facts: ContentFacts, queued: QueuedContentEvent
) -> None:
    registered = read_webhooks(resources, queued.tenant)
    webhook = registered.find(queued.webhook)
    if webhook is None or not _is_told(webhook, queued.event):
        return
    delivery = _find_delivery(resources, facts, queued)
    retry = QueuedContentEvent(queued.tenant, queued.subject, queued.webhook, queued.event)
    if not is_attempt_due(resources, delivery, queued, retry.to_message()):
        return
    secret = open_webhook_secret(resources, queued.tenant, registered, webhook.id)
    if not secret:
        observability.log_warning("webhooks.sealed", tenant=queued.tenant, webhook=webhook.id)
        return
    payload = build_content_payload(WebhookEvent(queued.event), subject, facts)
    outcome = send_event(resources, webhook.url, secret, delivery.event_id, payload)
    record_attempt(resources, queued.tenant, webhook.id, delivery, outcome, retry.to_message())


def _find_delivery(resources: Resources, facts: ContentFacts, queued: QueuedContentEvent) -> Delivery:
    """Return the delivery of an event as it is stored, or a new one.

    Its id has the time of the change: a space that is created anew under the name of one that was deleted may have
    documents of the same names and versions.
    """
    at_ms = round(datetime.fromisoformat(facts.at).timestamp() * 1000)
    event_id = f"{queued.subject}.{at_ms}.{queued.event.rpartition('.')[2]}"
    fresh = Delivery(event_id=event_id, event=queued.event, content=queued.subject, at_ms=at_ms)
    return read_delivery(resources, queued.tenant, queued.webhook, fresh.sort_key) or fresh
