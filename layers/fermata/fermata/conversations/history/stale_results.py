"""Leaves out of a healed history what is not worth sending again: results that newer ones have made stale.

What is left out is said, so that the model knows it can ask again.
"""

from collections.abc import Sequence

from fermata.conversations.history.model_profile import ModelProfile, estimate_tokens
from fermata.conversations.message_store import has_images
from fermata.domain.blocks import Block, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache

_MIN_ELIDED_TOKENS = 200
"""Tokens of a result that are not worth leaving out."""


def make_elided_result(tool_name: str) -> ToolResultBlock:
    """What stands for a result that was left out (contract instatic.md §5.6)."""
    note = (
        f"Earlier {tool_name} output removed to conserve context. Call {tool_name} again if you need the current state."
    )
    return ToolResultBlock(ok=True, data={"elided": True, "note": note})


def elide_stale_results(messages: Sequence[Message], profile: ModelProfile) -> list[Message]:
    """Of a heavy tool only the results of the newest round that called it stay, and only in the turn under way.

    Heavy is what the tool says it is, and any result with pictures. What a tool wants forgotten is a bare success in
    later turns.
    """
    current = messages[-1].turn if messages else ""
    newest = {
        message.tool_name: message.round
        for message in messages
        if message.turn == current and _is_heavy(message, profile)
    }
    return [_elide_if_stale(message, current, newest, profile) for message in messages]


def elide_oldest_results(messages: Sequence[Message], profile: ModelProfile) -> list[Message]:
    """When the turn under way is too long by itself, its oldest results go first, as many as it takes."""
    squeezed, over = list(messages), estimate_tokens(messages) - profile.max_history_tokens
    for index, message in enumerate(messages):
        if over <= 0:
            break
        if message.role == "tool" and _is_success(message) and estimate_tokens([message]) > _MIN_ELIDED_TOKENS:
            squeezed[index] = _with_content(message, make_elided_result(message.tool_name or ""))
            over -= estimate_tokens([message]) - estimate_tokens([squeezed[index]])
    return squeezed


def _elide_if_stale(
    message: Message, current_turn: str, newest_rounds: dict[str | None, int], profile: ModelProfile
) -> Message:
    if message.role != "tool":
        return message
    is_old, name = message.turn != current_turn, message.tool_name or ""
    if _is_heavy(message, profile) and (is_old or newest_rounds[message.tool_name] != message.round):
        return _with_content(message, make_elided_result(name))
    if is_old and profile.is_forgotten_tool(name) and _is_success(message):
        return _with_content(message, ToolResultBlock(ok=True))
    return message


def _is_heavy(message: Message, profile: ModelProfile) -> bool:
    if message.role != "tool" or not _is_success(message):
        return False
    return profile.is_heavy_tool(message.tool_name or "") or has_images(message)


@WeakCache
def _is_success(message: Message) -> bool:
    return all(block.ok for block in message.content if block.kind == "toolResult" or block.kind == "blob")


def _with_content(message: Message, block: Block) -> Message:
    return message.model_copy(update={"content": (block,)})
