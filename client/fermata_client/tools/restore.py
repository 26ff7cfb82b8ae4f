"""`restore`: undo an edit by the inverse call that its result carried (decisions 0118 and 0122)."""

from fermata_client.document.html_document import HtmlDocument
from fermata_client.document.reversals import Reversal, patch_from_reversals, reversals_from_patch
from fermata_client.html.linked_files import linked_file_paths
from fermata_client.service.json_types import JsonObject
from fermata_client.tools.arguments import ToolArguments, optional_object
from fermata_client.tools.tool_function import ToolEffect

RESTORE_TOOL = "restore"


def inverse_calls(before: HtmlDocument, after: HtmlDocument) -> list[JsonObject]:
    """Return the call that undoes the edits from `before` to `after`; none if there are no edits."""
    if (before.source, before.files) == (after.source, after.files):
        return []
    edit_count = len(after.reversals) - len(before.reversals)
    patch = {"was": before.revision, **patch_from_reversals(after.reversals[:edit_count])}
    return [{"tool": RESTORE_TOOL, "input": {"patch": patch}}]


def restore_edits(document: HtmlDocument, arguments: ToolArguments) -> ToolEffect:
    """Apply the reversals of a patch, all or none.

    Raises:
        EditConflictError: what the edits left behind was changed.
    """
    patch = optional_object(arguments, "patch")
    reversals = reversals_from_patch(patch)
    # files that the page does not load are not part of the revision
    unlinked_paths = document.files.keys() - set(linked_file_paths(document.tree))
    has_unlinked_file = any(reversal.path in unlinked_paths for reversal in reversals)
    if patch.get("was") == document.revision and not has_unlinked_file:
        return document, None  # restored before; the result was lost and the call came again
    edited = document
    for reversal in reversals:
        edited = _apply_reversal(edited, reversal)
    return edited, None


def patched_files(arguments: ToolArguments) -> list[str]:
    """Return the paths of the files that a patch changes, without the page."""
    reversals = reversals_from_patch(optional_object(arguments, "patch"))
    return [reversal.path for reversal in reversals if reversal.path]


def _apply_reversal(document: HtmlDocument, reversal: Reversal) -> HtmlDocument:
    if reversal.path:
        return document.with_file(reversal.path, reversal.apply_to(document.files.get(reversal.path)))
    source = reversal.apply_to(document.source)
    assert source is not None
    return document.with_source(source)
