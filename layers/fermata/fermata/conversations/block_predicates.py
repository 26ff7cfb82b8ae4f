"""Classify the blocks of a message, whether they are in the row or in S3.

Blocks are distinguished by `kind`, because `isinstance` is slow for pydantic models and histories are long.
"""

from typing import TypeGuard

from fermata.domain.blocks import BlobBlock, Block, ImageBlock, ReasoningBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache


def get_block_kind(block: Block) -> str:
    """Return the kind of the block that a blob stands for, or the block's own kind."""
    return block.replaced_kind if block.kind == "blob" else block.kind


def is_tool_call(block: Block) -> TypeGuard[ToolCallBlock | BlobBlock]:
    return block.kind == "toolCall" or (block.kind == "blob" and block.replaced_kind == "toolCall")


def is_tool_result(block: Block) -> TypeGuard[ToolResultBlock | BlobBlock]:
    return block.kind == "toolResult" or (block.kind == "blob" and block.replaced_kind == "toolResult")


def is_reasoning(block: Block) -> TypeGuard[ReasoningBlock | BlobBlock]:
    return block.kind == "reasoning" or (block.kind == "blob" and block.replaced_kind == "reasoning")


def block_images(block: Block) -> tuple[ImageBlock, ...]:
    """Return the image itself, or the images of a tool result."""
    if block.kind == "image":
        return (block,)
    return (block.images or ()) if block.kind == "toolResult" or block.kind == "blob" else ()


@WeakCache
def has_images(message: Message) -> bool:
    """Return whether the message shows an image, itself or in a tool result."""
    return any(map(block_images, message.content))
