"""Messages as rows: one per user prompt, model reply and tool result; what is large lies in the bucket."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import TypeAdapter

from fermata.aws import blobs
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item, Put
from fermata.words.blocks import BlobBlock, Block, ReasoningBlock, ToolCallBlock
from fermata.words.messages import Message

MAX_ROW = 200 * 1024
"""Bytes of JSON a row's content may have; DynamoDB itself allows 400 KB an item."""

_blocks: TypeAdapter[tuple[Block, ...]] = TypeAdapter(tuple[Block, ...])


def partition(tenant: str, conversation: str) -> str:
    return f"t#{tenant}#c#{conversation}"


def lines(content: Iterable[Block]) -> list[list[Block]]:
    """A message's blocks as the contract's rows: a tool call is a row of its own, what stands between is one."""
    groups: list[list[Block]] = []
    for block in content:
        if isinstance(block, ReasoningBlock):
            continue
        if groups and not isinstance(block, ToolCallBlock) and not isinstance(groups[-1][-1], ToolCallBlock):
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def width(message: Message) -> int:
    """How many positions a message takes; one that shows nothing still has its own."""
    return max(1, len(lines(message.content)))


def put(desk: Desk, tenant: str, conversation: str, message: Message) -> Put:
    """The write that stores a message; its large blocks are in the bucket when this returns."""
    folder = blobs.conversation_folder(tenant, conversation)
    row: Item = {
        "pk": partition(tenant, conversation),
        "sk": f"m#{message.position:08d}",
        "v": 1,
        "role": message.role,
        "turn": message.turn,
        "round": message.round,
        "createdAt": message.created_at,
        "content": json.dumps(_spilled(desk, folder, message.content), separators=(",", ":")),
    }
    if message.tool_call_id:
        row |= {"toolCallId": message.tool_call_id, "toolName": message.tool_name}
    return Put(desk.settings.conversations_table, row)


def load(desk: Desk, tenant: str, conversation: str) -> list[Message]:
    """All messages in order, with their large blocks fetched."""
    pk = partition(tenant, conversation)
    items = desk.tables.query(desk.settings.conversations_table, pk, low="m#", high="m#~")
    return [_message(desk, item) for item in items]


def _message(desk: Desk, item: Item) -> Message:
    content = _blocks.validate_python(_fetched(desk, json.loads(item["content"])))
    return Message(
        position=int(item["sk"][2:]),
        role=item["role"],
        content=content,
        turn=item["turn"],
        round=item["round"],
        tool_call_id=item.get("toolCallId"),
        tool_name=item.get("toolName"),
        created_at=item["createdAt"],
    )


def _spilled(desk: Desk, folder: str, content: Sequence[Block]) -> list[dict[str, Any]]:
    """Blocks as JSON, the large ones replaced by their blob; the row as a whole stays under MAX_ROW."""
    wire = [block.wire() for block in content]
    sizes = [len(json.dumps(block)) for block in wire]
    total = sum(sizes)
    for index in sorted(range(len(wire)), key=lambda i: -sizes[i]):
        if sizes[index] <= blobs.LARGE and total <= MAX_ROW:
            break
        wire[index] = BlobBlock(blob=desk.blobs.put(folder, wire[index])).wire()
        total -= sizes[index]
    return wire


def _fetched(desk: Desk, wire: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [desk.blobs.get(block["blob"]) if block["kind"] == "blob" else block for block in wire]
