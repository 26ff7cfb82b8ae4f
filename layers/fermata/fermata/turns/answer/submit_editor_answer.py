"""Accept what an open editor answers to the call of an assistant, within the limits that results of turns have."""

from typing import Any

from fermata.aws.lazy_snapshot import LazySnapshot
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.editor_bridge.editor_call import answer_editor_call
from fermata.editor_bridge.open_editors import read_editor, store_editor_snapshot
from fermata.tools.calls.edit_results import parse_edit_result
from fermata.tools.calls.pipeline import limit_output
from fermata.tools.tool import ResultPolicy
from fermata.turns.answer.normalize_result_images import (
    fetch_uploaded_images,
    identify_uploaded_images,
    normalize_result_images,
)
from fermata.turns.pause import hash_result


def submit_editor_answer(
    resources: Resources,
    caller: Caller,
    editor_id: str,
    request_id: str,
    posted: Any,
    snapshot: LazySnapshot | None = None,
) -> None:
    """Store an answer. The same answer again changes nothing.

    Args:
        caller: Whose editor answers.
        editor_id: The bridge id of the editor.
        request_id: The call.
        posted: A ToolOutput as JSON.
        snapshot: What the editor shows now; None if it has sent none.

    Raises:
        EditorCallGone: The call is not open, or not the caller's.
        Forbidden: The caller may not answer it.
        Conflict: It was answered otherwise.
        ApiError: The snapshot or an uploaded image cannot be fetched.
    """
    editor = read_editor(resources, caller.tenant, caller.user, editor_id) if snapshot else None
    if editor and snapshot:  # before the answer, so that whoever reads the answer finds it
        store_editor_snapshot(resources, editor, snapshot)
    result = parse_edit_result(fetch_uploaded_images(resources, caller, posted))
    output = limit_output(ResultPolicy(), normalize_result_images(result.output))
    answer_hash = hash_result(identify_uploaded_images(posted))
    answer_editor_call(resources, caller, editor_id, request_id, output, answer_hash)
