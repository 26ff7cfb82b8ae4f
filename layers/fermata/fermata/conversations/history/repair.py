"""Any history compiles: whatever rows are stored, what comes out is a conversation (design §7).

Each reply is followed by one result for each of its calls, in its order; a call without one gets a failed result.
Results that answer nothing, blocks that say nothing, blocks on the wrong side and messages that are there twice are
left out. Call ids are plain and unique in the whole of it, because each provider names its calls as it likes; names
of tools, which a model may make up, are plain.
"""

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import assert_never

from fermata.domain.blocks import Block, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache

UNANSWERED_CALL_ERROR = (
    "Tool call did not complete — the previous turn was interrupted before a result was produced. Its outcome is "
    "unknown: check the current state before you repeat it."
)
INTERRUPTED_CALL_ERROR = "The turn ended before this call was answered."
"""What a call that was still open is told to have come to."""
_MAX_ID_CHARS = 64
_UNSAFE_ID_CHARS = re.compile(r"[^A-Za-z0-9_-]")

_CallKey = tuple[str, int, str | None]
_ResultsByCall = defaultdict[_CallKey, deque[Message]]


def repair_history(messages: Iterable[Message], display_name: Callable[[str], str] = str) -> tuple[Message, ...]:
    """`called`: what a tool is called towards this reader, whatever it was called when it was used."""
    ordered = _drop_duplicates(sorted(messages, key=lambda message: message.position))
    results, ids = _group_results(ordered), _CallIds()
    healed: list[Message] = []
    for message in ordered:
        if message.role == "tool":
            continue
        if content := _valid_blocks(message):
            healed.extend(_pair_calls(message, content, results, ids, display_name))
    return tuple(healed)


def _drop_duplicates(ordered: Iterable[Message]) -> list[Message]:
    """The first of those that claim the same position."""
    first: dict[int, Message] = {}
    for message in ordered:
        first.setdefault(message.position, message)
    return list(first.values())


@WeakCache
def _valid_blocks(message: Message) -> tuple[Block, ...]:
    """Those of its blocks that say something its side may say."""
    return tuple(block for block in message.content if _is_valid_block(block, message.role))


def _group_results(ordered: Iterable[Message]) -> _ResultsByCall:
    """Every result that can be read, by the call it answers."""
    results: _ResultsByCall = defaultdict(deque)
    for message in ordered:
        if message.role == "tool":
            content = tuple(block for block in message.content if _is_result(block))[:1]
            if content:
                kept = message if content == message.content else message.model_copy(update={"content": content})
                results[message.turn, message.round, message.tool_call_id].append(kept)
    return results


def _pair_calls(
    message: Message,
    content: tuple[Block, ...],
    results: _ResultsByCall,
    ids: "_CallIds",
    display_name: Callable[[str], str],
) -> Iterator[Message]:
    """The message, and behind it the result of each of its calls."""
    blocks, answers = list(content), []
    is_changed = len(content) != len(message.content)
    for index, block in enumerate(content):
        call_id, tool_name = _call_id_and_name(block)
        if call_id is None:
            continue
        waiting = results[message.turn, message.round, call_id]
        answer = waiting.popleft() if waiting else _failed_result(message, call_id, tool_name)
        named = {
            "tool_call_id": ids.make_unique(call_id),
            "tool_name": display_name(_sanitize_name(tool_name) or "tool"),
        }
        if named != {"tool_call_id": call_id, "tool_name": tool_name}:
            is_changed = True
            blocks[index] = block.model_copy(update=named)
        if named != {"tool_call_id": answer.tool_call_id, "tool_name": answer.tool_name}:
            answer = answer.model_copy(update=named)
        answers.append(answer)
    yield message.model_copy(update={"content": tuple(blocks)}) if is_changed else message
    yield from answers


def _call_id_and_name(block: Block) -> tuple[str | None, str]:
    if block.kind == "toolCall" or (block.kind == "blob" and block.of == "toolCall"):
        return block.tool_call_id or "", block.tool_name or ""
    return None, ""


def _is_result(block: Block) -> bool:
    return block.kind == "toolResult" or (block.kind == "blob" and block.of == "toolResult")


def _is_valid_block(block: Block, role: str) -> bool:
    """Whether the block says something, and its side may say it."""
    match block.kind:
        case "text":
            return bool(block.text.strip())
        case "image":
            return role == "user" and bool(block.data or block.blob)
        case "toolCall" | "reasoning":
            return role == "assistant"
        case "blob":
            return block.of == "text" or (role == "assistant" and block.of != "toolResult")
        case "toolResult":
            return False
        case _:
            assert_never(block)


def _failed_result(message: Message, call_id: str, tool_name: str) -> Message:
    return Message(
        position=message.position,
        role="tool",
        content=(ToolResultBlock(ok=False, error=UNANSWERED_CALL_ERROR),),
        turn=message.turn,
        round=message.round,
        tool_call_id=call_id,
        tool_name=tool_name,
        created_at=message.created_at,
    )


class _CallIds:
    """Ids every provider accepts. The same history is given the same ones again."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def make_unique(self, call_id: str) -> str:
        plain = _sanitize_name(call_id) or "call"
        name, count = plain, 1
        while name in self._used:
            count += 1
            name = f"{plain[: _MAX_ID_CHARS - 7]}_{count}"
        self._used.add(name)
        return name


@lru_cache(4096)
def _sanitize_name(name: str) -> str:
    plain = _UNSAFE_ID_CHARS.sub("_", name)
    if len(plain) <= _MAX_ID_CHARS:
        return plain
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:40]
