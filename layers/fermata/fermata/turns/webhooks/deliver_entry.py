"""Deliver the events of a log entry to the webhooks of its tenant, and take the answers of their responses."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from fermata.aws import observability
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Delete
from fermata.aws.resources import Resources
from fermata.conversations.message_store import load_messages
from fermata.domain.events import Event, TerminalEvent
from fermata.turns.hooks.hook_points import has_hook_points, iter_hook_points
from fermata.turns.turn import Turn, build_turn_pk, load_turn
from fermata.turns.turn_log import LogEntry, build_entry_key, log_entry_from_item
from fermata.turns.webhooks.delivery_slots import hold_delivery_slot
from fermata.turns.webhooks.outbox import build_outbox_key, get_webhook_event
from fermata.turns.webhooks.queued_entry import QueuedEntry
from fermata.turns.webhooks.record_attempt import is_attempt_due, record_attempt
from fermata.turns.webhooks.take_answer import take_answer
from fermata.webhooks.delivery import Delivery, read_delivery
from fermata.webhooks.send_event import send_event
from fermata.webhooks.webhook import RegisteredWebhooks, Webhook, open_webhook_secret, read_webhooks


def deliver_queued_entry(resources: Resources, queued: QueuedEntry) -> None:
    """Make the call that a message names, or queue those that an entry asks for.

    What a receiver does not take is queued again, with a delay.

    Args:
        resources: Tables, secrets and queue.
        queued: The message. It may arrive more than once.
    """
    turn = load_turn(resources, queued.tenant, queued.turn)
    entry = _read_entry(resources, queued)
    if turn is None or entry is None:
        return  # it was erased, or has expired
    if not queued.is_whole_entry:
        _make_call(resources, turn, entry, queued)
        return
    outbox_key = (turn.pk, build_outbox_key(queued.entry))
    if resources.tables.get_item(resources.settings.bridges_table, *outbox_key) is None:
        return  # its calls are queued: the sweep had queued it each minute while no message was delivered
    calls = list(_list_calls(resources, turn, entry))
    if len(calls) == 1 and not calls[0].hook:  # an endpoint may take longer than the sweep leaves an entry alone
        # Its row of the outbox is there, so that nobody has handled it to the end.
        _make_call(resources, turn, entry, replace(calls[0], is_repeated=True))
    else:
        # Each call by itself, so that no slow one keeps another one waiting or uses up the time of the function.
        for call in calls:
            resources.webhook_queue.send(call.to_message())
    resources.tables.write_items(Delete(resources.settings.bridges_table, *outbox_key))


def _list_calls(resources: Resources, turn: Turn, entry: LogEntry) -> Iterator[QueuedEntry]:
    """Yield a message for each call that an entry asks for."""
    if has_hook_points(entry.events, entry.state):
        from fermata.turns.hooks.call_hooks import list_hooked_endpoints  # few turns have hooks

        for point, endpoint in list_hooked_endpoints(resources, turn, entry.events, entry.state):
            yield QueuedEntry(turn.tenant, turn.id, entry.first_number, hook=point.key, endpoint=endpoint)
    registered = read_webhooks(resources, turn.tenant) if entry.state.has_webhooks else RegisteredWebhooks()
    for index, event in enumerate(entry.events):
        for webhook in registered.webhooks:
            if _is_told(webhook, event):
                yield QueuedEntry(turn.tenant, turn.id, entry.first_number, webhook.id, index, attempt=1)


def _is_told(webhook: Webhook, event: Event) -> bool:
    kind = get_webhook_event(event)
    return kind is not None and webhook.enabled and kind in webhook.events


def _make_call(resources: Resources, turn: Turn, entry: LogEntry, queued: QueuedEntry) -> None:
    """Make one call. If as many calls of the tenant are under way as may be, it is queued for later (decision 0353)."""
    receiver = queued.endpoint if queued.hook else queued.webhook
    again = queued.defer().to_message()
    with hold_delivery_slot(resources, turn.tenant, receiver, queued.deferrals, again) as has_slot:
        if has_slot and queued.hook:
            _call_hook(resources, turn, entry, queued)
        elif has_slot:
            _tell_webhook(resources, turn, entry, queued)


def _call_hook(resources: Resources, turn: Turn, entry: LogEntry, queued: QueuedEntry) -> None:
    """Call an endpoint of the agent. A message that comes again calls it again, by the same key."""
    from fermata.turns.hooks.call_hooks import call_hooked_endpoint  # few turns have hooks

    points = (point for point in iter_hook_points(entry.events, entry.state) if point.key == queued.hook)
    for point in points:
        build_finish = partial(_build_finish_payload, resources, turn, entry)
        call_hooked_endpoint(resources, turn, point, queued.endpoint, build_finish)


def _build_finish_payload(resources: Resources, turn: Turn, entry: LogEntry) -> Mapping[str, Any]:
    from fermata.turns.hooks.hook_payload import build_finish_payload

    messages = load_messages(resources, turn.tenant, turn.conversation)
    terminal = next(event for event in entry.events if isinstance(event, TerminalEvent))
    return build_finish_payload(turn, terminal, messages, entry.state)


def _read_entry(resources: Resources, queued: QueuedEntry) -> LogEntry | None:
    pk = build_turn_pk(queued.tenant, queued.turn)
    item = resources.tables.get_item(resources.settings.bridges_table, pk, build_entry_key(queued.entry))
    return log_entry_from_item(resources, item) if item else None


def _tell_webhook(resources: Resources, turn: Turn, entry: LogEntry, queued: QueuedEntry) -> None:
    registered, index = read_webhooks(resources, turn.tenant), queued.index
    webhook = registered.find(queued.webhook)
    if webhook is None or index >= len(entry.events) or not _is_told(webhook, entry.events[index]):
        return
    event = entry.events[index]
    delivery = _find_delivery(resources, turn, entry, index, event, webhook)
    retry = QueuedEntry(turn.tenant, turn.id, delivery.entry, webhook.id, delivery.index).to_message()
    if not is_attempt_due(resources, delivery, queued, retry):
        return
    secret = open_webhook_secret(resources, turn.tenant, registered, webhook.id)
    if not secret:
        observability.log_warning("webhooks.sealed", tenant=turn.tenant, webhook=webhook.id)
        return
    payload = build_webhook_payload(turn, entry, event)
    outcome = send_event(resources, webhook.url, secret, delivery.event_id, payload)
    if outcome.response is not None and webhook.may_answer:
        # Before the delivery counts as done: a function that dies in between is sent the answer again.
        take_answer(resources, turn, webhook.id, event, outcome.response)
    record_attempt(resources, turn.tenant, webhook.id, delivery, outcome, retry)


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
