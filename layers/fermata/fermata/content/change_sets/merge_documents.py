"""Merge what two sides have made of a document, also if one of them has deleted it."""

from collections.abc import Collection
from typing import Any, NamedTuple

from fermata.content.change_sets.merge_contents import FieldConflict, Preference, merge_contents
from fermata.content.documents.document import DocumentContent

WHOLE_DOCUMENT = "document"
"""The path of a conflict about whether a document exists."""
_EMPTY = DocumentContent()


class MergedDocument(NamedTuple):
    """What becomes of a document: its content (None deletes it), or conflicts.

    Attributes:
        is_unchanged: Whether it stays as it is stored.
    """

    content: DocumentContent | None = None
    is_unchanged: bool = False
    conflicts: tuple[FieldConflict, ...] = ()


def merge_documents(
    before: DocumentContent | None,
    theirs: DocumentContent | None,
    ours: DocumentContent | None,
    prefer: Preference | None = None,
    nested: Collection[str] = (),
) -> MergedDocument:
    """Merge two contents of a document. None is one that does not exist.

    Args:
        before: What both have begun with.
        theirs: What is stored by now.
        ours: What the other side makes of it.
        prefer: Whose values count in a conflict; without it, conflicts are listed.
        nested: As in `merge_contents`.
    """
    if ours in (theirs, before):
        return MergedDocument(theirs, is_unchanged=True)
    if theirs == before:
        return MergedDocument(ours)
    if ours is None or theirs is None:
        if prefer is None:
            conflict = FieldConflict(WHOLE_DOCUMENT, _name_state(before), _name_state(theirs), _name_state(ours))
            return MergedDocument(conflicts=(conflict,))
        return MergedDocument(ours) if prefer == "ours" else MergedDocument(theirs, is_unchanged=True)
    merged = merge_contents(before or _EMPTY, theirs, ours, prefer, nested)
    if merged.conflicts:
        return MergedDocument(conflicts=merged.conflicts)
    return MergedDocument(merged.content, is_unchanged=merged.content == theirs)


def _name_state(content: DocumentContent | None) -> Any:
    return "deleted" if content is None else "changed"
