"""Store large blocks, images and audio of messages in S3, and fetch them.

An image or a recording of any size is stored as its bytes (decision 0063). A recording is not fetched with its
message. Any other block is stored as JSON when it is large, and a `BlobBlock` takes its place in the row.
"""

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeGuard

from pydantic import ConfigDict, TypeAdapter

from fermata.aws import blob_store
from fermata.aws.blob_store import BlobStore
from fermata.aws.resources import Resources
from fermata.conversations.block_predicates import block_images
from fermata.conversations.call_input_digests import digest_input
from fermata.conversations.history.token_estimate import MAX_TOKENS_PER_IMAGE, estimate_block_tokens
from fermata.conversations.image_store import store_image
from fermata.conversations.surrogates_in_blocks import replace_surrogates_in_block
from fermata.domain.blocks import AudioBlock, BlobBlock, Block, ImageBlock
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache

MAX_ROW_BYTES = 200 * 1024
"""JSON of a row's content; DynamoDB itself allows 400 KB an item."""
MAX_ROW_ERROR_CHARS = 1000
"""How much of a large result's error stays in its row."""

_block_adapter: TypeAdapter[Block] = TypeAdapter(Block, config=ConfigDict(defer_build=True))


class BlockFetcher:
    """Fetch blocks and images of messages from S3, each blob once as long as the fetcher exists."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._body_by_key: dict[str, bytes] = {}
        self._base64_by_key: dict[str, str] = {}
        self._complete: list[Message] = []
        """Messages that were found to have all their blocks."""

    def fetch_all_blocks(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages with all their blocks and images."""
        messages = list(messages)
        count = len(self._complete)
        unseen = messages[count:] if messages[:count] == self._complete else messages
        incomplete = [message for message in unseen if not _is_complete(message)]
        if not incomplete:  # nearly always
            self._complete = messages
            return [*messages]
        self._fetch({key for message in incomplete for block in message.content for key in _missing_blob_keys(block)})
        return [
            message if _is_complete(message) else self._with_fetched_blocks(message, _missing_blob_keys)
            for message in messages
        ]

    def fetch_shown_blocks(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages with the large texts and calls that clients are shown, but without results and images."""
        self._fetch({block.blob for message in messages for block in message.content if _is_shown_blob(block)})
        return [self._with_fetched_blocks(message, _is_shown_blob) for message in messages]

    def _fetch(self, keys: set[str]) -> None:
        missing = keys - self._body_by_key.keys() - self._base64_by_key.keys()
        self._body_by_key.update(self._blobs.get_bytes_by_key(missing))

    def _load_image(self, image: ImageBlock) -> ImageBlock:
        """Return the image with its data. Its bytes are not kept beside the base64 of all messages that show it."""
        if image.blob is None or image.data is not None:
            return image
        if image.blob not in self._base64_by_key:
            self._base64_by_key[image.blob] = base64.b64encode(self._body_by_key.pop(image.blob)).decode()
        return image.model_copy(update={"data": self._base64_by_key[image.blob]})

    def _with_fetched_blocks(self, message: Message, is_wanted: Callable[[Block], object]) -> Message:
        if not any(map(is_wanted, message.content)):
            return message
        content = [self._load_block(block) if is_wanted(block) else block for block in message.content]
        return message.model_copy(update={"content": tuple(block for block in content if block is not None)})

    def _load_block(self, block: Block) -> Block | None:
        images = tuple(map(self._load_image, block_images(block)))
        if block.kind == "image":
            return images[0]
        loaded: Block | None = block
        if block.kind == "blob":
            # json.loads keeps lone surrogates; pydantic's own parser would refuse the whole block.
            loaded = replace_surrogates_in_block(parse_block(json.loads(self._body_by_key[block.blob])))
        return loaded.model_copy(update={"images": images}) if loaded and images else loaded


@WeakCache
def _is_complete(message: Message) -> bool:
    return not any(map(_missing_blob_keys, message.content))


def _missing_blob_keys(block: Block) -> list[str]:
    """Return the keys of the blobs that the block refers to and does not contain."""
    image_keys = [image.blob for image in block_images(block) if image.blob and image.data is None]
    return [block.blob, *image_keys] if block.kind == "blob" else image_keys


def _is_shown_blob(block: Block) -> TypeGuard[BlobBlock]:
    return block.kind == "blob" and block.replaced_kind in ("text", "toolCall")


def store_blocks(resources: Resources, folder: str, content: Iterable[Block]) -> list[dict[str, Any]]:
    """Store images and large blocks in S3, and return the content as it goes into the row.

    Blocks over the threshold of the blob store are large; when the row would exceed MAX_ROW_BYTES, so are the largest
    of the others.
    """
    blocks = _store_images(resources, folder, content)
    stored = [block.to_wire() for block in blocks]
    sizes = [len(encode_row_json(block)) for block in stored]
    total = sum(sizes)
    for index in sorted(range(len(stored)), key=lambda index: -sizes[index]):
        if sizes[index] <= blob_store.BLOB_THRESHOLD_BYTES and total <= MAX_ROW_BYTES:
            break
        stored[index] = _store_block(resources, folder, blocks[index], sizes[index])
        total -= sizes[index]
    return stored


def _store_images(resources: Resources, folder: str, content: Iterable[Block]) -> list[Block]:
    """Return the blocks with their files in S3. Images of an unknown kind are left out (decision 0063)."""
    stored: list[Block] = []
    for block in content:
        images = tuple(image for original in block_images(block) if (image := store_image(resources, folder, original)))
        if block.kind == "image":
            stored.extend(images)
        elif block.kind == "audio":
            stored.append(_store_audio(resources, folder, block))
        elif block.kind == "toolResult" and block.images:
            stored.append(block.model_copy(update={"images": images or None}))
        else:
            stored.append(block)
    return stored


def _store_audio(resources: Resources, folder: str, audio: AudioBlock) -> AudioBlock:
    if audio.data is None:
        return audio
    raw = base64.b64decode(audio.data)
    key = resources.blobs.put_bytes(folder, raw, audio.mime_type)
    return audio.model_copy(update={"data": None, "blob": key, "size": len(raw)})


def _store_block(resources: Resources, folder: str, block: Block, size: int) -> dict[str, Any]:
    """Store a block in S3, and return its reference with the members that the row needs."""
    if block.kind == "blob" or block.kind == "image" or block.kind == "audio":
        return block.to_wire()
    body = block.to_wire()
    body.pop("images", None)
    text_tokens = estimate_block_tokens(block) - MAX_TOKENS_PER_IMAGE * len(block_images(block))
    key = resources.blobs.put_json(folder, body)
    reference = BlobBlock(blob=key, replaced_kind=block.kind, size=size, tokens=text_tokens)
    if block.kind == "toolCall":
        update = {"tool_call_id": block.tool_call_id, "tool_name": block.tool_name}
        reference = reference.model_copy(update=update | {"input_digest": digest_input(block)})
    elif block.kind == "toolResult":
        error = block.error[:MAX_ROW_ERROR_CHARS] if block.error else None
        reference = reference.model_copy(update={"ok": block.ok, "error": error, "images": block.images})
    elif block.kind == "reasoning":
        reference = reference.model_copy(update={"provider": block.provider, "model": block.model})
    return reference.to_wire()


def parse_block(value: Any) -> Block:
    """Parse the JSON value of a block.

    Raises:
        ValidationError: The value is no block.
    """
    return _block_adapter.validate_python(value)


def encode_row_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
