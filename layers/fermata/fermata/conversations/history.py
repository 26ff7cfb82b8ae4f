"""Turns stored rows into the history one model is sent: healed, without what is stale, and no longer than it can take.

The order matters: pairs first, so that nothing later can separate them; then what is stale, so that it takes no room;
then the cut; then the pictures of what is left. Nothing is fetched from the bucket before (transcript.py).
"""

import operator
from collections.abc import Iterable

from fermata.conversations.album import pick
from fermata.conversations.cutting import cut
from fermata.conversations.healing import heal
from fermata.conversations.recipient import Recipient, weight
from fermata.conversations.rows import is_reasoning
from fermata.conversations.scrubbing import scrubbed
from fermata.conversations.stale import elide_stale, squeeze
from fermata.words.blocks import Block
from fermata.words.messages import Message
from fermata.words.once import Once


def compile_history(messages: Iterable[Message], recipient: Recipient, *, is_whole: bool = True) -> list[Message]:
    """`is_whole`: the messages go back to the conversation's beginning."""
    kept = cut(freshened(messages, recipient), recipient, is_whole=is_whole)
    if weight(kept) > recipient.tokens:
        kept = squeeze(kept, recipient)
    return pick(kept, recipient)


def freshened(messages: Iterable[Message], recipient: Recipient) -> list[Message]:
    """Paired, readable, and without what is stale: what would be sent if there were room for everything."""
    readable = (_readable(message, recipient) for message in messages)
    return elide_stale(heal(readable, recipient.called), recipient)


def _readable(message: Message, recipient: Recipient) -> Message:
    """Without thinking that another model did, and without half characters, which no request can carry."""
    if _is_for_anybody(message):
        return message
    content = tuple(kept for block in message.content if (kept := _read(block, recipient)))
    same = len(content) == len(message.content) and all(map(operator.is_, content, message.content))
    return message if same else message.model_copy(update={"content": content})


@Once
def _is_for_anybody(message: Message) -> bool:
    return all(scrubbed(block) is block and not is_reasoning(block) for block in message.content)


def _read(block: Block, recipient: Recipient) -> Block | None:
    is_foreign = is_reasoning(block) and (block.provider, block.model) != (recipient.provider, recipient.model)
    return None if is_foreign else scrubbed(block)
