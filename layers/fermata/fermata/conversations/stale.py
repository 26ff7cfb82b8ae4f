"""Leaves out of a healed history what is not worth sending again: results that newer ones have made stale.

What is left out is said, so that the model knows it can ask again.
"""

from collections.abc import Sequence

from fermata.conversations.recipient import Recipient, weight
from fermata.conversations.rows import has_pictures
from fermata.words.blocks import Block, ToolResultBlock
from fermata.words.messages import Message
from fermata.words.once import Once

SMALL = 200
"""Tokens of a result that are not worth leaving out."""


def stub(tool_name: str) -> ToolResultBlock:
    """What stands for a result that was left out (contract instatic.md §5.6)."""
    note = (
        f"Earlier {tool_name} output removed to conserve context. Call {tool_name} again if you need the current state."
    )
    return ToolResultBlock(ok=True, data={"elided": True, "note": note})


def elide_stale(messages: Sequence[Message], recipient: Recipient) -> list[Message]:
    """Of a heavy tool only the results of the newest round that called it stay, and only in the turn under way.

    Heavy is what the tool says it is, and any result with pictures. What a tool wants forgotten is a bare success in
    later turns.
    """
    current = messages[-1].turn if messages else ""
    newest = {
        message.tool_name: message.round
        for message in messages
        if message.turn == current and _is_heavy(message, recipient)
    }
    return [_fresh(message, current, newest, recipient) for message in messages]


def squeeze(messages: Sequence[Message], recipient: Recipient) -> list[Message]:
    """When the turn under way is too long by itself, its oldest results go first, as many as it takes."""
    squeezed, over = list(messages), weight(messages) - recipient.tokens
    for index, message in enumerate(messages):
        if over <= 0:
            break
        if message.role == "tool" and _succeeded(message) and weight([message]) > SMALL:
            squeezed[index] = _with(message, stub(message.tool_name or ""))
            over -= weight([message]) - weight([squeezed[index]])
    return squeezed


def _fresh(message: Message, current: str, newest: dict[str | None, int], recipient: Recipient) -> Message:
    if message.role != "tool":
        return message
    is_old, name = message.turn != current, message.tool_name or ""
    if _is_heavy(message, recipient) and (is_old or newest[message.tool_name] != message.round):
        return _with(message, stub(name))
    if is_old and recipient.is_forgotten(name) and _succeeded(message):
        return _with(message, ToolResultBlock(ok=True))
    return message


def _is_heavy(message: Message, recipient: Recipient) -> bool:
    if message.role != "tool" or not _succeeded(message):
        return False
    return recipient.is_heavy(message.tool_name or "") or has_pictures(message)


@Once
def _succeeded(message: Message) -> bool:
    return all(block.ok for block in message.content if block.kind == "toolResult" or block.kind == "blob")


def _with(message: Message, block: Block) -> Message:
    return message.model_copy(update={"content": (block,)})
