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
from fermata.domain.fair_order import interleave_owners
from fermata.webhooks.webhook_event import WebhookEvent

OUTBOX_SHARDS = 2
RESEND_SECONDS = 60
"""How old an outbox row has to be before the sweep queues it again."""
OVERDUE_SECONDS = 300
"""How long an entry waits at most while the queue and the function behind it work."""
RESENDING_SECONDS = 5.0
"""How long one sweep queues entries."""
MAX_LISTED_ENTRIES = 5000
"""Entries of one shard among which a sweep chooses, the oldest."""


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


def queue_entry(resources: Resources, tenant: str, turn: str, entry_number: int) -> bool:
    """Queue an entry, and return whether the queue took it. A failure is logged only: the sweep queues it again.

    Args:
        tenant: The tenant's name.
        turn: The turn's id.
        entry_number: The number of the entry.
    """
    try:
        resources.webhook_queue.send({"tenant": tenant, "turn": turn, "entry": entry_number})
    except AWS_ERRORS as error:
        observability.log_warning("webhooks.queue_failed", tenant=tenant, turn=turn, reason=str(error))
        return False
    return True


def resend_outbox(resources: Resources) -> int:
    """Queue the entries again that have been waiting for a minute, those of each tenant in turn.

    It stops at the first that the queue does not take, and after `RESENDING_SECONDS`; the next sweep goes on. Entries
    that have waited for longer than the queue should ever need are logged, because an alarm counts these lines.

    Returns:
        How many entries wait.
    """
    begun_at = resources.clock.monotonic()
    before = resources.clock.now_iso(-RESEND_SECONDS)
    rows = [row for shard in range(OUTBOX_SHARDS) for row in _list_waiting(resources, shard, before)]
    rows.sort(key=lambda row: str(row["openSince"]))
    overdue = resources.clock.now_iso(-OVERDUE_SECONDS)
    if rows and rows[0]["openSince"] < overdue:
        observability.log_warning("webhooks.waiting", entries=len(rows), since=rows[0]["openSince"])
    for tenant, turn, entry_number in interleave_owners(map(_read_outbox_key, rows), lambda waiting: waiting[0]):
        is_over = resources.clock.monotonic() - begun_at >= RESENDING_SECONDS
        if is_over or not queue_entry(resources, tenant, turn, entry_number):
            break
    return len(rows)


def _read_outbox_key(row: Item) -> tuple[str, str, int]:
    """Return the tenant, the turn and the number of the entry."""
    _, tenant, _, turn = str(row["pk"]).split("#", 3)
    return tenant, turn, int(str(row["sk"])[2:])


def _list_waiting(resources: Resources, shard: int, before: str) -> Sequence[Item]:
    table = resources.settings.bridges_table
    return resources.tables.query_index(
        table, "open", ("open", f"hooks#{shard}"), limit=MAX_LISTED_ENTRIES, max_sort=("openSince", before)
    )
