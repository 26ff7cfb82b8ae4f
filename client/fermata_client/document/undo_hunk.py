"""Restore the bytes that an edit replaced, wherever they are in a file that changed since (decision 0122)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Self

from fermata_client.html.edit_error import EditError
from fermata_client.html.splices import Splice

CONTEXT_BYTES = (48, 24, 12)
"""Lengths of the surroundings by which a place is recognized, the longest first."""
REMOVAL_CONTEXT_BYTES = CONTEXT_BYTES[:2]
"""An edit that left no bytes behind is recognized by its surroundings alone, so the shortest one does not do."""


class EditConflictError(EditError):
    """The bytes that an edit left behind are not in the file any more."""


@dataclass(frozen=True)
class UndoHunk:
    """An edit replaced `old_text` with `length` bytes of this digest at `position`."""

    position: int
    length: int
    digest: str
    context_before: str
    context_after: str
    old_text: str

    @classmethod
    def from_edit(cls, after: bytes, position: int, length: int, old: bytes) -> Self:
        """Describe an edit that put `length` bytes at `position` of `after` in place of `old`."""
        end = position + length
        return cls(
            position=position,
            length=length,
            digest=content_digest(after[position:end]),
            context_before=after[max(0, position - CONTEXT_BYTES[0]) : position].decode("utf-8", "ignore"),
            context_after=after[end : end + CONTEXT_BYTES[0]].decode("utf-8", "ignore"),
            old_text=old.decode("utf-8"),
        )

    def to_splice(self, source: bytes) -> Splice | None:
        """Return the splice that restores the bytes in the file as it is now; None if they are restored already.

        Raises:
            EditConflictError: the bytes that the edit left behind are not found, or in more than one place.
        """
        position = self._find_position(source)
        old = self.old_text.encode()
        if position is not None:
            return Splice(position, position + self.length, old)
        if self._matches(source, self.position, CONTEXT_BYTES[0], len(old), content_digest(old)):
            return None
        raise EditConflictError("The result of this edit was changed since, so the edit was not undone.")

    def _find_position(self, source: bytes) -> int | None:
        """Return the position of the edit, or else the only position that looks like it."""
        if self._matches(source, self.position, CONTEXT_BYTES[0], self.length, self.digest):
            return self.position
        for context_bytes in CONTEXT_BYTES if self.length else REMOVAL_CONTEXT_BYTES:
            positions = [
                position
                for position in self._candidate_positions(source, context_bytes)
                if self._matches(source, position, context_bytes, self.length, self.digest)
            ]
            if positions:
                return positions[0] if len(positions) == 1 else None
        return None

    def _matches(self, source: bytes, position: int, context_bytes: int, length: int, digest: str) -> bool:
        before, after = self._context(context_bytes)
        end = position + length
        return (
            source[max(0, position - len(before)) : position] == before
            and source[end : end + len(after)] == after
            and content_digest(source[position:end]) == digest
        )

    def _candidate_positions(self, source: bytes, context_bytes: int) -> Iterator[int]:
        before, _ = self._context(context_bytes)
        if before:
            for match in re.finditer(b"(?=" + re.escape(before) + b")", source):
                yield match.start() + len(before)

    def _context(self, context_bytes: int) -> tuple[bytes, bytes]:
        return self.context_before.encode()[-context_bytes:], self.context_after.encode()[:context_bytes]

    def to_wire(self) -> dict[str, Any]:
        return {
            "at": self.position,
            "length": self.length,
            "hash": self.digest,
            "before": self.context_before,
            "after": self.context_after,
            "text": self.old_text,
        }

    @classmethod
    def from_wire(cls, members: dict[str, Any]) -> Self:
        texts = (str(members[name]) for name in ("hash", "before", "after", "text"))
        return cls(int(members["at"]), int(members["length"]), *texts)


def content_digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:32]
