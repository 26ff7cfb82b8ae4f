"""Forgets what was deleted a month ago: its pictures and large blocks, its messages, and last of all its own row.

The row goes last, so that a purge that dies half-way is taken up again by the next. The ledger stays: what a
conversation cost is not forgotten with it.
"""

from collections.abc import Callable

from fermata.aws import blobs, signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item
from fermata.conversations import rows
from fermata.conversations.threads import BIN_SHARDS, INDEX, bin_shard

KEPT_DAYS = 30
AT_MOST = 500
"""Conversations a shard's purge looks at; what is more waits for the next one."""


def purge(desk: Desk, has_time: Callable[[], bool] = lambda: True) -> int:
    """Returns how many conversations were forgotten."""
    before = desk.clock.instant(-KEPT_DAYS * 86_400)
    forgotten = 0
    for shard in range(BIN_SHARDS):
        table = desk.settings.conversations_table
        place = ("gpk", bin_shard(shard))
        for row in desk.tables.query_index(table, INDEX, place, upto=("gsk", before), limit=AT_MOST):
            if not has_time():
                return forgotten
            forgotten += _forget(desk, row)
    return forgotten


def _forget(desk: Desk, row: Item) -> int:
    """One that cannot be forgotten must not keep the others; it is logged, and tried again by the next purge."""
    tenant, conversation = row["tenant"], row["id"]
    table, pk = desk.settings.conversations_table, rows.partition(tenant, conversation)
    try:
        desk.blobs.remove_folder(blobs.conversation_folder(tenant, conversation))
        desk.tables.remove(table, [(pk, sk) for sk in desk.tables.keys(table, pk, low="m#", high="m#~")])
        desk.tables.remove(table, [(pk, "meta")])
    except Exception:  # noqa: BLE001 - logged whole; the next purge tries again
        signals.failed("conversation.purge_failed", conversation=conversation)
        return 0
    signals.tell("conversation.purged", tenant=tenant, conversation=conversation)
    return 1
