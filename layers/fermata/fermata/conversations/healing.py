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

from fermata.words.blocks import Block, ToolResultBlock
from fermata.words.messages import Message
from fermata.words.once import Once

UNANSWERED = (
    "Tool call did not complete — the previous turn was interrupted before a result was produced. Its outcome is "
    "unknown: check the current state before you repeat it."
)
INTERRUPTED = "The turn ended before this call was answered."
"""What a call that was still open is told to have come to."""
LONGEST_ID = 64
_UNPLAIN = re.compile(r"[^A-Za-z0-9_-]")

_Key = tuple[str, int, str | None]
_Results = defaultdict[_Key, deque[Message]]


def heal(messages: Iterable[Message], called: Callable[[str], str] = str) -> tuple[Message, ...]:
    """`called`: what a tool is called towards this reader, whatever it was called when it was used."""
    ordered = _once(sorted(messages, key=lambda message: message.position))
    results, ids = _results(ordered), _CallIds()
    healed: list[Message] = []
    for message in ordered:
        if message.role == "tool":
            continue
        if content := _said(message):
            healed.extend(_paired(message, content, results, ids, called))
    return tuple(healed)


def _once(ordered: Iterable[Message]) -> list[Message]:
    """The first of those that claim the same position."""
    first: dict[int, Message] = {}
    for message in ordered:
        first.setdefault(message.position, message)
    return list(first.values())


@Once
def _said(message: Message) -> tuple[Block, ...]:
    """Those of its blocks that say something its side may say."""
    return tuple(block for block in message.content if _belongs(block, message.role))


def _results(ordered: Iterable[Message]) -> _Results:
    """Every result that can be read, by the call it answers."""
    results: _Results = defaultdict(deque)
    for message in ordered:
        if message.role == "tool":
            content = tuple(block for block in message.content if _is_result(block))[:1]
            if content:
                kept = message if content == message.content else message.model_copy(update={"content": content})
                results[message.turn, message.round, message.tool_call_id].append(kept)
    return results


def _paired(
    message: Message, content: tuple[Block, ...], results: _Results, ids: "_CallIds", called: Callable[[str], str]
) -> Iterator[Message]:
    """The message, and behind it the result of each of its calls."""
    blocks, answers = list(content), []
    is_changed = len(content) != len(message.content)
    for index, block in enumerate(content):
        call_id, tool_name = _call(block)
        if call_id is None:
            continue
        waiting = results[message.turn, message.round, call_id]
        answer = waiting.popleft() if waiting else _synthetic(message, call_id, tool_name)
        named = {"tool_call_id": ids.plain_and_new(call_id), "tool_name": called(_plain(tool_name) or "tool")}
        if named != {"tool_call_id": call_id, "tool_name": tool_name}:
            is_changed = True
            blocks[index] = block.model_copy(update=named)
        if named != {"tool_call_id": answer.tool_call_id, "tool_name": answer.tool_name}:
            answer = answer.model_copy(update=named)
        answers.append(answer)
    yield message.model_copy(update={"content": tuple(blocks)}) if is_changed else message
    yield from answers


def _call(block: Block) -> tuple[str | None, str]:
    if block.kind == "toolCall" or (block.kind == "blob" and block.of == "toolCall"):
        return block.tool_call_id or "", block.tool_name or ""
    return None, ""


def _is_result(block: Block) -> bool:
    return block.kind == "toolResult" or (block.kind == "blob" and block.of == "toolResult")


def _belongs(block: Block, role: str) -> bool:
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


def _synthetic(message: Message, call_id: str, tool_name: str) -> Message:
    return Message(
        position=message.position,
        role="tool",
        content=(ToolResultBlock(ok=False, error=UNANSWERED),),
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

    def plain_and_new(self, call_id: str) -> str:
        plain = _plain(call_id) or "call"
        name, count = plain, 1
        while name in self._used:
            count += 1
            name = f"{plain[: LONGEST_ID - 7]}_{count}"
        self._used.add(name)
        return name


@lru_cache(4096)
def _plain(name: str) -> str:
    plain = _UNPLAIN.sub("_", name)
    if len(plain) <= LONGEST_ID:
        return plain
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:40]
