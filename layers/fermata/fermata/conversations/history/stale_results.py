"""Elide tool results that newer ones have made stale, with a note that asks the model to call the tool again."""

from collections.abc import Mapping, Sequence

from fermata.conversations.block_kinds import has_images
from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.domain.blocks import Block, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache

_MIN_ELIDED_TOKENS = 200
"""Eliding a smaller result gains nothing."""


def make_elided_result(tool_name: str) -> ToolResultBlock:
    """Return the block that replaces an elided result. Its text is that of Instatic's server."""
    note = (
        f"Earlier {tool_name} output removed to conserve context. Call {tool_name} again if you need the current state."
    )
    return ToolResultBlock(ok=True, data={"elided": True, "note": note})


def elide_stale_results(messages: Sequence[Message], profile: ModelProfile) -> list[Message]:
    """Elide the results of heavy tools, except those of the newest round that called the tool in the current turn.

    A tool is heavy when it says so, and any result with images is. In later turns, the result of a tool that wants to
    be forgotten is a success without data. Failures stay (decision 0064).
    """
    current_turn = messages[-1].turn if messages else ""
    newest_rounds = {
        message.tool_name: message.round
        for message in messages
        if message.turn == current_turn and _is_heavy(message, profile)
    }
    return [_elide_if_stale(message, current_turn, newest_rounds, profile) for message in messages]


def elide_oldest_results(messages: Sequence[Message], profile: ModelProfile) -> list[Message]:
    """Elide the oldest results until the messages fit. For a current turn that is too long by itself."""
    shortened = list(messages)
    excess_tokens = estimate_tokens(messages) - profile.max_history_tokens
    for index, message in enumerate(messages):
        if excess_tokens <= 0:
            break
        tokens = estimate_tokens([message])
        if message.role == "tool" and _is_success(message) and tokens > _MIN_ELIDED_TOKENS:
            shortened[index] = _with_content(message, make_elided_result(message.tool_name or ""))
            excess_tokens -= tokens - estimate_tokens([shortened[index]])
    return shortened


def _elide_if_stale(
    message: Message, current_turn: str, newest_rounds: Mapping[str | None, int], profile: ModelProfile
) -> Message:
    if message.role != "tool":
        return message
    tool_name = message.tool_name or ""
    is_old = message.turn != current_turn
    if _is_heavy(message, profile) and (is_old or newest_rounds[message.tool_name] != message.round):
        return _with_content(message, make_elided_result(tool_name))
    if is_old and profile.is_forgotten_tool(tool_name) and _is_success(message):
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
