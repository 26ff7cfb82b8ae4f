"""`restore`: takes an edit back, from what its answer said."""

from typing import Any

from fermata_client.document.html_document import HtmlDocument
from fermata_client.document.reversals import Reversal, patch_from_reversals, reversals_from_patch
from fermata_client.html.linked_files import linked_file_paths
from fermata_client.tools.arguments import ToolArguments, optional_object

RESTORE_TOOL = "restore"


def inverse_calls(before: HtmlDocument, after: HtmlDocument) -> list[dict[str, Any]]:
    """The one call that takes back what was done to `before`; none when nothing was."""
    if (before.source, before.files) == (after.source, after.files):
        return []
    count = len(after.reversals) - len(before.reversals)
    patch = {"was": before.revision, **patch_from_reversals(after.reversals[:count])}
    return [{"tool": RESTORE_TOOL, "input": {"patch": patch}}]


def restore_edits(document: HtmlDocument, given: ToolArguments) -> tuple[HtmlDocument, Any]:
    """Raises Touched when something of it was changed meanwhile; then nothing is taken back."""
    patch = optional_object(given, "patch")
    reversals = reversals_from_patch(patch)
    apart = document.files.keys() - set(linked_file_paths(document.tree))  # the revision does not tell what is in them
    if patch.get("was") == document.revision and not any(reversal.path in apart for reversal in reversals):
        return document, None  # asked for again, because the answer was lost
    for reversal in reversals:
        document = _back(document, reversal)
    return document, None


def patched_files(given: ToolArguments) -> list[str]:
    """The files beside the page that a patch speaks of."""
    return [reversal.path for reversal in reversals_from_patch(optional_object(given, "patch")) if reversal.path]


def _back(document: HtmlDocument, reversal: Reversal) -> HtmlDocument:
    if reversal.path:
        return document.with_file(reversal.path, reversal.apply_to(document.files.get(reversal.path)))
    source = reversal.apply_to(document.source)
    assert source is not None
    return document.with_source(source)
