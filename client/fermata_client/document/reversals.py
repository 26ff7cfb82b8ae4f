"""Reverse an edit byte for byte, also in another process and after other edits of the file (decision 0122)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fermata_client.document.undo_hunk import EditConflictError, UndoHunk, content_digest
from fermata_client.html.edit_error import EditError
from fermata_client.html.splices import Splice, apply_splices


@dataclass(frozen=True)
class Reversal:
    """The reversal of one edit of one file."""

    path: str
    """Empty for the page itself."""
    swaps: tuple[UndoHunk, ...] = ()
    """If the edit created or removed the file, one swap of its whole content."""
    has_created_file: bool = False
    has_removed_file: bool = False

    def apply_to(self, source: bytes | None) -> bytes | None:
        """Return the file as it was before the edit. None is a file that does not exist.

        Raises:
            EditConflictError: what the edit left behind was changed.
        """
        if self.has_removed_file:
            return self._restore_file(source)
        if self.has_created_file:
            if source is not None and content_digest(source) != self.swaps[0].digest:
                raise EditConflictError(f"{self.path} was changed since it was made, so it was kept.")
            return None
        if source is None:
            raise EditConflictError(f"{self.path} does not exist any more, so nothing in it could be undone.")
        splices = (swap.to_splice(source) for swap in self.swaps)
        return apply_splices(source, [splice for splice in splices if splice])

    def _restore_file(self, source: bytes | None) -> bytes:
        content = self.swaps[0].old_text.encode()
        if source not in (None, content):
            raise EditConflictError(f"There is another {self.path} now, so it was not changed.")
        return content


def reversal_of_splices(path: str, source: bytes, splices: Sequence[Splice]) -> Reversal:
    """Return the reversal of splices that are about to be applied to `source`."""
    after = apply_splices(source, splices)
    swaps: list[UndoHunk] = []
    shift = 0
    for splice in sorted(splices, key=lambda splice: (splice.start, splice.end)):
        length = len(splice.text)
        swaps.append(UndoHunk.from_edit(after, splice.start + shift, length, source[splice.start : splice.end]))
        shift += length - (splice.end - splice.start)
    return Reversal(path, tuple(swaps))


def reversal_of_file(path: str, old: bytes | None, new: bytes | None) -> Reversal:
    """Return the reversal of a file's change from `old` to `new`. None is a file that does not exist."""
    if old is None or new is None:
        new_content = new or b""
        swap = UndoHunk.from_edit(new_content, 0, len(new_content), old or b"")
        return Reversal(path, (swap,), has_created_file=old is None, has_removed_file=new is None)
    return reversal_of_splices(path, old, [shortest_splice(old, new)])


def shortest_splice(old: bytes, new: bytes) -> Splice:
    """Return the shortest splice that turns `old` into `new` and cuts no UTF-8 character in two."""
    max_length = min(len(old), len(new))
    start = _common_prefix_length(old, new, max_length)
    suffix_length = _common_prefix_length(old[::-1], new[::-1], max_length - start)
    while start and not _is_character_start(old, new, start):
        start -= 1
    while suffix_length and not _is_character_start(old[-suffix_length:], new[-suffix_length:], 0):
        suffix_length -= 1
    return Splice(start, len(old) - suffix_length, new[start : len(new) - suffix_length])


def _common_prefix_length(old: bytes, new: bytes, max_length: int) -> int:
    """Find the length by bisection."""
    low, high = 0, max_length
    while low < high:
        middle = (low + high + 1) // 2
        if old[:middle] == new[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _is_character_start(old: bytes, new: bytes, position: int) -> bool:
    return all(len(text) == position or text[position] & 0xC0 != 0x80 for text in (old, new))


def patch_from_reversals(reversals: Sequence[Reversal]) -> dict[str, Any]:
    """Return the patch of a `restore` call that applies reversals in their order (decision 0118)."""
    return {"edits": [_reversal_to_wire(reversal) for reversal in reversals]}


def reversals_from_patch(patch: Any) -> tuple[Reversal, ...]:
    """Read the reversals of a patch.

    Raises:
        EditError: `patch_from_reversals` did not make it.
    """
    try:
        return tuple(_reversal_from_wire(edit) for edit in patch["edits"])
    except (KeyError, TypeError, AttributeError) as error:
        raise EditError("This patch was not made by this editor, so it cannot be undone here.") from error


def _reversal_to_wire(reversal: Reversal) -> dict[str, Any]:
    members: dict[str, Any] = {"path": reversal.path, "swaps": [swap.to_wire() for swap in reversal.swaps]}
    if reversal.has_created_file:
        members["created"] = True
    if reversal.has_removed_file:
        members["removed"] = True
    return members


def _reversal_from_wire(edit: dict[str, Any]) -> Reversal:
    swaps = tuple(UndoHunk.from_wire(members) for members in edit["swaps"])
    has_created_file = edit.get("created") is True
    has_removed_file = edit.get("removed") is True
    if (has_created_file or has_removed_file) and len(swaps) != 1:
        raise TypeError("The reversal of a created or removed file has one swap.")
    return Reversal(str(edit["path"]), swaps, has_created_file, has_removed_file)
