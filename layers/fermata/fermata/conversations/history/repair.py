"""Repair a history, so that any stored rows become a valid conversation that every provider accepts.

- Each reply is followed by one result for each of its calls, in their order. A call without a result gets a failed one.
- Results without a call, empty blocks, blocks of the wrong role and duplicate messages are left out.
- Call ids are unique and use only characters that all providers accept, because each provider has its own form of ids.
- Names of tools, which a model may make up, use the same characters.
"""

import hashlib
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import assert_never

from fermata.conversations.block_predicates import is_tool_call, is_tool_result
from fermata.domain.blocks import Block, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache

UNANSWERED_CALL_ERROR = (
    "Tool call did not complete — the previous turn was interrupted before a result was produced. Its outcome is "
    "unknown: check the current state before you repeat it."
)
"""What the model reads as the result of an unanswered call (decision 0064)."""
INTERRUPTED_CALL_ERROR = "The turn ended before this call was answered."
"""What clients are shown as the result of an unanswered call (decision 0097)."""
_MAX_ID_CHARS = 64
_UNSAFE_ID_CHARS = re.compile(r"[^A-Za-z0-9_-]")

_CallKey = tuple[str, int, str | None]
_ResultsByCall = defaultdict[_CallKey, deque[Message]]


def repair_history(messages: Iterable[Message], display_name: Callable[[str], str] = str) -> tuple[Message, ...]:
    """Return the messages as a valid conversation. Messages that need no repair stay the same objects.

    Args:
        messages: In any order.
        display_name: Maps any name of a tool to the one that the model knows.
    """
    repair = HistoryRepair(display_name)
    repair.add_messages(messages)
    return tuple(repair.messages)


class HistoryRepair:
    """A valid conversation that grows with the stored one.

    Attributes:
        messages: The messages that were added, repaired. Once here, a message stays the same object.
    """

    def __init__(self, display_name: Callable[[str], str] = str) -> None:
        """
        Args:
            display_name: Maps any name of a tool to the one that the model knows.
        """
        self.messages: list[Message] = []
        self._pairing = _CallPairing(display_name)
        self._last_position: int | None = None

    def can_add(self, messages: Iterable[Message]) -> bool:
        """Return whether the messages follow those before, and answer no call that got a failed result already."""
        return all(
            (self._last_position is None or message.position > self._last_position)
            and not (message.role == "tool" and self._pairing.has_failed(message))
            for message in messages
        )

    def add_messages(self, messages: Iterable[Message]) -> None:
        """Add messages, in any order. They must satisfy `can_add`."""
        ordered = _drop_duplicates(sorted(messages, key=lambda message: message.position))
        self._pairing.add_results(ordered)
        for message in ordered:
            if message.role != "tool" and (content := _valid_blocks(message)):
                self.messages.extend(self._pairing.pair_calls(message, content))
            self._last_position = message.position


def _drop_duplicates(ordered: Iterable[Message]) -> list[Message]:
    """Keep the first message of each position."""
    message_by_position: dict[int, Message] = {}
    for message in ordered:
        message_by_position.setdefault(message.position, message)
    return list(message_by_position.values())


@WeakCache
def _valid_blocks(message: Message) -> tuple[Block, ...]:
    return tuple(block for block in message.content if _is_valid_block(block, message.role))


def _is_valid_block(block: Block, role: str) -> bool:
    """Return whether the block has content that its role may have."""
    match block.kind:
        case "text":
            return bool(block.text.strip())
        case "image":
            return role == "user" and bool(block.data or block.blob)
        case "toolCall" | "reasoning":
            return role == "assistant"
        case "blob":
            return block.replaced_kind == "text" or (role == "assistant" and block.replaced_kind != "toolResult")
        case "toolResult" | "audio":  # what a recording says is a text beside it
            return False
        case _:
            assert_never(block)


class _CallPairing:
    """Pair calls with results, and give both the same unique id and the model's name of the tool."""

    def __init__(self, display_name: Callable[[str], str]) -> None:
        self._results: _ResultsByCall = defaultdict(deque)
        self._failed: set[_CallKey] = set()
        self._display_name = display_name
        self._call_ids = _CallIds()

    def add_results(self, ordered: Iterable[Message]) -> None:
        """Remember all results, each reduced to its first result block, by the call they answer."""
        for message in ordered:
            if message.role != "tool":
                continue
            if content := tuple(block for block in message.content if is_tool_result(block))[:1]:
                result = message if content == message.content else message.model_copy(update={"content": content})
                self._results[message.turn, message.round, message.tool_call_id].append(result)

    def has_failed(self, result: Message) -> bool:
        """Return whether the call of this result was given a failed one, because it had none."""
        return (result.turn, result.round, result.tool_call_id) in self._failed

    def pair_calls(self, message: Message, content: Sequence[Block]) -> Iterator[Message]:
        """Return the message with its valid blocks, followed by one result for each of its calls."""
        blocks = list(content)
        results: list[Message] = []
        is_changed = len(content) != len(message.content)
        for index, block in enumerate(content):
            if not is_tool_call(block):
                continue
            call_id = block.tool_call_id or ""
            tool_name = block.tool_name or ""
            result = self._take_result(message, call_id) or _failed_result(message, call_id, tool_name)
            update = {"tool_call_id": self._call_ids.make_unique(call_id), "tool_name": self._tool_name(tool_name)}
            if update != {"tool_call_id": call_id, "tool_name": tool_name}:
                is_changed = True
                blocks[index] = block.model_copy(update=update)
            if update != {"tool_call_id": result.tool_call_id, "tool_name": result.tool_name}:
                result = result.model_copy(update=update)
            results.append(result)
        yield message.model_copy(update={"content": tuple(blocks)}) if is_changed else message
        yield from results

    def _take_result(self, message: Message, call_id: str) -> Message | None:
        key = (message.turn, message.round, call_id)
        if results := self._results.get(key):
            return results.popleft()
        self._failed.add(key)
        return None

    def _tool_name(self, name: str) -> str:
        """Google's models want a name to begin with a letter or an underscore."""
        sanitized = _sanitize_name(name) or "tool"
        begins_well = sanitized[0].isalpha() or sanitized[0] == "_"
        return self._display_name(sanitized if begins_well else f"_{sanitized}"[:_MAX_ID_CHARS])


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
    """Unique call ids that every provider accepts. The same history always gets the same ids."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}

    def make_unique(self, call_id: str) -> str:
        sanitized = _sanitize_name(call_id) or "call"
        unique = sanitized
        beginning = sanitized[: _MAX_ID_CHARS - 7]
        count = self._counts.get(beginning, 1)
        while unique in self._used:
            count += 1
            unique = f"{beginning}_{count}"
        self._counts[beginning] = count  # lower numbers are taken (decision 0234)
        self._used.add(unique)
        return unique


@lru_cache(4096)
def _sanitize_name(name: str) -> str:
    """Replace unsafe characters by underscores; a longer name becomes a digest."""
    sanitized = _UNSAFE_ID_CHARS.sub("_", name)
    if len(sanitized) <= _MAX_ID_CHARS:
        return sanitized
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:40]
