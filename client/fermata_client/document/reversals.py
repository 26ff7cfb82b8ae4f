"""How an edit is taken back, byte for byte, also by a program that was started anew in between.

A reversal names the bytes that an edit left behind and the bytes that were there. It is found again when the file has
changed elsewhere: by the bytes themselves and by what stands around them, as long as only one place fits.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from fermata_client.html.errors import EditError
from fermata_client.html.splices import Splice, apply_splices

CONTEXT_BYTES = (48, 24, 12)
"""Bytes on either side by which a place is recognised: as many as still fit, when somebody worked close by."""


class EditConflictError(EditError):
    """The bytes that an edit left behind are not there any more."""


@dataclass(frozen=True)
class ByteSwap:
    """`length` bytes at `at`, with this `hash`, were `text`."""

    at: int
    length: int
    hash: str
    before: str
    after: str
    text: str

    def to_splice(self, source: bytes) -> Splice | None:
        """What to do in the file as it is now; None when it was done already."""
        at = self._place(source)
        if at is not None:
            return Splice(at, at + self.length, self.text.encode())
        back = self.text.encode()
        if self._fits(source, self.at, CONTEXT_BYTES[0], len(back), content_digest(back)):
            return None
        raise EditConflictError("Somebody changed what this edit had left behind, so it was not taken back.")

    def _place(self, source: bytes) -> int | None:
        """Where it was; else the only place that looks like it."""
        if self._fits(source, self.at, CONTEXT_BYTES[0], self.length, self.hash):
            return self.at
        for around in CONTEXT_BYTES if self.length else CONTEXT_BYTES[:2]:
            found = self._candidates(source, around)
            places = [at for at in found if self._fits(source, at, around, self.length, self.hash)]
            if places:
                return places[0] if len(places) == 1 else None
        return None

    def _fits(self, source: bytes, at: int, around: int, length: int, digested: str) -> bool:
        before, after = self._context(around)
        return (
            source[max(0, at - len(before)) : at] == before
            and source[at + length : at + length + len(after)] == after
            and content_digest(source[at : at + length]) == digested
        )

    def _candidates(self, source: bytes, around: int) -> Iterator[int]:
        before, _ = self._context(around)
        if before:
            for found in re.finditer(b"(?=" + re.escape(before) + b")", source):
                yield found.start() + len(before)

    def _context(self, around: int) -> tuple[bytes, bytes]:
        return self.before.encode()[-around:], self.after.encode()[:around]


@dataclass(frozen=True)
class Reversal:
    """The way back of one edit of one file; `path` is empty for the page. A file that came or went has one swap."""

    path: str
    swaps: tuple[ByteSwap, ...] = ()
    created: bool = False
    """The edit made the file: it goes again, as long as it still has the bytes of its only swap."""
    removed: bool = False
    """The edit took the file away: it comes again, with the text of its only swap."""

    def apply_to(self, source: bytes | None) -> bytes | None:
        """The file as it was before the edit; None where there was none."""
        if self.removed:
            return self._come_again(source)
        if self.created:
            if source is not None and content_digest(source) != self.swaps[0].hash:
                raise EditConflictError(f"{self.path} was changed since it was made, so it was left where it is.")
            return None
        if source is None:
            raise EditConflictError(f"{self.path} is gone, so nothing in it could be taken back.")
        return apply_splices(source, [splice for swap in self.swaps if (splice := swap.to_splice(source))])

    def _come_again(self, source: bytes | None) -> bytes:
        text = self.swaps[0].text.encode()
        if source not in (None, text):
            raise EditConflictError(f"There is another {self.path} now, so it was left as it is.")
        return text


def content_digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:32]


def reversal_of_splices(path: str, source: bytes, splices: list[Splice]) -> Reversal:
    """The way back of `splices`, which are about to be applied to `source`."""
    after, moved, swaps = apply_splices(source, splices), 0, []
    for splice in sorted(splices, key=lambda splice: (splice.start, splice.end)):
        at, length = splice.start + moved, len(splice.text)
        swaps.append(_swap(after, at, length, source[splice.start : splice.end]))
        moved += length - (splice.end - splice.start)
    return Reversal(path, tuple(swaps))


def reversal_of_file(path: str, old: bytes | None, new: bytes | None) -> Reversal:
    """The way back of a file that was rewritten, made or taken away."""
    if old is None or new is None:
        return Reversal(path, (_swap(new or b"", 0, len(new or b""), old or b""),), old is None, new is None)
    return reversal_of_splices(path, old, [shortest_splice(old, new)])


def shortest_splice(old: bytes, new: bytes) -> Splice:
    """The one splice that makes `new` of `old`, as short as it can be without cutting a character in two."""
    start, shorter = 0, min(len(old), len(new))
    start = _same(old, new, shorter)
    end = _same(old[::-1], new[::-1], shorter - start)
    while start and not _begins_character(old, new, start):
        start -= 1
    while end and not _begins_character(old[len(old) - end :], new[len(new) - end :], 0):
        end -= 1
    return Splice(start, len(old) - end, new[start : len(new) - end])


def _same(old: bytes, new: bytes, most: int) -> int:
    """How many bytes at the beginning are the same, found by halving."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[:middle] == new[:middle] else (low, middle - 1)
    return low


def _begins_character(old: bytes, new: bytes, at: int) -> bool:
    return all(len(text) == at or text[at] & 0xC0 != 0x80 for text in (old, new))


def _swap(after: bytes, at: int, length: int, back: bytes) -> ByteSwap:
    return ByteSwap(
        at=at,
        length=length,
        hash=content_digest(after[at : at + length]),
        before=after[max(0, at - CONTEXT_BYTES[0]) : at].decode("utf-8", "ignore"),
        after=after[at + length : at + length + CONTEXT_BYTES[0]].decode("utf-8", "ignore"),
        text=back.decode("utf-8"),
    )


def patch_from_reversals(reversals: tuple[Reversal, ...]) -> dict[str, Any]:
    """For `restore`: the newest edit first."""
    return {"edits": [_written(reversal) for reversal in reversals]}


def _written(reversal: Reversal) -> dict[str, Any]:
    marks = {name: True for name in ("created", "removed") if getattr(reversal, name)}
    return {"path": reversal.path, "swaps": [vars(swap) for swap in reversal.swaps], **marks}


def reversals_from_patch(patch: Any) -> tuple[Reversal, ...]:
    """Raises CannotDo for a patch that was not made here."""
    try:
        return tuple(_read(edit) for edit in patch["edits"])
    except (KeyError, TypeError, AttributeError) as error:
        raise EditError("This patch was not made by this editor, so it cannot be taken back here.") from error


def _read(edit: dict[str, Any]) -> Reversal:
    swaps = tuple(
        ByteSwap(int(one["at"]), int(one["length"]), *(str(one[name]) for name in ("hash", "before", "after", "text")))
        for one in edit["swaps"]
    )
    created, removed = edit.get("created") is True, edit.get("removed") is True
    if (created or removed) and len(swaps) != 1:
        raise TypeError("A file that came or went has one swap.")
    return Reversal(str(edit["path"]), swaps, created, removed)
