"""Who a history is written for: what it may hold depends on the model that reads it."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, assert_never

from fermata.conversations.rows import pictures_of
from fermata.words.blocks import Block
from fermata.words.messages import Message
from fermata.words.once import Once

BYTES_PER_TOKEN = 3
"""Low on purpose: JSON and HTML come to about 3.3 bytes a token, and a request that is too long is refused whole."""
TOKENS_PER_PICTURE = 1600
"""What the largest picture comes to that no provider shrinks."""
FRAME = 12
"""Tokens of what stands around a message."""


def never(_tool_name: str) -> bool:
    return False


@dataclass(frozen=True)
class Recipient:
    """`tokens`: the room the history may take. `is_heavy`: of these tools only the newest result is worth keeping.
    `is_forgotten`: of these no later turn sees the data again. `called`: what a tool is called towards this reader.
    `sees_results`: the images of results reach the model, not only those of prompts. `sees_earlier`: those of earlier
    turns do. `most_pictures` and `picture_bytes`: of all images of one request.
    """

    provider: str
    model: str
    tokens: int
    sees: bool = True
    sees_results: bool = True
    sees_earlier: bool = True
    most_pictures: int = 20
    picture_bytes: int = 15_000_000
    called: Callable[[str], str] = str
    is_heavy: Callable[[str], bool] = never
    is_forgotten: Callable[[str], bool] = never


def weight(messages: Iterable[Message]) -> int:
    """About how many tokens messages come to, whether their blocks are here or in the bucket."""
    return sum(map(_weight_of, messages))


@Once
def _weight_of(message: Message) -> int:
    return FRAME + sum(map(_weight, message.content))


def _weight(block: Block) -> int:
    match block.kind:
        case "text":
            size = len(block.text.encode("utf-8", "replace"))
        case "image":
            size = 0
        case "toolCall":
            size = _bytes(block.input)
        case "toolResult":
            size = _bytes(block.data) + len((block.error or "").encode("utf-8", "replace"))
        case "reasoning":
            size = _bytes(block.payload)
        case "blob":
            size = block.size
        case _:
            assert_never(block)
    return size // BYTES_PER_TOKEN + TOKENS_PER_PICTURE * len(pictures_of(block))


def _bytes(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
