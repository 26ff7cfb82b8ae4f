"""Keep what was computed from the beginning of a growing conversation (decision 0204).

Each request of a turn sends the messages of the last one, and a few more. What is computed from messages one after the
other (a fold) continues from where the messages of the last request and of this one are the same objects.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any, Protocol, Self, TypeVar

from fermata.domain.messages import Message


class MessageFold(Protocol):
    """Something that is computed from messages, one after the other."""

    def add_message(self, message: Message) -> None:
        """Add the next message."""

    def copy(self) -> Self:
        """Return a fold of the same messages, to which others may be added."""


Fold = TypeVar("Fold", bound=MessageFold)


@dataclass
class _Prefix:
    """The fold of the messages that two requests had in common, and all messages of the newest request."""

    fold: Any
    length: int
    newest_messages: Sequence[Message]


class MessagePrefixCache:
    """Keep the folds of one conversation. It belongs to one thread."""

    def __init__(self) -> None:
        self._prefix_by_key: dict[Hashable, _Prefix] = {}

    def fold_messages(self, key: Hashable, messages: Sequence[Message], make_fold: Callable[[], Fold]) -> Fold:
        """Return the fold of all messages, which the caller may change.

        Args:
            key: Tells apart all that messages are folded into. Equal keys come with equal `make_fold`.
            messages: The messages of the request. Those of the last one are recognised as the same objects.
            make_fold: Makes the fold of no message.
        """
        prefix = self._prefix_by_key.get(key)
        common = _count_common(prefix.newest_messages, messages) if prefix else 0
        if prefix is None or common < prefix.length:
            prefix = self._prefix_by_key[key] = _Prefix(make_fold(), 0, messages)
        for message in messages[prefix.length : common]:
            prefix.fold.add_message(message)
        prefix.length = common
        prefix.newest_messages = messages
        fold: Fold = prefix.fold.copy()
        for message in messages[common:]:
            fold.add_message(message)
        return fold


def _count_common(some: Sequence[Message], others: Sequence[Message]) -> int:
    """Count the messages at the beginning that are the same objects. Usually all of the shorter sequence are."""
    if all(map(is_, some, others)):
        return min(len(some), len(others))
    for index, (message, other) in enumerate(zip(some, others, strict=False)):
        if message is not other:
            return index
    return min(len(some), len(others))
