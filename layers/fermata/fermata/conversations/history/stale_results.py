"""Elide tool results that newer ones have made stale, with a note that asks the model to call the tool again."""

import json
from collections.abc import Mapping, Sequence

from fermata.conversations.block_kinds import has_images, is_tool_call
from fermata.conversations.history.model_profile import ModelProfile
from fermata.domain.blocks import BlobBlock, Block, ToolCallBlock, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache

_Subject = tuple[str | None, str]
"""A tool's name and the input of its call."""


def make_elided_result(tool_name: str) -> ToolResultBlock:
    """Return the block that replaces an elided result. Its text is that of Instatic's server."""
    note = (
        f"Earlier {tool_name} output removed to conserve context. Call {tool_name} again if you need the current state."
    )
    return ToolResultBlock(ok=True, data={"elided": True, "note": note})


def elide_stale_results(messages: Sequence[Message], profile: ModelProfile) -> list[Message]:
    """Elide the results of heavy tools, except the newest of each in the current turn.

    A tool is heavy when it says so, and any result with images is. Results are versions of one thing if their calls
    had the same input: the second part of a page is no version of the first (decision 0201). In later turns, the result
    of a tool that wants to be forgotten is a success without data. Failures stay (decision 0064).
    """
    current_turn = messages[-1].turn if messages else ""
    subjects = _find_heavy_subjects([message for message in messages if message.turn == current_turn], profile)
    newest_rounds = dict(subjects.values())
    return [
        _elide_if_stale(message, message.turn != current_turn, subjects, newest_rounds, profile) for message in messages
    ]


def _find_heavy_subjects(messages: Sequence[Message], profile: ModelProfile) -> dict[str | None, tuple[_Subject, int]]:
    """Return what each heavy result of the turn is about, and its round, by call id."""
    inputs: dict[str | None, str] = {}
    subjects: dict[str | None, tuple[_Subject, int]] = {}
    for message in messages:
        if message.role == "assistant":
            inputs.update(describe_inputs(message))
        elif _is_heavy(message, profile):
            subject = (message.tool_name, inputs.get(message.tool_call_id, ""))
            subjects[message.tool_call_id] = (subject, message.round)
    return subjects


@WeakCache
def describe_inputs(message: Message) -> dict[str | None, str]:
    """Return a text for the input of each call, by its id: the same for the same input. A null member is no member."""
    return {block.tool_call_id: _describe_input(block) for block in message.content if is_tool_call(block)}


def _describe_input(block: ToolCallBlock | BlobBlock) -> str:
    if block.kind == "blob":
        return block.blob
    arguments = block.input
    if isinstance(arguments, dict):
        arguments = {name: value for name, value in arguments.items() if value is not None}
    return json.dumps(arguments, sort_keys=True)


def _elide_if_stale(
    message: Message,
    is_old: bool,
    subjects: Mapping[str | None, tuple[_Subject, int]],
    newest_rounds: Mapping[_Subject, int],
    profile: ModelProfile,
) -> Message:
    if message.role != "tool":
        return message
    tool_name = message.tool_name or ""
    if is_old and _is_heavy(message, profile):
        return with_only_block(message, make_elided_result(tool_name))
    if is_old and profile.is_forgotten_tool(tool_name) and is_success(message):
        return with_only_block(message, ToolResultBlock(ok=True))
    if not is_old and message.tool_call_id in subjects:
        subject, round_ = subjects[message.tool_call_id]
        if newest_rounds[subject] != round_:
            return with_only_block(message, make_elided_result(tool_name))
    return message


def _is_heavy(message: Message, profile: ModelProfile) -> bool:
    if message.role != "tool" or not is_success(message):
        return False
    return profile.is_heavy_tool(message.tool_name or "") or has_images(message)


@WeakCache
def is_success(message: Message) -> bool:
    """Return whether no result in the message is a failure."""
    return all(block.ok for block in message.content if block.kind == "toolResult" or block.kind == "blob")


def with_only_block(message: Message, block: Block) -> Message:
    """Return the message with this block instead of its content."""
    return message.model_copy(update={"content": (block,)})
