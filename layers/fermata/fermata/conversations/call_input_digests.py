"""Tell whether two calls had the same input, also if it is in S3 (decisions 0201 and 0202)."""

import hashlib
import json

from fermata.conversations.block_predicates import is_tool_call
from fermata.domain.blocks import BlobBlock, ToolCallBlock
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache


@WeakCache
def describe_inputs(message: Message) -> dict[str | None, str]:
    """Return a text for the input of each call, by its id: the same for the same input."""
    return {block.tool_call_id: _describe_input(block) for block in message.content if is_tool_call(block)}


def _describe_input(block: ToolCallBlock | BlobBlock) -> str:
    return (block.input_digest or block.blob) if block.kind == "blob" else digest_input(block)


def digest_input(call: ToolCallBlock) -> str:
    """Return a digest of what a call asks for.

    Members may be in any order, and a null member is no member. Arguments that could not be read are those that were
    written, as far as the problem quotes them.
    """
    arguments = call.input
    if isinstance(arguments, dict):
        arguments = {name: value for name, value in arguments.items() if value is not None}
    text = json.dumps([arguments, call.problem], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
