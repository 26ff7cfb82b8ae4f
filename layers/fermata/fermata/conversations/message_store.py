"""Message rows in DynamoDB: one per user prompt, model reply and tool result.

    t#<tenant>#c#<conversation>   m#<position>
    t#<tenant>#c#<conversation>   u#<turn>        an undo, which may end without a message (decision 0265)
    t#<tenant>#c#<conversation>   s#<turn>#meta, s#<turn>#m#<position>   of a sub-agent's turn (decision 0371)

Images and large blocks of a message are in S3 (block_store.py). Reading a row does not fetch them.
"""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fermata.aws import blob_store, observability
from fermata.aws.dynamodb_items_and_writes import Item, Put
from fermata.aws.resources import Resources
from fermata.conversations.block_predicates import is_reasoning, is_tool_call
from fermata.conversations.block_store import BlockFetcher, encode_row_json, parse_block, store_blocks
from fermata.domain.blocks import Block
from fermata.domain.conversation import get_child_turn, get_root_conversation
from fermata.domain.messages import Message, UsageSoFar

_blocks_adapter: TypeAdapter[tuple[Block, ...]] = TypeAdapter(tuple[Block, ...])


def conversation_partition(tenant: str, conversation: str) -> str:
    """Return the partition key of a conversation's row and messages, and of those of its sub-agents."""
    return f"t#{tenant}#c#{get_root_conversation(conversation)}"


def build_meta_sort_key(conversation: str) -> str:
    """Return the sort key of a conversation's own row."""
    return f"{_get_key_prefix(conversation)}meta"


def message_sort_key(position: int, conversation: str = "") -> str:
    """Return the sort key of a message of a conversation."""
    return f"{_get_key_prefix(conversation)}m#{position:08d}"


def _get_key_prefix(conversation: str) -> str:
    child_turn = get_child_turn(conversation)
    return f"s#{child_turn}#" if child_turn else ""


def build_undo_put(resources: Resources, tenant: str, conversation: str, turn: str) -> Put:
    """Build the write of the row by which an erasure finds an undo of the conversation's edits.

    Args:
        tenant: The tenant's name.
        conversation: The id of the conversation.
        turn: The id of the undo's own turn.
    """
    pk = conversation_partition(tenant, conversation)
    return Put(resources.settings.conversations_table, {"pk": pk, "sk": f"u#{turn}", "v": 1, "turn": turn})


def group_into_lines(content: Iterable[Block]) -> list[list[Block]]:
    """Group a message's blocks into the lines that clients are shown.

    Each tool call is a line of its own, and the blocks between calls are one line. Reasoning is not shown.
    """
    lines: list[list[Block]] = []
    for block in content:
        if is_reasoning(block):
            continue
        if lines and not is_tool_call(block) and not is_tool_call(lines[-1][-1]):
            lines[-1].append(block)
        else:
            lines.append([block])
    return lines


def count_positions(message: Message) -> int:
    """Return how many positions a message takes: one per line, and at least one."""
    return max(1, len(group_into_lines(message.content)))


def build_message_put(resources: Resources, tenant: str, conversation: str, message: Message) -> Put:
    """Build the write of a message's row, which never replaces another (decision 0150).

    Its images and large blocks are in S3 when this returns.

    Args:
        tenant: The tenant's name.
        conversation: The conversation's id.
        message: The message, whose `position` is its place in the conversation.
    """
    folder = blob_store.conversation_folder(tenant, get_root_conversation(conversation))
    row: Item = {
        "pk": conversation_partition(tenant, conversation),
        "sk": message_sort_key(message.position, conversation),
        "v": 1,
        "role": message.role,
        "turn": message.turn,
        "round": message.round,
        "createdAt": message.created_at,
        "content": encode_row_json(store_blocks(resources, folder, message.content)),
    }
    if message.tool_call_id:
        row |= {"toolCallId": message.tool_call_id, "toolName": message.tool_name}
    if message.partial:
        row["partial"] = True
    if usage := message.turn_usage:
        row["used"] = {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens, "cost": usage.cost_usd}
    return Put(resources.settings.conversations_table, row, if_absent=True)


