"""Purge conversations that were deleted long ago: their blobs, their messages, and last their own row.

The row goes last, so that the next purge resumes one that was interrupted. Former versions of the blobs stay for the
recovery time, as the backups of the tables do. The ledger keeps what a conversation cost
(decision 0066).

In the bin, a conversation stands at the instant at which the purge looks at it next: first at its deletion, then when
it is due. So a purge reads what is new or due, and not the whole bin. Once a day it does, because a tenant may have
shortened the time for which it keeps what was deleted (decision 0265).
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime

from fermata.aws import blob_store, observability
from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Update
from fermata.aws.resources import Resources
from fermata.conversations.conversation_rows import BIN_SHARD_COUNT, USER_INDEX, bin_shard_partition
from fermata.conversations.message_store import conversation_partition

BIN_RETENTION_DAYS = 30
"""How long a deleted conversation is kept, unless its tenant has another setting."""

MIN_RETENTION_SECONDS = 3_600
"""Longer than any function runs, so that none writes to a conversation that is purged."""

_PAGE_SIZE = 500


def purge_deleted_conversations(
    resources: Resources,
    has_time: Callable[[], bool] = lambda: True,
    get_retention_days: Callable[[str], int] = lambda _: BIN_RETENTION_DAYS,
    *,
    is_whole_bin_read: bool = False,
) -> int:
    """Purge until nothing is left or the time is over.

    Args:
        has_time: Asked before each conversation.
        get_retention_days: Returns how many days a tenant keeps what was deleted.
        is_whole_bin_read: Also look at what was not due by the retention of an earlier look.

    Returns:
        How many conversations were purged.
    """
    purged = 0
    now = resources.clock.now_iso()
    for shard in range(BIN_SHARD_COUNT):
        for row in _iter_shard(resources, shard, None if is_whole_bin_read else now):
            if not has_time():
                return purged
            due_at = _find_due_instant(row, get_retention_days(row["tenant"]))
            if due_at <= now:
                purged += _purge_conversation(resources, row)
            elif due_at != row["gsk"]:
                _plan_next_look(resources, row, due_at)
    return purged


def _find_due_instant(row: Item, retention_days: int) -> str:
    deleted_at = datetime.fromisoformat(row["deleted_at"]).timestamp()
    return iso_from_epoch(deleted_at + max(retention_days * 86_400, MIN_RETENTION_SECONDS))


def _plan_next_look(resources: Resources, row: Item, due_at: str) -> None:
    """Move a conversation within the bin, unless it was restored, purged or moved meanwhile."""
    update = Update(
        resources.settings.conversations_table,
        row["pk"],
        row["sk"],
        "SET gsk = :due",
        {":due": due_at, ":read": row["gsk"], ":bin": row["gpk"]},
        condition="gpk = :bin AND gsk = :read",
    )
    with suppress(ConditionFailed):
        resources.tables.write_items(update)


def _iter_shard(resources: Resources, shard: int, until: str | None) -> Iterator[Item]:
    """Yield deleted conversations of a shard, page by page.

    Args:
        until: The instant until which a look is due; None for all conversations.
    """
    start: Item | None = None
    while True:
        rows = resources.tables.query_index(
            resources.settings.conversations_table,
            USER_INDEX,
            ("gpk", bin_shard_partition(shard)),
            limit=_PAGE_SIZE,
            start_after=start,
            max_sort=("gsk", until) if until else None,
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
        sort_keys = resources.tables.query_sort_keys(table, pk)
        resources.tables.batch_delete(table, [(pk, sk) for sk in sort_keys if sk != "meta"])
        resources.tables.batch_delete(table, [(pk, "meta")])
    except Exception:  # noqa: BLE001 - logged with its traceback; the next purge tries again
        observability.log_exception("conversation.purge_failed", conversation=conversation)
        return 0
    observability.log_event("conversation.purged", tenant=tenant, conversation=conversation)
    return 1
