"""History of a conversation during a turn: read once from the newest message back, extended, and compiled on demand.

Rows are read in batches until they exceed what the model accepts. So a turn costs the same in a thread of two thousand
messages as in one of two hundred (decision 0064).
"""

from collections.abc import Iterable, Sequence
from itertools import dropwhile

from fermata.aws.resources import Resources
from fermata.conversations.block_store import BlockFetcher
from fermata.conversations.history.compiler import HistoryCompiler, prepare_history
from fermata.conversations.history.model_profile import ModelProfile
from fermata.conversations.history.token_estimate import estimate_tokens
from fermata.conversations.message_cuts import MessageCuts, leave_out_cut_messages
from fermata.conversations.message_store import read_newest_messages
from fermata.domain.messages import Message

FIRST_READ_ROWS = 60
"""Most conversations are not longer."""
_MAX_READ_ROWS = 1000


class ConversationHistory:
    """Newest turns of a conversation, as many as one model accepts."""

    def __init__(
        self,
        resources: Resources,
        tenant: str,
        conversation: str,
        profile: ModelProfile,
        newest: Sequence[Message] | None = None,
        cuts: MessageCuts = (),
    ) -> None:
        """
        Args:
            newest: The result of `read_first_batch`, if it was called before.
            cuts: Positions of messages that count no more.
        """
        self._fetcher = BlockFetcher(resources.blobs)
        messages, self._is_complete = _read_newest_turns(resources, tenant, conversation, profile, newest, cuts)
        self._compiler = HistoryCompiler(profile, self._fetcher.fetch_all_blocks)
        self._compiler.add_messages(messages)
        self._compiled: tuple[Message, ...] = ()
        self._is_compiled = False

    def add_messages(self, messages: Iterable[Message]) -> None:
        """Add messages that were committed since. The owner of the round is the only writer of the conversation."""
        self._compiler.add_messages(messages)
        self._is_compiled = False

    @property
    def stored_messages(self) -> Sequence[Message]:
        """The messages as they are stored, including those that the model is not sent."""
        return self._compiler.stored_messages

    def compile_messages(self) -> tuple[Message, ...]:
        """Return the history that the model is sent, with everything that is in S3. Each blob is fetched once."""
        if not self._is_compiled:
            compiled = self._compiler.compile_messages(is_complete=self._is_complete)
            self._compiled = _with_same_objects(self._fetcher.fetch_all_blocks(compiled), self._compiled)
            self._is_compiled = True
        return self._compiled


def _with_same_objects(messages: Sequence[Message], earlier: Sequence[Message]) -> tuple[Message, ...]:
    """Return equal messages as the objects they were before, by which drivers see what is unchanged (decision 0204)."""
    same = [old if new is not old and new == old else new for new, old in zip(messages, earlier, strict=False)]
    return (*same, *messages[len(same) :])


def read_first_batch(resources: Resources, tenant: str, conversation: str) -> list[Message]:
    """Return the newest messages, the newest first: in most conversations all of them.

    Args:
        tenant: The tenant's name.
        conversation: The id of the conversation.
    """
    return read_newest_messages(resources, tenant, conversation, limit=FIRST_READ_ROWS)


def _read_newest_turns(
    resources: Resources,
    tenant: str,
    conversation: str,
    profile: ModelProfile,
    newest: Sequence[Message] | None,
    cuts: MessageCuts,
) -> tuple[list[Message], bool]:
    """Return whole turns in order, and whether they go back to the beginning of the conversation."""
    messages: list[Message] = []
    limit = FIRST_READ_ROWS
    batch = read_first_batch(resources, tenant, conversation) if newest is None else newest
    while True:
        messages = [*reversed(leave_out_cut_messages(batch, cuts)), *messages]
        if len(batch) < limit:
            return messages, True
        turns = _drop_oldest_turn(messages)
        used_tokens = estimate_tokens(prepare_history(turns, profile))
        if used_tokens > profile.max_history_tokens:
            return turns, False
        limit = _estimate_missing_rows(profile.max_history_tokens - used_tokens, used_tokens, len(turns))
        batch = read_newest_messages(resources, tenant, conversation, before=batch[-1].position, limit=limit)


def _estimate_missing_rows(free_tokens: int, used_tokens: int, rows_read: int) -> int:
    """Return how many more rows fill the free tokens, if they are like the rows that were read."""
    expected = free_tokens * rows_read // used_tokens if used_tokens else 0
    return min(_MAX_READ_ROWS, max(FIRST_READ_ROWS, expected))


def _drop_oldest_turn(messages: Sequence[Message]) -> list[Message]:
    """Drop the turn whose beginning may not have been read; nothing remains when it is the only one."""
    oldest_turn = messages[0].turn if messages else ""
    return list(dropwhile(lambda message: message.turn == oldest_turn, messages))
