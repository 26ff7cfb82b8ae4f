"""Purge conversations that were deleted a month ago: their blobs, their messages, and last their own row.

The row goes last, so that the next purge resumes one that was interrupted. The ledger keeps what a conversation cost
(decision 0066).
"""

from collections.abc import Callable

from fermata.aws import blob_store, observability
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.conversations.conversation_store import BIN_SHARD_COUNT, USER_INDEX, bin_shard_partition
from fermata.conversations.message_store import conversation_partition

BIN_RETENTION_DAYS = 30
_MAX_CONVERSATIONS_PER_SHARD = 500
"""Conversations that one purge takes from a shard; the next purge takes the others."""


def purge_deleted_conversations(resources: Resources, has_time: Callable[[], bool] = lambda: True) -> int:
    """Purge until nothing is left or the time is over.

    Args:
        has_time: Asked before each conversation.

    Returns:
        How many conversations were purged.
    """
    deleted_before = resources.clock.now_iso(-BIN_RETENTION_DAYS * 86_400)
    purged = 0
    for shard in range(BIN_SHARD_COUNT):
        for row in _read_shard(resources, shard, deleted_before):
            if not has_time():
                return purged
            purged += _purge_conversation(resources, row)
    return purged


def _read_shard(resources: Resources, shard: int, deleted_before: str) -> list[Item]:
    return resources.tables.query_index(
        resources.settings.conversations_table,
        USER_INDEX,
        ("gpk", bin_shard_partition(shard)),
        max_sort=("gsk", deleted_before),
        limit=_MAX_CONVERSATIONS_PER_SHARD,
    )


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
