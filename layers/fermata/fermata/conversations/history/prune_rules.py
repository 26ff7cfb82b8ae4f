"""Prune what an agent's rules leave out of a history: earlier reasoning, and calls with their results (decision 0364).

Places are counted in messages as a model reads them: the results of one reply are one message. A call and its result
are kept or left out together.
"""

from collections.abc import Iterable, Iterator, Sequence

from fermata.conversations.block_predicates import get_block_kind
from fermata.domain.blocks import Block
from fermata.domain.messages import Message
from fermata.domain.run_settings import PruneRules, ToolCallPruneRule


def prune_messages(messages: Sequence[Message], rules: PruneRules | None) -> list[Message]:
    """Return the messages without what the rules leave out. An unchanged message stays the same object.

    Args:
        messages: A history in which calls and results are paired.
        rules: None for a history that is sent whole.
    """
    if rules is None:
        return list(messages)
    pruned = _prune_reasoning(messages, rules.reasoning)
    for rule in _list_call_rules(rules):
        pruned = _prune_calls(pruned, rule)
    if rules.empty_messages == "remove":
        return [message for message in pruned if message.content]
    return pruned


def prune_before_turn(rules: PruneRules, turn: str, messages: Sequence[Message]) -> list[Message]:
    """Prune what came before a turn's first reply. What the turn itself has done since then is sent whole.

    Args:
        rules: The agent's.
        turn: The id of the turn that runs.
        messages: A history in which calls and results are paired.
    """
    is_own = (message.turn == turn and message.role != "user" for message in messages)
    begin = next((index for index, own in enumerate(is_own) if own), len(messages))
    earlier = prune_messages(messages[:begin], rules.model_copy(update={"empty_messages": "remove"}))
    return [*earlier, *messages[begin:]]


def _list_call_rules(rules: PruneRules) -> Iterable[ToolCallPruneRule]:
    listed = rules.tool_calls
    parsed = (ToolCallPruneRule(type=listed),) if isinstance(listed, str) else listed
    return [rule for rule in parsed if rule.type != "none"]


def _prune_reasoning(messages: Sequence[Message], kind: str) -> list[Message]:
    if kind == "none":
        return list(messages)
    kept_from = len(messages) - 1 if kind == "before-last-message" else len(messages)
    return [
        message
        if message.role != "assistant" or index >= kept_from
        else _replace_content(message, [block for block in message.content if get_block_kind(block) != "reasoning"])
        for index, message in enumerate(messages)
    ]


def _prune_calls(messages: Sequence[Message], rule: ToolCallPruneRule) -> list[Message]:
    kept_from = _find_kept_tail(messages, rule.type)
    kept_ids = {call_id for message in messages[kept_from:] for call_id in _iter_call_ids(message)}
    tools = None if rule.tools is None else frozenset(rule.tools)
    return [
        message if index >= kept_from else _without_calls(message, kept_ids, tools)
        for index, message in enumerate(messages)
    ]


def _find_kept_tail(messages: Sequence[Message], kind: str) -> int:
    """Return the index of the first message that stays as it is."""
    if kind == "all":
        return len(messages)
    middle = kind.removeprefix("before-last-").removesuffix("messages").strip("-")
    missing = int(middle) if middle.isdigit() else 1
    index = len(messages)
    while index > 0 and missing > 0:
        index -= 1
        is_same_message = index > 0 and messages[index].role == messages[index - 1].role == "tool"
        missing -= not is_same_message
    return index


def _iter_call_ids(message: Message) -> Iterator[str]:
    if message.role == "tool" and message.tool_call_id:
        yield message.tool_call_id
    for block in message.content:
        if get_block_kind(block) == "toolCall" and (call_id := getattr(block, "tool_call_id", None)):
            yield call_id


def _without_calls(message: Message, kept_ids: set[str], tools: frozenset[str] | None) -> Message:
    def is_kept(call_id: str | None, name: str | None) -> bool:
        return (call_id or "") in kept_ids or (tools is not None and (name or "") not in tools)

    if message.role == "tool":
        return message if is_kept(message.tool_call_id, message.tool_name) else _replace_content(message, [])
    if message.role != "assistant":
        return message
    flags = [
        get_block_kind(block) != "toolCall"
        or is_kept(getattr(block, "tool_call_id", None), getattr(block, "tool_name", None))
        for block in message.content
    ]
    return message if all(flags) else _replace_content(message, list(_iter_kept(message.content, flags)))


def _iter_kept(blocks: Sequence[Block], flags: Sequence[bool]) -> Iterator[Block]:
    """Yield the blocks that are kept. Reasoning is left out with what it led to, if nothing of that is kept."""
    reasoning: list[Block] = []
    was_pruned = False
    for block, is_kept in zip(blocks, flags, strict=True):
        if get_block_kind(block) == "reasoning":
            if was_pruned:
                reasoning, was_pruned = [], False
            reasoning.append(block)
        elif is_kept:
            yield from reasoning
            reasoning, was_pruned = [], False
            yield block
        else:
            was_pruned = True
    if not was_pruned:
        yield from reasoning


def _replace_content(message: Message, content: list[Block]) -> Message:
    if len(content) == len(message.content):
        return message
    return message.model_copy(update={"content": tuple(content)})
