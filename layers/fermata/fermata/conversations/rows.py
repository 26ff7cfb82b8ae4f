"""Messages as rows: one per user prompt, model reply and tool result; what is large lies in the bucket.

Pictures always lie there, as the bytes they are. Any other block goes there when it is large, and a BlobBlock stands
for it. `newest` reads rows without fetching anything; `whole` fetches.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeGuard

from pydantic import TypeAdapter, ValidationError

from fermata.aws import blobs, signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item, Put
from fermata.conversations.pictures import Fetched, stow, with_data
from fermata.conversations.scrubbing import scrubbed
from fermata.words.blocks import BlobBlock, Block, ImageBlock, ReasoningBlock
from fermata.words.messages import Message
from fermata.words.once import Once

MAX_ROW = 200 * 1024
"""Bytes of JSON a row's content may have; DynamoDB itself allows 400 KB an item."""
SHOWN_ERROR = 1000
"""Characters of a large result's error that stay in its row."""

_block: TypeAdapter[Block] = TypeAdapter(Block)
_blocks: TypeAdapter[tuple[Block, ...]] = TypeAdapter(tuple[Block, ...])


def partition(tenant: str, conversation: str) -> str:
    return f"t#{tenant}#c#{conversation}"


def key(position: int) -> str:
    return f"m#{position:08d}"


# Blocks are told apart by their `kind`: an isinstance check of a pydantic model is slow, and histories are long.


def is_call(block: Block) -> bool:
    """Also one that is too large to be here."""
    return block.kind == "toolCall" or (block.kind == "blob" and block.of == "toolCall")


def is_reasoning(block: Block) -> TypeGuard[ReasoningBlock | BlobBlock]:
    return block.kind == "reasoning" or (block.kind == "blob" and block.of == "reasoning")


def lines(content: Iterable[Block]) -> list[list[Block]]:
    """A message's blocks as the contract's rows: a tool call is a row of its own, what stands between is one."""
    groups: list[list[Block]] = []
    for block in content:
        if is_reasoning(block):
            continue
        if groups and not is_call(block) and not is_call(groups[-1][-1]):
            groups[-1].append(block)
        else:
            groups.append([block])
    return groups


def width(message: Message) -> int:
    """How many positions a message takes; one that shows nothing still has its own."""
    return max(1, len(lines(message.content)))


def put(desk: Desk, tenant: str, conversation: str, message: Message) -> Put:
    """The write that stores a message; its pictures and large blocks are in the bucket when this returns."""
    folder = blobs.conversation_folder(tenant, conversation)
    row: Item = {
        "pk": partition(tenant, conversation),
        "sk": key(message.position),
        "v": 1,
        "role": message.role,
        "turn": message.turn,
        "round": message.round,
        "createdAt": message.created_at,
        "content": _json(_spilled(desk, folder, _without_pictures(desk, folder, message.content))),
    }
    if message.tool_call_id:
        row |= {"toolCallId": message.tool_call_id, "toolName": message.tool_name}
    if message.partial:
        row["partial"] = True
    return Put(desk.settings.conversations_table, row)


def load(desk: Desk, tenant: str, conversation: str) -> list[Message]:
    """All messages in order, whole."""
    items = desk.tables.query(desk.settings.conversations_table, partition(tenant, conversation), low="m#", high="m#~")
    return whole(desk, [_message(item) for item in items], {})


def newest(desk: Desk, tenant: str, conversation: str, *, before: int | None = None, limit: int) -> list[Message]:
    """The last `limit` messages (before a position), the newest first, with nothing fetched from the bucket."""
    if before is not None and before <= 0:
        return []
    high = "m#~" if before is None else key(before - 1)
    pk = partition(tenant, conversation)
    items = desk.tables.query(desk.settings.conversations_table, pk, low="m#", high=high, descending=True, limit=limit)
    return [_message(item) for item in items]


def following(desk: Desk, tenant: str, conversation: str, position: int, *, limit: int) -> list[Message]:
    """The first `limit` messages from a position on, with nothing fetched from the bucket."""
    table, pk = desk.settings.conversations_table, partition(tenant, conversation)
    return [_message(item) for item in desk.tables.query(table, pk, low=key(position), high="m#~", limit=limit)]


def find(desk: Desk, tenant: str, conversation: str, position: int) -> Message | None:
    """The message stored at exactly this position."""
    item = desk.tables.get(desk.settings.conversations_table, partition(tenant, conversation), key(position))
    return _message(item) if item else None


def whole(desk: Desk, messages: Sequence[Message], fetched: Fetched) -> list[Message]:
    """The messages with everything fetched that lies in the bucket; `fetched` remembers it for the next time."""
    torn = [message for message in messages if not _is_whole(message)]
    wanted = {key for message in torn for block in message.content for key in _missing(block)}
    fetched.update(desk.blobs.get_all(wanted - fetched.keys()))
    return [message if _is_whole(message) else _filled(message, fetched, _missing) for message in messages]


