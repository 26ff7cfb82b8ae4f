"""Recall what the earlier turns of a conversation were about, for agents that are told of it (decision 0452)."""

from collections.abc import Iterable

from fermata.domain.messages import Message
from fermata.tools.toolset import Toolset
from fermata.tools.working_memory import MemoryEntity, describe_memory, extract_entities, remember_entities


def recall_entities(toolset: Toolset, messages: Iterable[Message], without_turn: str = "") -> tuple[MemoryEntity, ...]:
    """Return the entities of the results in a conversation's messages, the newest first.

    Args:
        toolset: The tools whose results count, with their rules.
        messages: Of the conversation.
        without_turn: A turn whose results do not count, because its model reads them whole.
    """
    remembered: tuple[MemoryEntity, ...] = ()
    for message in sorted(messages, key=lambda message: message.position):
        tool = toolset.find_tool(message.tool_name) if message.tool_name else None
        if tool is None or message.turn == without_turn:
            continue
        for block in message.content:
            if block.kind == "toolResult" and block.ok:
                found = extract_entities(tool.name, block.data, tool.entity_rules, message.created_at)
                remembered = remember_entities(remembered, found)
    return remembered


def build_memory_lines(toolset: Toolset, messages: Iterable[Message], turn_id: str) -> str:
    """Return the lines of a turn's situation about earlier turns; empty for nothing."""
    return describe_memory(recall_entities(toolset, messages, turn_id))
