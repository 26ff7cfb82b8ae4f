"""Deliver the events of a log entry to the webhooks of its tenant, and take the answers of their responses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from fermata.aws import observability
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Delete
from fermata.aws.resources import Resources
from fermata.conversations.message_store import load_messages
from fermata.domain.events import Event, TerminalEvent
from fermata.turns.hooks.hook_points import has_hook_points, is_hooked, iter_hook_points
from fermata.turns.turn import Turn, build_turn_pk, load_turn
from fermata.turns.turn_log import LogEntry, build_entry_key, log_entry_from_item
from fermata.turns.webhooks.outbox import build_outbox_key, get_webhook_event
from fermata.turns.webhooks.take_answer import take_answer
from fermata.webhooks.delivery import Delivery, read_delivery, store_attempt
from fermata.webhooks.send_event import get_next_wait, send_event
from fermata.webhooks.webhook import RegisteredWebhooks, Webhook, open_webhook_secret, read_webhooks


@dataclass(frozen=True)
class QueuedEntry:
    """A message of the queue: all events of an entry for all webhooks, or one event for one of them again."""

    tenant: str
    turn: str
    entry: int
    webhook: str = ""
    index: int = 0
    is_redelivery: bool = False

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> "QueuedEntry":
        """Return what a message of the queue names."""
        return cls(
            str(message["tenant"]),
            str(message["turn"]),
            int(message["entry"]),
            str(message.get("webhook", "")),
            int(message.get("index", 0)),
            bool(message.get("redelivery", False)),
        )

    def to_message(self) -> dict[str, Any]:
        """Return the message of the queue."""
        message: dict[str, Any] = {"tenant": self.tenant, "turn": self.turn, "entry": self.entry}
        if self.webhook:
            message |= {"webhook": self.webhook, "index": self.index}
        return message | ({"redelivery": True} if self.is_redelivery else {})


def deliver_queued_entry(resources: Resources, queued: QueuedEntry) -> None:
    """Deliver what a message names. What a receiver does not take is queued again, with a delay.

    Args:
        resources: Tables, secrets and queue.
        queued: The message. It may arrive more than once.
    """
    turn = load_turn(resources, queued.tenant, queued.turn)
    entry = _read_entry(resources, queued)
    if turn is None or entry is None:
        return  # it was erased, or has expired
    if not queued.webhook:
        _call_hooks(resources, turn, entry)
    registered = read_webhooks(resources, queued.tenant) if entry.state.has_webhooks else RegisteredWebhooks()
    for index, event, webhook in _select(entry, registered, queued):
        _deliver(resources, turn, entry, index, event, webhook, registered, queued)
    if not queued.webhook:
        key = (resources.settings.bridges_table, turn.pk, build_outbox_key(queued.entry))
        resources.tables.write_items(Delete(*key))


def _call_hooks(resources: Resources, turn: Turn, entry: LogEntry) -> None:
    """Call the endpoints of the agent that the entry concerns. A message that comes again calls them again, by the same
    key."""
    if not has_hook_points(entry.events, entry.state):
        return
    from fermata.turns.hooks.call_hooks import call_hooks_of_points  # few turns have hooks

    points = [point for point in iter_hook_points(entry.events, entry.state) if is_hooked(point, entry.state)]
    call_hooks_of_points(resources, turn, points, partial(_build_finish_payload, resources, turn, entry))


def _build_finish_payload(resources: Resources, turn: Turn, entry: LogEntry) -> Mapping[str, Any]:
    from fermata.turns.hooks.hook_payload import build_finish_payload

    messages = load_messages(resources, turn.tenant, turn.conversation)
    terminal = next(event for event in entry.events if isinstance(event, TerminalEvent))
    return build_finish_payload(turn, terminal, messages, entry.state)


def _read_entry(resources: Resources, queued: QueuedEntry) -> LogEntry | None:
    pk = build_turn_pk(queued.tenant, queued.turn)
    item = resources.tables.get_item(resources.settings.bridges_table, pk, build_entry_key(queued.entry))
    return log_entry_from_item(resources, item) if item else None


def _select(
    entry: LogEntry, registered: RegisteredWebhooks, queued: QueuedEntry
) -> Iterator[tuple[int, Event, Webhook]]:
    for index, event in enumerate(entry.events):
        kind = get_webhook_event(event)
        for webhook in registered.webhooks:
            is_wanted = kind is not None and webhook.enabled and kind in webhook.events
            is_named = not queued.webhook or (queued.webhook, queued.index) == (webhook.id, index)
            if is_wanted and is_named:
                yield index, event, webhook


def _deliver(
    resources: Resources,
    turn: Turn,
    entry: LogEntry,
    index: int,
    event: Event,
    webhook: Webhook,
    registered: RegisteredWebhooks,
    queued: QueuedEntry,
) -> None:
    delivery = _find_delivery(resources, turn, entry, index, event, webhook)
    if delivery.state != "waiting" and not queued.is_redelivery:
        return
    secret = open_webhook_secret(resources, turn.tenant, registered, webhook.id)
    if not secret:
        observability.log_warning("webhooks.sealed", tenant=turn.tenant, webhook=webhook.id)
        return
    payload = build_webhook_payload(turn, entry, event)
    outcome = send_event(resources, webhook.url, secret, delivery.event_id, payload)
    now = resources.clock.time()
    if outcome.response is not None and webhook.may_answer:
        # Before the delivery counts as done: a function that dies in between is sent the answer again.
        take_answer(resources, turn, webhook.id, event, outcome.response)
    wait = None if outcome.is_delivered else get_next_wait(delivery.attempts + 1, now - delivery.at_ms / 1000)
    state = "delivered" if outcome.is_delivered else "failed" if wait is None else "waiting"
    attempted = delivery.model_copy(
        update={
            "state": state,
            "attempts": delivery.attempts + 1,
            "status": outcome.status,
            "error": outcome.error,
            "attempted_at": iso_from_epoch(now),
        }
    )
    is_newest = store_attempt(resources, turn.tenant, webhook.id, attempted)
    _log_attempt(turn, webhook, attempted)
    if wait is not None and is_newest:
        # After the attempt is counted: a message that fails is repeated, and must not leave another one each time.
        again = QueuedEntry(turn.tenant, turn.id, entry.first_number, webhook.id, index)
        resources.webhook_queue.send(again.to_message(), delay_seconds=wait)


def _find_delivery(
    resources: Resources, turn: Turn, entry: LogEntry, index: int, event: Event, webhook: Webhook
) -> Delivery:
    kind = get_webhook_event(event)
    fresh = Delivery(
        event_id=f"{turn.id}.{entry.first_number}.{index}",
        event=kind.value if kind else "",
        turn=turn.id,
        entry=entry.first_number,
        index=index,
        at_ms=entry.at_ms,
    )
    return read_delivery(resources, turn.tenant, webhook.id, fresh.sort_key) or fresh


def build_webhook_payload(turn: Turn, entry: LogEntry, event: Event) -> dict[str, Any]:
    """Return what a webhook is sent about an event.

    Args:
        turn: The turn.
        entry: The log entry of the event.
        event: The event.
    """
    kind = get_webhook_event(event)
    return {
        "type": kind.value if kind else "",
        "timestamp": iso_from_epoch(entry.at_ms / 1000),
        "data": {
            "tenant": turn.tenant,
            "bridgeId": turn.id,
            "conversationId": turn.root_conversation,
            "userId": turn.user,
            "scope": turn.scope,
            "event": event.to_wire(),
        },
    }


def _log_attempt(turn: Turn, webhook: Webhook, delivery: Delivery) -> None:
    facts = {"tenant": turn.tenant, "webhook": webhook.id, "event_id": delivery.event_id, "attempt": delivery.attempts}
    if delivery.state == "delivered":
        observability.log_event("webhooks.delivered", **facts)
    else:
        is_given_up = delivery.state == "failed"
        observability.log_warning("webhooks.failed", **facts, status=delivery.status, given_up=is_given_up)
