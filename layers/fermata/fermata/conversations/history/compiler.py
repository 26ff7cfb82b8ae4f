"""Compile stored messages into the history that one model is sent (decision 0064).

The order of the steps matters:

1. Reasoning of other models is removed, and calls are paired with results, so that no later step can separate them.
2. Stale results are elided, so that they take no room.
3. The history is truncated to what the model accepts.
4. Images are selected from what is left.

No step fetches anything from S3; conversation_history.py does that with the result.
"""

import operator
from collections.abc import Iterable

from fermata.conversations.block_kinds import is_reasoning
from fermata.conversations.history.image_selection import select_images
from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.repair import repair_history
from fermata.conversations.history.stale_results import elide_oldest_results, elide_stale_results
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.conversations.history.truncation import truncate_history
from fermata.conversations.lone_surrogates import replace_surrogates_in_block
from fermata.domain.blocks import Block
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache


def compile_history(messages: Iterable[Message], profile: ModelProfile, *, is_complete: bool = True) -> list[Message]:
    """Return the history for a model, as a valid conversation within its limits. Any messages are accepted.

    Args:
        is_complete: Whether the messages go back to the beginning of the conversation.
    """
    history = truncate_history(prepare_history(messages, profile), profile, is_complete=is_complete)
    if estimate_tokens(history) > profile.max_history_tokens:
        history = elide_oldest_results(history, profile)
    return select_images(history, profile)


def prepare_history(messages: Iterable[Message], profile: ModelProfile) -> list[Message]:
    """Return what would be sent if the model had room for everything: paired, readable, without stale results."""
    readable = (_without_unreadable_blocks(message, profile) for message in messages)
    return elide_stale_results(repair_history(readable, profile.display_name), profile)


def _without_unreadable_blocks(message: Message, profile: ModelProfile) -> Message:
    """Remove reasoning of other models and lone surrogates. An unchanged message stays the same object."""
    if _is_model_independent(message):
        return message
    content = tuple(readable for block in message.content if (readable := _readable_block(block, profile)))
    is_same = len(content) == len(message.content) and all(map(operator.is_, content, message.content))
    return message if is_same else message.model_copy(update={"content": content})


@WeakCache
def _is_model_independent(message: Message) -> bool:
    return all(replace_surrogates_in_block(block) is block and not is_reasoning(block) for block in message.content)


def _readable_block(block: Block, profile: ModelProfile) -> Block | None:
    is_foreign = is_reasoning(block) and (block.provider, block.model) != (profile.provider, profile.model)
    return None if is_foreign else replace_surrogates_in_block(block)
