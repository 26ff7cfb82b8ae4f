"""Turns stored rows into the history one model is sent: healed, without what is stale, and no longer than it can take.

The order matters: pairs first, so that nothing later can separate them; then what is stale, so that it takes no room;
then the cut; then the pictures of what is left. Nothing is fetched from the bucket before (transcript.py).
"""

import operator
from collections.abc import Iterable

from fermata.conversations.history.image_selection import select_images
from fermata.conversations.history.model_profile import ModelProfile, estimate_tokens
from fermata.conversations.history.repair import repair_history
from fermata.conversations.history.stale_results import elide_oldest_results, elide_stale_results
from fermata.conversations.history.truncation import truncate_history
from fermata.conversations.lone_surrogates import replace_surrogates_in_block
from fermata.conversations.message_store import is_reasoning
from fermata.domain.blocks import Block
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache


def compile_history(messages: Iterable[Message], profile: ModelProfile, *, is_complete: bool = True) -> list[Message]:
    """`is_whole`: the messages go back to the conversation's beginning."""
    kept = truncate_history(prepare_history(messages, profile), profile, is_complete=is_complete)
    if estimate_tokens(kept) > profile.max_history_tokens:
        kept = elide_oldest_results(kept, profile)
    return select_images(kept, profile)


def prepare_history(messages: Iterable[Message], profile: ModelProfile) -> list[Message]:
    """Paired, readable, and without what is stale: what would be sent if there were room for everything."""
    readable = (_without_unreadable_blocks(message, profile) for message in messages)
    return elide_stale_results(repair_history(readable, profile.display_name), profile)


def _without_unreadable_blocks(message: Message, profile: ModelProfile) -> Message:
    """Without thinking that another model did, and without half characters, which no request can carry."""
    if _is_model_independent(message):
        return message
    content = tuple(kept for block in message.content if (kept := _readable_block(block, profile)))
    same = len(content) == len(message.content) and all(map(operator.is_, content, message.content))
    return message if same else message.model_copy(update={"content": content})


@WeakCache
def _is_model_independent(message: Message) -> bool:
    return all(replace_surrogates_in_block(block) is block and not is_reasoning(block) for block in message.content)


def _readable_block(block: Block, profile: ModelProfile) -> Block | None:
    is_foreign = is_reasoning(block) and (block.provider, block.model) != (profile.provider, profile.model)
    return None if is_foreign else replace_surrogates_in_block(block)
