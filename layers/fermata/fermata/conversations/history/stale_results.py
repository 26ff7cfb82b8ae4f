"""Elide tool results that newer ones have made stale, with a note that asks the model to call the tool again."""

from collections.abc import Sequence

from fermata.conversations.block_predicates import has_images
from fermata.conversations.call_input_digests import describe_inputs
from fermata.conversations.history.model_profile import ModelProfile
from fermata.domain.blocks import Block, ToolResultBlock
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
    return ResultElision(profile).elide_stale_results(messages)


class ResultElision:
    """Elides again and again in a history that grows. Each message is looked at once (decision 0184)."""

    def __init__(self, profile: ModelProfile) -> None:
        self._profile = profile
        self._begin((), "")

    def _begin(self, messages: Sequence[Message], current_turn: str) -> None:
        self._seen_messages = messages
        self._current_turn = current_turn
        self._elided: list[Message] = []
        self._inputs: dict[str | None, str] = {}
        self._newest_results: dict[_Subject, tuple[int, list[int]]] = {}
        """The round of the newest results of a heavy call, and their places."""

    def elide_stale_results(self, messages: Sequence[Message]) -> list[Message]:
        """Return what `elide_stale_results` returns.

        Args:
            messages: A new sequence, or that of the last time, to which others were added.
        """
        current_turn = messages[-1].turn if messages else ""
        if messages is not self._seen_messages or current_turn != self._current_turn:
            self._begin(messages, current_turn)
        for message in messages[len(self._elided) :]:
            self._add_message(message)
        return list(self._elided)

    def _add_message(self, message: Message) -> None:
        if message.turn != self._current_turn:
            self._elided.append(_elide_of_earlier_turn(message, self._profile))
            return
        self._elided.append(message)
        if message.role == "assistant":
            self._inputs.update(describe_inputs(message))
        elif _is_heavy(message, self._profile):
            self._add_heavy_result(message, len(self._elided) - 1)

    def _add_heavy_result(self, message: Message, place: int) -> None:
        subject = (message.tool_name, self._inputs.get(message.tool_call_id, ""))
        round_, places = self._newest_results.get(subject, (message.round, []))
        if round_ != message.round:
            for stale in places:
                note = make_elided_result(self._elided[stale].tool_name or "")
                self._elided[stale] = with_only_block(self._elided[stale], note)
            places = []
        self._newest_results[subject] = (message.round, [*places, place])


def _elide_of_earlier_turn(message: Message, profile: ModelProfile) -> Message:
    if message.role != "tool":
        return message
    tool_name = message.tool_name or ""
    if _is_heavy(message, profile):
        return with_only_block(message, make_elided_result(tool_name))
    if profile.is_forgotten_tool(tool_name) and is_success(message):
        return with_only_block(message, ToolResultBlock(ok=True))
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