@Once
def _is_whole(message: Message) -> bool:
    return not any(map(_missing, message.content))


def spoken(desk: Desk, messages: Sequence[Message]) -> list[Message]:
    """The messages with large texts and calls fetched; results and pictures stay where they are."""
    wanted = {block.blob for message in messages for block in message.content if _is_spoken(block)}
    fetched = desk.blobs.get_all(wanted)
    return [_filled(message, fetched, _is_spoken) for message in messages]


def _is_spoken(block: Block) -> TypeGuard[BlobBlock]:
    return block.kind == "blob" and block.of in ("text", "toolCall")


def pictures_of(block: Block) -> tuple[ImageBlock, ...]:
    if block.kind == "image":
        return (block,)
    return (block.images or ()) if block.kind == "toolResult" or block.kind == "blob" else ()


@Once
def has_pictures(message: Message) -> bool:
    return any(map(pictures_of, message.content))


def _missing(block: Block) -> list[str]:
    """Keys of what is not here."""
    pictures = [image.blob for image in pictures_of(block) if image.blob and image.data is None]
    return [block.blob, *pictures] if block.kind == "blob" else pictures


def _filled(message: Message, fetched: Fetched, is_wanted: Callable[[Block], object]) -> Message:
    if not any(map(is_wanted, message.content)):
        return message
    content = [_fetched(block, fetched) if is_wanted(block) else block for block in message.content]
    return message.model_copy(update={"content": tuple(block for block in content if block is not None)})


def _fetched(block: Block, fetched: Fetched) -> Block | None:
    images = tuple(with_data(image, fetched) for image in pictures_of(block))
    if block.kind == "image":
        return images[0]
    kept = scrubbed(_block.validate_python(json.loads(fetched[block.blob]))) if block.kind == "blob" else block
    return kept.model_copy(update={"images": images}) if kept and images else kept


def _message(item: Item) -> Message:
    return Message(
        position=int(item["sk"][2:]),
        role=item["role"],
        content=_content(item),
        turn=item["turn"],
        round=item["round"],
        tool_call_id=item.get("toolCallId"),
        tool_name=item.get("toolName"),
        created_at=item["createdAt"],
        partial=item.get("partial"),
    )


def _content(item: Item) -> tuple[Block, ...]:
    """What can be understood of the row; the rest is told to us and to nobody else, so that the thread still opens."""
    stored = json.loads(item["content"])
    try:
        return _blocks.validate_python(stored)
    except ValidationError as problem:
        signals.warn("message.unreadable", row=f"{item['pk']}/{item['sk']}", mistakes=problem.error_count())
    return tuple(block for value in (stored if isinstance(stored, list) else ()) for block in _understood(value))


def _understood(value: Any) -> tuple[Block, ...]:
    try:
        return (_block.validate_python(value),)
    except ValidationError:
        return ()


def _without_pictures(desk: Desk, folder: str, content: Iterable[Block]) -> list[Block]:
    """The blocks with their pictures in the bucket; one that is no picture is not kept."""
    kept: list[Block] = []
    for block in content:
        images = tuple(stowed for image in pictures_of(block) if (stowed := stow(desk, folder, image)))
        if block.kind == "image":
            kept.extend(images)
        elif block.kind == "toolResult" and block.images:
            kept.append(block.model_copy(update={"images": images or None}))
        else:
            kept.append(block)
    return kept


def _spilled(desk: Desk, folder: str, content: Sequence[Block]) -> list[dict[str, Any]]:
    """Blocks as JSON, the large ones replaced by what stands for them; the row as a whole stays under MAX_ROW."""
    wire = [block.wire() for block in content]
    sizes = [len(_json(block)) for block in wire]
    total = sum(sizes)
    for index in sorted(range(len(wire)), key=lambda i: -sizes[i]):
        if sizes[index] <= blobs.LARGE and total <= MAX_ROW:
            break
        wire[index] = _stand_in(desk, folder, content[index], sizes[index])
        total -= sizes[index]
    return wire


def _stand_in(desk: Desk, folder: str, block: Block, size: int) -> dict[str, Any]:
    if block.kind == "blob" or block.kind == "image":
        return block.wire()
    stored = block.wire()
    stored.pop("images", None)
    stand_in = BlobBlock(blob=desk.blobs.put(folder, stored), of=block.kind, size=size)
    if block.kind == "toolCall":
        stand_in = stand_in.model_copy(update={"tool_call_id": block.tool_call_id, "tool_name": block.tool_name})
    elif block.kind == "toolResult":
        error = block.error[:SHOWN_ERROR] if block.error else None
        stand_in = stand_in.model_copy(update={"ok": block.ok, "error": error, "images": block.images})
    elif block.kind == "reasoning":
        stand_in = stand_in.model_copy(update={"provider": block.provider, "model": block.model})
    return stand_in.wire()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
