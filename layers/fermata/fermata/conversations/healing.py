"""Any history compiles: whatever rows are stored, what comes out pairs every call with one result (design §7)."""

from collections.abc import Iterable

from fermata.words.blocks import Block, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.words.messages import Message

UNANSWERED = "This call was interrupted and its outcome is unknown. Check the current state before you repeat it."


def heal(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Results directly behind the reply that asked for them, in its order; orphans and empty text dropped."""
    healed: list[Message] = []
    ordered = sorted(messages, key=lambda message: message.position)
    results = _first_results(ordered)
    for message in ordered:
        if message.role == "tool":
            continue
        content = tuple(block for block in message.content if not _is_empty(block))
        if not content:
            continue
        healed.append(message.model_copy(update={"content": content}))
        healed.extend(
            results.get((message.turn, message.round, call.tool_call_id)) or _synthetic(message, call)
            for call in content
            if isinstance(call, ToolCallBlock)
        )
    return tuple(healed)


def _first_results(messages: Iterable[Message]) -> dict[tuple[str, int, str | None], Message]:
    results: dict[tuple[str, int, str | None], Message] = {}
    for message in messages:
        if message.role == "tool":
            results.setdefault((message.turn, message.round, message.tool_call_id), message)
    return results


def _is_empty(block: Block) -> bool:
    return isinstance(block, TextBlock) and not block.text.strip()


def _synthetic(message: Message, call: ToolCallBlock) -> Message:
    return Message(
        position=message.position,
        role="tool",
        content=(ToolResultBlock(ok=False, error=UNANSWERED),),
        turn=message.turn,
        round=message.round,
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        created_at=message.created_at,
    )
