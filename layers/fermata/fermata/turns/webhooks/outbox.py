"""Remember with a log entry that webhooks have to be told about it, and queue it (decision 0332).

    t#<tenant>#turn#<turn>   w#<number>   the entry of this number has such events; in the index `open`

The row is written in the transaction of the entry, and deleted when its events were handed out. So no event is
forgotten: what could not be queued is queued by the sweep a minute later.
"""

import zlib
from collections.abc import Iterable, Sequence

from fermata.aws import observability
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import Item, Put
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.domain.events import ApprovalRequestedEvent, Event, TerminalEvent, ToolRequestEvent
from fermata.webhooks.webhook import WebhookEvent

OUTBOX_SHARDS = 2
RESEND_SECONDS = 60
"""How old an outbox row has to be before the sweep queues it again."""
MAX_RESENT = 500
"""Rows that one sweep queues."""


def get_webhook_event(event: Event) -> WebhookEvent | None:
    """Return what a webhook is told about an event of the log, or None for nothing."""
    match event:
        case ToolRequestEvent():
            return WebhookEvent.TOOL_REQUEST
        case ApprovalRequestedEvent():
            return WebhookEvent.APPROVAL_REQUEST
        case TerminalEvent():
            return WebhookEvent.TURN_END
    return None


def has_webhook_events(events: Iterable[Event]) -> bool:
    """Return whether webhooks are told about any of these events."""
    return any(get_webhook_event(event) is not None for event in events)


def build_outbox_key(entry_number: int) -> str:
    return f"w#{entry_number:010d}"


def build_outbox_put(resources: Resources, pk: str, entry_number: int, at_ms: int, expires: int) -> Put:
    """Return the write that belongs into the transaction of a log entry.

    Args:
        pk: The turn's partition.
        entry_number: The entry's number.
        at_ms: When it was written.
        expires: When the turn's rows expire.
    """
    item: Item = {
        "pk": pk,
        "sk": build_outbox_key(entry_number),
        "v": 1,
        "open": build_outbox_shard_key(pk),
        "openSince": iso_from_epoch(at_ms / 1000),
        "ttl": expires,
    }
    return Put(resources.settings.bridges_table, item, if_absent=True)


def build_outbox_shard_key(pk: str) -> str:
    """Return the partition of the index `open` that lists outbox rows of this turn."""
    return f"hooks#{zlib.crc32(pk.encode()) % OUTBOX_SHARDS}"


def queue_entry(resources: Resources, tenant: str, turn: str, entry_number: int) -> None:
    """Queue an entry. A failure is logged only, because the sweep queues it again.

    Args:
        tenant: The tenant's name.
        turn: The turn's id.
        entry_number: The number of the entry.
    """
    try:
        resources.webhook_queue.send({"tenant": tenant, "turn": turn, "entry": entry_number})
    except AWS_ERRORS as error:
        observability.log_warning("webhooks.queue_failed", tenant=tenant, turn=turn, reason=str(error))


def resend_outbox(resources: Resources) -> int:
    """Queue the entries again that have been waiting for a minute, and return their number."""
    before = resources.clock.now_iso(-RESEND_SECONDS)
    rows = [row for shard in range(OUTBOX_SHARDS) for row in _list_waiting(resources, shard, before)]
    for row in rows[:MAX_RESENT]:
        tenant, _, turn = str(row["pk"]).removeprefix("t#").partition("#turn#")
        queue_entry(resources, tenant, turn, int(str(row["sk"])[2:]))
    return len(rows)


def _list_waiting(resources: Resources, shard: int, before: str) -> Sequence[Item]:
    table = resources.settings.bridges_table
    return resources.tables.query_index(
        table, "open", ("open", f"hooks#{shard}"), limit=MAX_RESENT, max_sort=("openSince", before)
    )
