"""Erase turns and conversations: their rows in every table, and their blobs in all versions.

Each function may run again, also in the middle of itself: it deletes what it finds.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from fermata.aws.blob_store import conversation_folder, earlier_prompts_folder, snapshots_folder, turn_folder
from fermata.aws.resources import Resources
from fermata.conversations.message_store import conversation_partition
from fermata.domain.errors import NotFound
from fermata.domain.events import CancelledEvent
from fermata.limits.count_use import delete_empty_counts
from fermata.privacy.find_subject_rows import list_user_rows_of_conversation
from fermata.turns.end.stop_turn import stop_turn
from fermata.turns.prompt_queue.queued_prompt import queue_partition
from fermata.turns.turn import build_turn_pk, load_turn

ERASED_TURN = CancelledEvent(reason="Its data is being erased.")


def erase_turn(resources: Resources, tenant: str, turn_id: str, owner: str = "") -> Counter[str]:
    """End a turn if it still runs, and delete its row, log, pauses, journal and blobs.

    Args:
        tenant: The tenant's name.
        turn_id: The id of the turn.
        owner: The user whose snapshots for this turn are deleted; by default whoever started it, if it has a row.

    Raises:
        ServiceUnavailable: The turn has ended, but its workflow could not be resumed. Run it again.
    """
    turn = load_turn(resources, tenant, turn_id)
    if turn is not None:
        with suppress(NotFound):  # it has a row, but no log any more, where an earlier run was stopped
            stop_turn(resources, turn, ERASED_TURN)
        if turn.limits_shard is not None:
            delete_empty_counts(resources, tenant, turn.user, turn.limits_shard)
    rows = erase_partition(resources, resources.settings.bridges_table, build_turn_pk(tenant, turn_id))
    objects = resources.blobs.erase_folder(turn_folder(tenant, turn_id))
    if owner := owner or (turn.user if turn else ""):
        objects += resources.blobs.erase_folder(f"{snapshots_folder(tenant, owner)}/{turn_id}")
    return Counter(turns=int(rows > 0), rows=rows, objects=objects)


def erase_conversation(resources: Resources, tenant: str, conversation: str, owner: str = "") -> Counter[str]:
    """Delete a conversation's blobs and messages, and last its own row, by which an interrupted run finds it.

    Args:
        tenant: The tenant's name.
        conversation: The id of the conversation.
        owner: The user whose snapshots, transcripts and chats for this conversation are deleted; nobody's by default.
    """
    table, pk = resources.settings.conversations_table, conversation_partition(tenant, conversation)
    objects = resources.blobs.erase_folder(conversation_folder(tenant, conversation))
    objects += resources.blobs.erase_folder(earlier_prompts_folder(tenant, conversation))
    if owner:
        objects += resources.blobs.erase_folder(f"{snapshots_folder(tenant, owner)}/{conversation}")
    bridges = resources.settings.bridges_table
    rows = erase_partition(resources, bridges, queue_partition(tenant, conversation))
    for partition, prefix in list_user_rows_of_conversation(tenant, conversation, owner):
        rows += erase_partition(resources, bridges, partition, prefix=prefix)
    rows += erase_partition(resources, table, pk, lambda sort_key: sort_key != "meta")
    had_row = erase_partition(resources, table, pk)
    return Counter(conversations=int(had_row > 0), rows=rows + had_row, objects=objects)


def erase_partition(
    resources: Resources, table: str, pk: str, is_included: Callable[[str], bool] = lambda _: True, *, prefix: str = ""
) -> int:
    """Delete the rows of a partition.

    Args:
        is_included: Whether the row with a sort key is deleted.
        prefix: Only rows whose sort keys begin with it. What follows it is a digest.

    Returns:
        How many rows were deleted.
    """
    found = resources.tables.query_items(table, pk, min_sk=prefix, max_sk=f"{prefix}~" if prefix else "")
    sort_keys = [row["sk"] for row in found if is_included(row["sk"])]
    resources.tables.batch_delete(table, [(pk, sort_key) for sort_key in sort_keys])
    return len(sort_keys)
