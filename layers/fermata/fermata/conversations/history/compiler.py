"""Compile stored messages into the history that one model is sent (decision 0064).

The order of the steps matters:

1. Reasoning of other models is removed, and calls are paired with results, so that no later step can separate them.
2. Stale results are elided, and what the agent's rules leave out is pruned, so that they take no room.
3. The history is truncated to whole turns that the model accepts.
4. A turn that is too long by itself is cut to what fits, with its newest results.
5. Images are selected from what is left.

Only results that have to be cut, or get a note, are fetched from S3; conversation_history.py fetches the rest
afterwards.
"""

import operator
from collections.abc import Iterable, Sequence

from fermata.conversations.block_predicates import is_reasoning
from fermata.conversations.history.image_selection import select_images
from fermata.conversations.history.learned_limits import is_limits_mark
from fermata.conversations.history.message_totals import MessageTotals
from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.repair import HistoryRepair, repair_history
from fermata.conversations.history.shorten_oversized_turn import FetchBlocks, fit_history
from fermata.conversations.history.stale_results import ResultElision, elide_stale_results
from fermata.conversations.history.truncation import has_room, truncate_history
from fermata.conversations.surrogates_in_blocks import replace_surrogates_in_block
from fermata.domain.blocks import Block
from fermata.domain.messages import Message
from fermata.domain.weak_cache import WeakCache


def compile_history(
    messages: Iterable[Message], profile: ModelProfile, fetch: FetchBlocks = list, *, is_complete: bool = True
) -> list[Message]:
    """Return the history for a model, as a valid conversation within its limits. Any messages are accepted.

    Args:
        messages: In any order.
        profile: Limits and abilities of the model.
        fetch: Fetches results from S3 that have to be cut.
        is_complete: Whether the messages go back to the beginning of the conversation.
    """
    compiler = HistoryCompiler(profile, fetch)
    compiler.add_messages(messages)
    return compiler.compile_messages(is_complete=is_complete)


class HistoryCompiler:
    """Compiles a history again and again while it grows.

    Messages that were added before are neither cleaned nor paired again (decision 0204).
    """

    def __init__(self, profile: ModelProfile, fetch: FetchBlocks = list) -> None:
        """
        Args:
            profile: Limits and abilities of the model.
            fetch: Fetches results from S3 that have to be cut.
        """
        self._profile = profile
        self._fetch = fetch
        self._messages: list[Message] = []
        self._repair = HistoryRepair(profile.display_name)
        self._elision = ResultElision(profile)
        self._totals = MessageTotals()

    @property
    def stored_messages(self) -> Sequence[Message]:
        """The messages as they were added."""
        return self._messages

    def add_messages(self, messages: Iterable[Message]) -> None:
        """Add messages, in any order."""
        added = list(messages)
        self._messages += added
        if not self._repair.can_add(added):
            self._repair = HistoryRepair(self._profile.display_name)
            added = self._messages
        self._repair.add_messages(_without_unreadable_blocks(message, self._profile) for message in added)

    def compile_messages(self, *, is_complete: bool = True) -> list[Message]:
        """Return what `compile_history` returns for all messages."""
        prepared = [*self._profile.prune(self._elision.elide_stale_results(self._repair.messages))]
        self._totals.update(prepared)
        if is_complete and has_room(self._totals.tokens, self._profile):
            return select_images(prepared, self._profile, self._fetch) if self._totals.has_images else prepared
        history = truncate_history(prepared, self._profile, is_complete=is_complete)
        return select_images(fit_history(history, self._profile, self._fetch), self._profile, self._fetch)


def prepare_history(messages: Iterable[Message], profile: ModelProfile) -> list[Message]:
    """Return what would be sent if the model had room for everything: paired, readable, without stale results."""
    readable = (_without_unreadable_blocks(message, profile) for message in messages)
    return [*profile.prune(elide_stale_results(repair_history(readable, profile.display_name), profile))]


def _without_unreadable_blocks(message: Message, profile: ModelProfile) -> Message:
    """Remove reasoning of other models and lone surrogates. An unchanged message stays the same object."""
    if _is_model_independent(message):
        return message
    content = tuple(readable for block in message.content if (readable := _readable_block(block, profile)))
    is_same = len(content) == len(message.content) and all(map(operator.is_, content, message.content))
    return message if is_same else message.model_copy(update={"content": content})


@WeakCache
def _is_model_independent(message: Message) -> bool:
    return all(replace_surrogates_in_block(block) is block and not is_reasoning(block) for block in message.content)


def _readable_block(block: Block, profile: ModelProfile) -> Block | None:
    is_foreign = is_reasoning(block) and (block.provider, block.model) != (profile.provider, profile.model)
    return None if is_foreign or is_limits_mark(block) else replace_surrogates_in_block(block)
