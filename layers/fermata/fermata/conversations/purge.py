"""Forgets what was deleted a month ago: its pictures and large blocks, its messages, and last of all its own row.

The row goes last, so that a purge that dies half-way is taken up again by the next. The ledger stays: what a
conversation cost is not forgotten with it.
"""

from collections.abc import Callable

from fermata.aws import blob_store, observability
from fermata.aws.dynamodb import Item
from fermata.aws.resources import Resources
from fermata.conversations import message_store
from fermata.conversations.conversation_store import BIN_SHARD_COUNT, USER_INDEX, bin_shard_partition

BIN_RETENTION_DAYS = 30
_MAX_CONVERSATIONS_PER_SHARD = 500
"""Conversations a shard's purge looks at; what is more waits for the next one."""


def purge_deleted_conversations(resources: Resources, has_time: Callable[[], bool] = lambda: True) -> int:
    """Returns how many conversations were forgotten."""
    before = resources.clock.now_iso(-BIN_RETENTION_DAYS * 86_400)
    forgotten = 0
    for shard in range(BIN_SHARD_COUNT):
        table = resources.settings.conversations_table
        place = ("gpk", bin_shard_partition(shard))
        for row in resources.tables.query_index(
            table, USER_INDEX, place, max_sort=("gsk", before), limit=_MAX_CONVERSATIONS_PER_SHARD
        ):
            if not has_time():
                return forgotten
            forgotten += _purge_conversation(resources, row)
    return forgotten


def _purge_conversation(resources: Resources, row: Item) -> int:
    """One that cannot be forgotten must not keep the others; it is logged, and tried again by the next purge."""
    tenant, conversation = row["tenant"], row["id"]
    table, pk = resources.settings.conversations_table, message_store.conversation_partition(tenant, conversation)
    try:
        resources.blobs.delete_folder(blob_store.conversation_folder(tenant, conversation))
        resources.tables.batch_delete(
            table, [(pk, sk) for sk in resources.tables.query_sort_keys(table, pk, min_sk="m#", max_sk="m#~")]
        )
        resources.tables.batch_delete(table, [(pk, "meta")])
    except Exception:  # noqa: BLE001 - logged whole; the next purge tries again
        observability.log_exception("conversation.purge_failed", conversation=conversation)
        return 0
    observability.log_event("conversation.purged", tenant=tenant, conversation=conversation)
    return 1
