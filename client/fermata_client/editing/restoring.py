"""`restore`: takes an edit back, from what its answer said."""

from typing import Any

from fermata_client.editing import given as read
from fermata_client.editing.given import Given
from fermata_client.html.linking import local_paths
from fermata_client.html.way_back import Reversal, as_patch, from_patch
from fermata_client.html_document import HtmlDocument

RESTORE = "restore"


def inverse_of(before: HtmlDocument, after: HtmlDocument) -> list[dict[str, Any]]:
    """The one call that takes back what was done to `before`; none when nothing was."""
    if (before.source, before.files) == (after.source, after.files):
        return []
    count = len(after.reversals) - len(before.reversals)
    patch = {"was": before.revision, **as_patch(after.reversals[:count])}
    return [{"tool": RESTORE, "input": {"patch": patch}}]


def restore(document: HtmlDocument, given: Given) -> tuple[HtmlDocument, Any]:
    """Raises Touched when something of it was changed meanwhile; then nothing is taken back."""
    patch = read.members(given, "patch")
    reversals = from_patch(patch)
    apart = document.files.keys() - set(local_paths(document.page))  # the revision does not tell what is in them
    if patch.get("was") == document.revision and not any(reversal.path in apart for reversal in reversals):
        return document, None  # asked for again, because the answer was lost
    for reversal in reversals:
        document = _back(document, reversal)
    return document, None


def files_in(given: Given) -> list[str]:
    """The files beside the page that a patch speaks of."""
    return [reversal.path for reversal in from_patch(read.members(given, "patch")) if reversal.path]


def _back(document: HtmlDocument, reversal: Reversal) -> HtmlDocument:
    if reversal.path:
        return document.with_file(reversal.path, reversal.applied(document.files.get(reversal.path)))
    source = reversal.applied(document.source)
    assert source is not None
    return document.restored(source)
