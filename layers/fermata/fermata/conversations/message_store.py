"""Messages as rows: one per user prompt, model reply and tool result; what is large lies in the bucket.

Pictures always lie there, as the bytes they are. Any other block goes there when it is large, and a BlobBlock stands
for it. `newest` reads rows without fetching anything; `whole` fetches.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeGuard

from pydantic import TypeAdapter, ValidationError

from fermata.aws import blob_store, observability
from fermata.aws.dynamodb import Item, Put
from fermata.aws.resources import Resources
from fermata.conversations.image_store import FetchedBlobs, load_image_data, store_image
from fermata.conversations.lone_surrogates import replace_surrogates_in_block
from fermata.domain.blocks import BlobBlock, Block, ImageBlock, ReasoningBlock
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache

MAX_ROW_BYTES = 200 * 1024
"""Bytes of JSON a row's content may have; DynamoDB itself allows 400 KB an item."""
MAX_ROW_ERROR_CHARS = 1000
"""Characters of a large result's error that stay in its row."""

_block_adapter: TypeAdapter[Block] = TypeAdapter(Block)
_blocks_adapter: TypeAdapter[tuple[Block, ...]] = TypeAdapter(tuple[Block, ...])


def conversation_partition(tenant: str, conversation: str) -> str:
    return f"t#{tenant}#c#{conversation}"


def message_sort_key(position: int) -> str:
    return f"m#{position:08d}"


# Blocks are told apart by their `kind`: an isinstance check of a pydantic model is slow, and histories are long.


def is_tool_call(block: Block) -> bool:
    """Also one that is too large to be here."""
    return block.kind == "toolCall" or (block.kind == "blob" and block.of == "toolCall")


def is_reasoning(block: Block) -> TypeGuard[ReasoningBlock | BlobBlock]:
    return block.kind == "reasoning" or (block.kind == "blob" and block.of == "reasoning")


def group_into_lines(content: Iterable[Block]) -> list[list[Block]]:
    """A message's blocks as the contract's rows: a tool call is a row of its own, what stands between is one."""
    groups: list[list[Block]] = []
    for block in content:
        if is_reasoning(block):
            continue
        if groups and not is_tool_call(block) and not is_tool_call(groups[-1][-1]):
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def count_positions(message: Message) -> int:
    """How many positions a message takes; one that shows nothing still has its own."""
    return max(1, len(group_into_lines(message.content)))


def build_message_put(resources: Resources, tenant: str, conversation: str, message: Message) -> Put:
    """The write that stores a message; its pictures and large blocks are in the bucket when this returns."""
    folder = blob_store.conversation_folder(tenant, conversation)
    row: Item = {
        "pk": conversation_partition(tenant, conversation),
        "sk": message_sort_key(message.position),
        "v": 1,
        "role": message.role,
        "turn": message.turn,
        "round": message.round,
        "createdAt": message.created_at,
        "content": _json(_spill_large_blocks(resources, folder, _store_images(resources, folder, message.content))),
    }
    if message.tool_call_id:
        row |= {"toolCallId": message.tool_call_id, "toolName": message.tool_name}
    if message.partial:
        row["partial"] = True
    return Put(resources.settings.conversations_table, row)


def load_messages(resources: Resources, tenant: str, conversation: str) -> list[Message]:
    """All messages in order, whole."""
    items = resources.tables.query_items(
        resources.settings.conversations_table, conversation_partition(tenant, conversation), min_sk="m#", max_sk="m#~"
    )
    return fetch_all_blocks(resources, [_message_from_item(item) for item in items], {})


def read_newest_messages(
    resources: Resources, tenant: str, conversation: str, *, before: int | None = None, limit: int
) -> list[Message]:
    """The last `limit` messages (before a position), the newest first, with nothing fetched from the bucket."""
    if before is not None and before <= 0:
        return []
    high = "m#~" if before is None else message_sort_key(before - 1)
    pk = conversation_partition(tenant, conversation)
    items = resources.tables.query_items(
        resources.settings.conversations_table, pk, min_sk="m#", max_sk=high, descending=True, limit=limit
    )
    return [_message_from_item(item) for item in items]


def read_following_messages(
    resources: Resources, tenant: str, conversation: str, position: int, *, limit: int
) -> list[Message]:
    """The first `limit` messages from a position on, with nothing fetched from the bucket."""
    table, pk = resources.settings.conversations_table, conversation_partition(tenant, conversation)
    return [
        _message_from_item(item)
        for item in resources.tables.query_items(
            table, pk, min_sk=message_sort_key(position), max_sk="m#~", limit=limit
        )
    ]


def find_message(resources: Resources, tenant: str, conversation: str, position: int) -> Message | None:
    """The message stored at exactly this position."""
    item = resources.tables.get_item(
        resources.settings.conversations_table, conversation_partition(tenant, conversation), message_sort_key(position)
    )
    return _message_from_item(item) if item else None


def fetch_all_blocks(resources: Resources, messages: Sequence[Message], fetched: FetchedBlobs) -> list[Message]:
    """The messages with everything fetched that lies in the bucket; `fetched` remembers it for the next time."""
    torn = [message for message in messages if not _is_complete(message)]
    wanted = {key for message in torn for block in message.content for key in _missing_blob_keys(block)}
    fetched.update(resources.blobs.get_bytes_by_key(wanted - fetched.keys()))
    return [
        message if _is_complete(message) else _with_fetched_blocks(message, fetched, _missing_blob_keys)
        for message in messages
    ]


