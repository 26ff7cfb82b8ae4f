"""Purge conversations that were deleted long ago: their blobs, their messages, and last their own row.

The row goes last, so that the next purge resumes one that was interrupted. The ledger keeps what a conversation cost
(decision 0066).
"""

from collections.abc import Callable, Iterator

from fermata.aws import blob_store, observability
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.conversations.conversation_store import BIN_SHARD_COUNT, USER_INDEX, bin_shard_partition
from fermata.conversations.message_store import conversation_partition

BIN_RETENTION_DAYS = 30
"""How long a deleted conversation is kept, unless its tenant has another setting."""

_PAGE_SIZE = 500


def purge_deleted_conversations(
    resources: Resources,
    has_time: Callable[[], bool] = lambda: True,
    get_retention_days: Callable[[str], int] = lambda _: BIN_RETENTION_DAYS,
) -> int:
    """Purge until nothing is left or the time is over.

    Args:
        has_time: Asked before each conversation.
        get_retention_days: Returns how many days a tenant keeps what was deleted.

    Returns:
        How many conversations were purged.
    """
    purged = 0
    for shard in range(BIN_SHARD_COUNT):
        for row in _iter_shard(resources, shard):
            if not has_time():
                return purged
            if row["deleted_at"] <= resources.clock.now_iso(-get_retention_days(row["tenant"]) * 86_400):
                purged += _purge_conversation(resources, row)
    return purged


def _iter_shard(resources: Resources, shard: int) -> Iterator[Item]:
    """Yield all deleted conversations of a shard, page by page: tenants keep them for different times."""
    start: Item | None = None
    while True:
        rows = resources.tables.query_index(
            resources.settings.conversations_table,
            USER_INDEX,
            ("gpk", bin_shard_partition(shard)),
            limit=_PAGE_SIZE,
            start_after=start,
        )
        yield from rows
        if len(rows) < _PAGE_SIZE:
            return
        start = {name: rows[-1][name] for name in ("gpk", "gsk", "pk", "sk")}


def _purge_conversation(resources: Resources, row: Item) -> int:
    """Purge one conversation and return how many were purged. A failure is logged and does not stop the others."""
    tenant = row["tenant"]
    conversation = row["id"]
    table = resources.settings.conversations_table
    pk = conversation_partition(tenant, conversation)
    try:
        resources.blobs.delete_folder(blob_store.conversation_folder(tenant, conversation))
        sort_keys = resources.tables.query_sort_keys(table, pk, min_sk="m#", max_sk="m#~")
        resources.tables.batch_delete(table, [(pk, sk) for sk in sort_keys])
        resources.tables.batch_delete(table, [(pk, "meta")])
    except Exception:  # noqa: BLE001 - logged with its traceback; the next purge tries again
        observability.log_exception("conversation.purge_failed", conversation=conversation)
        return 0
    observability.log_event("conversation.purged", tenant=tenant, conversation=conversation)
    return 1
