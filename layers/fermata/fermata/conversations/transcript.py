"""A conversation's newest messages, as far back as one model can take them, kept in mind while a function works.

Rows are read from the end, a page at a time, until there are more of them than the model has room for: a turn costs
no more in a thread of two thousand messages than in one of fifty. What lies in the bucket is fetched once, and only
what is sent.
"""

from collections.abc import Iterable, Sequence
from itertools import dropwhile

from fermata.aws.desk import Desk
from fermata.conversations import rows
from fermata.conversations.history import compile_history, freshened
from fermata.conversations.pictures import Fetched
from fermata.conversations.recipient import Recipient, weight
from fermata.words.messages import Message

PAGE = 60
"""Rows the first read asks for; most conversations end within it."""
MOST = 1000
"""Rows any other read asks for at most."""


class Transcript:
    def __init__(self, desk: Desk, tenant: str, conversation: str, recipient: Recipient) -> None:
        self._desk, self._recipient = desk, recipient
        self._messages, self._is_whole = _read(desk, tenant, conversation, recipient)
        self._fetched: Fetched = {}
        self._compiled: tuple[Message, ...] | None = None

    def add(self, messages: Iterable[Message]) -> None:
        """What was committed since; nobody else writes while this function owns the round."""
        self._messages.extend(messages)
        self._compiled = None

    def history(self) -> tuple[Message, ...]:
        """What the model is sent."""
        if self._compiled is None:
            compiled = compile_history(self._messages, self._recipient, is_whole=self._is_whole)
            self._compiled = tuple(rows.whole(self._desk, compiled, self._fetched))
        return self._compiled


def _read(desk: Desk, tenant: str, conversation: str, recipient: Recipient) -> tuple[list[Message], bool]:
    """The messages in order, from the beginning of a turn on, and whether that is the conversation's beginning."""
    found: list[Message] = []
    limit = PAGE
    while True:
        before = found[0].position if found else None
        page = rows.newest(desk, tenant, conversation, before=before, limit=limit)
        found = [*reversed(page), *found]
        if len(page) < limit:
            return found, True
        turns = _whole_turns(found)
        used = weight(freshened(turns, recipient))
        if used > recipient.tokens:
            return turns, False
        limit = _rows_to_fill(recipient.tokens - used, used, len(turns))


def _rows_to_fill(room: int, used: int, rows_read: int) -> int:
    """As many rows as should fill the room left, when they are like those that were read."""
    expected = room * rows_read // used if used else 0
    return min(MOST, max(PAGE, expected))


def _whole_turns(messages: Sequence[Message]) -> list[Message]:
    """Without the oldest turn, whose beginning may not have been read yet; nothing when there is no other."""
    oldest = messages[0].turn
    return list(dropwhile(lambda message: message.turn == oldest, messages))