@WeakCache
def _is_complete(message: Message) -> bool:
    return not any(map(_missing_blob_keys, message.content))


def fetch_shown_blocks(resources: Resources, messages: Sequence[Message]) -> list[Message]:
    """The messages with large texts and calls fetched; results and pictures stay where they are."""
    wanted = {block.blob for message in messages for block in message.content if _is_shown_blob(block)}
    fetched = resources.blobs.get_bytes_by_key(wanted)
    return [_with_fetched_blocks(message, fetched, _is_shown_blob) for message in messages]


def _is_shown_blob(block: Block) -> TypeGuard[BlobBlock]:
    return block.kind == "blob" and block.of in ("text", "toolCall")


def block_images(block: Block) -> tuple[ImageBlock, ...]:
    if block.kind == "image":
        return (block,)
    return (block.images or ()) if block.kind == "toolResult" or block.kind == "blob" else ()


@WeakCache
def has_images(message: Message) -> bool:
    return any(map(block_images, message.content))


def _missing_blob_keys(block: Block) -> list[str]:
    """Keys of what is not here."""
    pictures = [image.blob for image in block_images(block) if image.blob and image.data is None]
    return [block.blob, *pictures] if block.kind == "blob" else pictures


def _with_fetched_blocks(message: Message, fetched: FetchedBlobs, is_wanted: Callable[[Block], object]) -> Message:
    if not any(map(is_wanted, message.content)):
        return message
    content = [_load_block(block, fetched) if is_wanted(block) else block for block in message.content]
    return message.model_copy(update={"content": tuple(block for block in content if block is not None)})


def _load_block(block: Block, fetched: FetchedBlobs) -> Block | None:
    images = tuple(load_image_data(image, fetched) for image in block_images(block))
    if block.kind == "image":
        return images[0]
    kept = (
        replace_surrogates_in_block(_block_adapter.validate_python(json.loads(fetched[block.blob])))
        if block.kind == "blob"
        else block
    )
    return kept.model_copy(update={"images": images}) if kept and images else kept


def _message_from_item(item: Item) -> Message:
    return Message(
        position=int(item["sk"][2:]),
        role=item["role"],
        content=_read_content(item),
        turn=item["turn"],
        round=item["round"],
        tool_call_id=item.get("toolCallId"),
        tool_name=item.get("toolName"),
        created_at=item["createdAt"],
        partial=item.get("partial"),
    )


def _read_content(item: Item) -> tuple[Block, ...]:
    """What can be understood of the row; the rest is told to us and to nobody else, so that the thread still opens."""
    stored = json.loads(item["content"])
    try:
        return _blocks_adapter.validate_python(stored)
    except ValidationError as problem:
        observability.log_warning(
            "message.unreadable", row=f"{item['pk']}/{item['sk']}", mistakes=problem.error_count()
        )
    return tuple(block for value in (stored if isinstance(stored, list) else ()) for block in _read_block(value))


def _read_block(value: Any) -> tuple[Block, ...]:
    try:
        return (_block_adapter.validate_python(value),)
    except ValidationError:
        return ()


def _store_images(resources: Resources, folder: str, content: Iterable[Block]) -> list[Block]:
    """The blocks with their pictures in the bucket; one that is no picture is not kept."""
    kept: list[Block] = []
    for block in content:
        images = tuple(stowed for image in block_images(block) if (stowed := store_image(resources, folder, image)))
        if block.kind == "image":
            kept.extend(images)
        elif block.kind == "toolResult" and block.images:
            kept.append(block.model_copy(update={"images": images or None}))
        else:
            kept.append(block)
    return kept


def _spill_large_blocks(resources: Resources, folder: str, content: Sequence[Block]) -> list[dict[str, Any]]:
    """Blocks as JSON, the large ones replaced by what stands for them; the row as a whole stays under MAX_ROW."""
    wire = [block.to_wire() for block in content]
    sizes = [len(_json(block)) for block in wire]
    total = sum(sizes)
    for index in sorted(range(len(wire)), key=lambda i: -sizes[i]):
        if sizes[index] <= blob_store.BLOB_THRESHOLD_BYTES and total <= MAX_ROW_BYTES:
            break
        wire[index] = _store_block(resources, folder, content[index], sizes[index])
        total -= sizes[index]
    return wire


def _store_block(resources: Resources, folder: str, block: Block, size: int) -> dict[str, Any]:
    if block.kind == "blob" or block.kind == "image":
        return block.to_wire()
    stored = block.to_wire()
    stored.pop("images", None)
    stand_in = BlobBlock(blob=resources.blobs.put_json(folder, stored), of=block.kind, size=size)
    if block.kind == "toolCall":
        stand_in = stand_in.model_copy(update={"tool_call_id": block.tool_call_id, "tool_name": block.tool_name})
    elif block.kind == "toolResult":
        error = block.error[:MAX_ROW_ERROR_CHARS] if block.error else None
        stand_in = stand_in.model_copy(update={"ok": block.ok, "error": error, "images": block.images})
    elif block.kind == "reasoning":
        stand_in = stand_in.model_copy(update={"provider": block.provider, "model": block.model})
    return stand_in.to_wire()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
