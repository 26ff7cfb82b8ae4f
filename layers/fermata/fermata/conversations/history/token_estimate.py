"""Estimate the tokens of messages from the size of their blocks, without fetching anything from S3."""

import json
from collections.abc import Iterable
from typing import Any, assert_never

from fermata.conversations.block_kinds import block_images
from fermata.domain.blocks import Block
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache

ESTIMATED_BYTES_PER_TOKEN = 3
"""Deliberately low: JSON and HTML have about 3.3 bytes a token, and a provider refuses a request that is too long."""
MAX_TOKENS_PER_IMAGE = 1600
"""Tokens of the largest image that providers do not shrink."""
_MESSAGE_OVERHEAD_TOKENS = 12


def estimate_tokens(messages: Iterable[Message]) -> int:
    """Return the estimated prompt tokens of the messages, rather too many than too few."""
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
