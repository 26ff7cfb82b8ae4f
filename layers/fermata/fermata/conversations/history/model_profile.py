"""Who a history is written for: what it may hold depends on the model that reads it."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, assert_never

from fermata.conversations.message_store import block_images
from fermata.domain.blocks import Block
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache

ESTIMATED_BYTES_PER_TOKEN = 3
"""Low on purpose: JSON and HTML come to about 3.3 bytes a token, and a request that is too long is refused whole."""
MAX_TOKENS_PER_IMAGE = 1600
"""What the largest picture comes to that no provider shrinks."""
_MESSAGE_OVERHEAD_TOKENS = 12
"""Tokens of what stands around a message."""


def _never(_tool_name: str) -> bool:
    return False


@dataclass(frozen=True)
class ModelProfile:
    """`tokens`: the room the history may take. `is_heavy`: of these tools only the newest result is worth keeping.
    `is_forgotten`: of these no later turn sees the data again. `called`: what a tool is called towards this reader.
    `sees_results`: the images of results reach the model, not only those of prompts. `sees_earlier`: those of earlier
    turns do. `most_pictures` and `picture_bytes`: of all images of one request.
    """

    provider: str
    model: str
    max_history_tokens: int
    reads_images: bool = True
    reads_result_images: bool = True
    reads_earlier_images: bool = True
    max_images: int = 20
    max_image_bytes: int = 15_000_000
    display_name: Callable[[str], str] = str
    is_heavy_tool: Callable[[str], bool] = _never
    is_forgotten_tool: Callable[[str], bool] = _never


def estimate_tokens(messages: Iterable[Message]) -> int:
    """About how many tokens messages come to, whether their blocks are here or in the bucket."""
    return sum(map(_estimate_message, messages))


@WeakCache
def _estimate_message(message: Message) -> int:
    return _MESSAGE_OVERHEAD_TOKENS + sum(map(_estimate_block, message.content))


def _estimate_block(block: Block) -> int:
    match block.kind:
        case "text":
            size = len(block.text.encode("utf-8", "replace"))
        case "image":
            size = 0
        case "toolCall":
            size = _count_json_bytes(block.input)
        case "toolResult":
            size = _count_json_bytes(block.data) + len((block.error or "").encode("utf-8", "replace"))
        case "reasoning":
            size = _count_json_bytes(block.payload)
        case "blob":
            size = block.size
        case _:
            assert_never(block)
    return size // ESTIMATED_BYTES_PER_TOKEN + MAX_TOKENS_PER_IMAGE * len(block_images(block))


def _count_json_bytes(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