def load_messages(resources: Resources, tenant: str, conversation: str) -> list[Message]:
    """Return all messages in order, with everything that is in S3.

    Args:
        resources: Table and bucket.
        tenant: The tenant's name.
        conversation: The id of the conversation.
    """
    table = resources.settings.conversations_table
    pk = conversation_partition(tenant, conversation)
    min_sk, max_sk = f"{_get_key_prefix(conversation)}m#", f"{_get_key_prefix(conversation)}m#~"
    items = resources.tables.query_items(table, pk, min_sk=min_sk, max_sk=max_sk)
    return BlockFetcher(resources.blobs).fetch_all_blocks([_message_from_item(item) for item in items])


def read_newest_messages(
    resources: Resources, tenant: str, conversation: str, *, before: int | None = None, limit: int
) -> list[Message]:
    """Return the newest messages, the newest first, without what is in S3.

    Args:
        tenant: The tenant's name.
        conversation: The conversation's id.
        before: The position before which to read; None for the end.
        limit: The greatest number of messages.
    """
    if before is not None and before <= 0:
        return []
    table = resources.settings.conversations_table
    pk = conversation_partition(tenant, conversation)
    prefix = _get_key_prefix(conversation)
    max_sk = f"{prefix}m#~" if before is None else message_sort_key(before - 1, conversation)
    items = resources.tables.query_items(table, pk, min_sk=f"{prefix}m#", max_sk=max_sk, descending=True, limit=limit)
    return [_message_from_item(item) for item in items]


def read_following_messages(
    resources: Resources, tenant: str, conversation: str, position: int, *, limit: int
) -> list[Message]:
    """Return messages in order.

    Args:
        tenant: The tenant's name.
        conversation: The conversation's id.
        position: The position of the first one.
        limit: How many at most.
    """
    table = resources.settings.conversations_table
    pk = conversation_partition(tenant, conversation)
    min_sk, max_sk = message_sort_key(position, conversation), f"{_get_key_prefix(conversation)}m#~"
    items = resources.tables.query_items(table, pk, min_sk=min_sk, max_sk=max_sk, limit=limit)
    return [_message_from_item(item) for item in items]


def find_message(resources: Resources, tenant: str, conversation: str, position: int) -> Message | None:
    """Return the message stored at exactly this position; None when there is none."""
    table = resources.settings.conversations_table
    pk = conversation_partition(tenant, conversation)
    item = resources.tables.get_item(table, pk, message_sort_key(position, conversation))
    return _message_from_item(item) if item else None


def _message_from_item(item: Item) -> Message:
    return Message(
        position=int(item["sk"].rpartition("#")[2]),
        role=item["role"],
        content=_read_content(item),
        turn=item["turn"],
        round=item["round"],
        tool_call_id=item.get("toolCallId"),
        tool_name=item.get("toolName"),
        created_at=item["createdAt"],
        partial=item.get("partial"),
        turn_usage=_read_usage(item["used"]) if "used" in item else None,
    )


def _read_usage(stored: Item) -> UsageSoFar:
    return UsageSoFar(
        prompt_tokens=int(stored["prompt"]), completion_tokens=int(stored["completion"]), cost_usd=stored["cost"]
    )


def _read_content(item: Item) -> tuple[Block, ...]:
    """Return the blocks that can be read. The others are logged and left out, so that the conversation still opens."""
    stored = json.loads(item["content"])
    try:
        return _blocks_adapter.validate_python(stored)
    except ValidationError as error:
        row = f"{item['pk']}/{item['sk']}"
        observability.log_warning("message.unreadable", row=row, mistakes=error.error_count())
    values = stored if isinstance(stored, list) else []
    return tuple(block for value in values if (block := _read_block(value)) is not None)


def _read_block(value: Any) -> Block | None:
    try:
        return parse_block(value)
    except ValidationError:
        return None
