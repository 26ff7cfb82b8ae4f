"""Define the rows of conversations: their keys and index partitions, and what is written to them and read from them.

The index `byUser` has a partition per user and scope, the latest use first. A deleted conversation is in one of the
bin's partitions instead.
"""

import zlib
from typing import Any

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey
from fermata.aws.resources import Resources
from fermata.conversations.message_cuts import decode_cuts
from fermata.conversations.message_store import conversation_partition
from fermata.domain.conversation import Conversation
from fermata.domain.usd_rounding import round_usd

UNTITLED_CONVERSATION = "New conversation"
BIN_SHARD_COUNT = 4
USER_INDEX = "byUser"


def user_partition(tenant: str, user: str, scope: str) -> str:
    """Return the index partition of one user's conversations of one scope.

    Args:
        tenant: The tenant's name.
        user: The id of the user, as the token names it.
        scope: One of SCOPES.
    """
    return f"t#{tenant}#u#{user}#{scope}"


def bin_partition_of_conversation(conversation_id: str) -> str:
    """Return the index partition of a deleted conversation. The bin is sharded, because all tenants write to it."""
    return bin_shard_partition(zlib.crc32(conversation_id.encode()) % BIN_SHARD_COUNT)


def bin_shard_partition(shard: int) -> str:
    """Return the index partition of one shard of the bin, which holds deleted conversations of all tenants."""
    return f"bin#{shard}"


def build_conversation_key(resources: Resources, tenant: str, conversation_id: str) -> ItemKey:
    """Return the key of a conversation's row.

    Args:
        tenant: The tenant's name.
        conversation_id: A well-formed id.
    """
    return ItemKey(resources.settings.conversations_table, conversation_partition(tenant, conversation_id), "meta")


def to_conversation_item(conversation: Conversation) -> Item:
    row: Item = conversation.model_dump(
        exclude_none=True, exclude={"cuts"} if conversation.space else {"cuts", "space"}
    )
    if conversation.title == UNTITLED_CONVERSATION:
        del row["title"]
    pk = conversation_partition(conversation.tenant, conversation.id)
    index_pk = user_partition(conversation.tenant, conversation.user, conversation.scope)
    return row | {"pk": pk, "sk": "meta", "v": 1, "gpk": index_pk, "gsk": conversation.updated_at}


def conversation_from_item(row: Item) -> Conversation:
    """Parse a row. A title that the user gave precedes the one from the first prompt (decision 0065)."""
    title = row.get("title") or row.get("auto_title") or UNTITLED_CONVERSATION
    cuts = {"cuts": decode_cuts(row["cuts"])} if "cuts" in row else {}
    return Conversation.model_validate(row | {"title": title} | cuts)


def to_conversation_view(conversation: Conversation) -> dict[str, Any]:
    """Return the conversation as clients see it. Costs are numbers, and only `credentialId` may be null."""
    hidden = {"tenant", "user", "claim", "next_position", "cuts", "archived"}
    hidden |= set() if conversation.space else {"space"}
    view = conversation.model_dump(mode="json", by_alias=True, exclude=hidden)
    return view | {"costUsdTotal": round_usd(conversation.cost_usd_total)}
