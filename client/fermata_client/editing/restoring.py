"""`restore`: takes an edit back, from what its answer said."""

from typing import Any

from fermata_client.editing import given as read
from fermata_client.editing.given import Given
from fermata_client.html.way_back import Reversal, as_patch, from_patch
from fermata_client.html_document import HtmlDocument

RESTORE = "restore"


def inverse_of(reversals: tuple[Reversal, ...]) -> list[dict[str, Any]]:
    """The one call that takes an edit back."""
    return [{"tool": RESTORE, "input": {"patch": as_patch(reversals)}}]


def restore(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    """Raises Touched when something of it was changed meanwhile; then nothing is taken back."""
    for reversal in from_patch(read.members(given, "patch")):
        document = _back(document, reversal)
    return document, None


def _back(document: HtmlDocument, reversal: Reversal) -> HtmlDocument:
    if reversal.path:
        return document.with_file(reversal.path, reversal.applied(document.files.get(reversal.path)))
    source = reversal.applied(document.source)
    assert source is not None
    return document.restored(source)
