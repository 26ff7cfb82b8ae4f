"""A conversation's newest messages, as far back as one model can take them, kept in mind while a function works.

Rows are read from the end, a page at a time, until there are more of them than the model has room for: a turn costs
no more in a thread of two thousand messages than in one of fifty. What lies in the bucket is fetched once, and only
what is sent.
"""

from collections.abc import Iterable, Sequence
from itertools import dropwhile

from fermata.aws.resources import Resources
from fermata.conversations import message_store
from fermata.conversations.history.compiler import compile_history, prepare_history
from fermata.conversations.history.model_profile import ModelProfile, estimate_tokens
from fermata.conversations.image_store import FetchedBlobs
from fermata.domain.messages import Message

FIRST_READ_ROWS = 60
"""Rows the first read asks for; most conversations end within it."""
_MAX_READ_ROWS = 1000
"""Rows any other read asks for at most."""


class ConversationHistory:
    def __init__(self, resources: Resources, tenant: str, conversation: str, profile: ModelProfile) -> None:
        self._resources, self._profile = resources, profile
        self._messages, self._is_complete = _read_newest_turns(resources, tenant, conversation, profile)
        self._fetched: FetchedBlobs = {}
        self._compiled: tuple[Message, ...] | None = None

    def add_messages(self, messages: Iterable[Message]) -> None:
        """What was committed since; nobody else writes while this function owns the round."""
        self._messages.extend(messages)
        self._compiled = None

    def compile_messages(self) -> tuple[Message, ...]:
        """What the model is sent."""
        if self._compiled is None:
            compiled = compile_history(self._messages, self._profile, is_complete=self._is_complete)
            self._compiled = tuple(message_store.fetch_all_blocks(self._resources, compiled, self._fetched))
        return self._compiled


def _read_newest_turns(
    resources: Resources, tenant: str, conversation: str, profile: ModelProfile
) -> tuple[list[Message], bool]:
    """The messages in order, from the beginning of a turn on, and whether that is the conversation's beginning."""
    found: list[Message] = []
    limit = FIRST_READ_ROWS
    while True:
        before = found[0].position if found else None
        page = message_store.read_newest_messages(resources, tenant, conversation, before=before, limit=limit)
        found = [*reversed(page), *found]
        if len(page) < limit:
            return found, True
        turns = _drop_oldest_turn(found)
        used = estimate_tokens(prepare_history(turns, profile))
        if used > profile.max_history_tokens:
            return turns, False
        limit = _estimate_missing_rows(profile.max_history_tokens - used, used, len(turns))


def _estimate_missing_rows(free_tokens: int, used_tokens: int, rows_read: int) -> int:
    """As many rows as should fill the room left, when they are like those that were read."""
    expected = free_tokens * rows_read // used_tokens if used_tokens else 0
    return min(_MAX_READ_ROWS, max(FIRST_READ_ROWS, expected))


def _drop_oldest_turn(messages: Sequence[Message]) -> list[Message]:
    """Without the oldest turn, whose beginning may not have been read yet; nothing when there is no other."""
    oldest = messages[0].turn
    return list(dropwhile(lambda message: message.turn == oldest, messages))
