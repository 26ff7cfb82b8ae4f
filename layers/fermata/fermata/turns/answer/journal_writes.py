"""Build the journal rows of an answer: the edit it reports, or in an undo the marks on earlier edits."""

from collections.abc import Callable, Sequence

from fermata.agents.registry import get_editor_toolset
from fermata.aws.dynamodb_items_and_writes import Write
from fermata.aws.resources import Resources
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.edit_results import EditResult, InverseStep, parse_inverse
from fermata.tools.schema.coercion import InvalidToolInput
from fermata.turns.edit_journal import JournalEdit, build_edit_put, build_mark_put
from fermata.turns.pause import Pause
from fermata.turns.round_call import RoundCall
from fermata.turns.turn_log import LogEntry
from fermata.turns.undo.edit_marks import UndoStep, find_undo_step

MAX_REASON_CHARS = 500
NO_INVERSE_MESSAGE = "The editor reported no inverse for it."
NOT_REACHED_OUTPUT = ToolOutput.failure("Not requested: a call before it failed.")


def prepare_journal_writes(
    resources: Resources, pause: Pause, call: RoundCall, result: EditResult, output: ToolOutput, revision: str
) -> Callable[[LogEntry], Sequence[Write]]:
    """Read what an answer's journal rows depend on, and return a function that builds them for its log entry.

    Args:
        result: The posted result, with the inverse.
        output: What the model reads of it.
        revision: The document's revision after the call; empty when the editor did not report one.
    """
    undo_step = find_undo_step(resources, pause, call)
    if not _is_edit(call, result, output, revision):
        mark_writes = _build_mark_writes(resources, undo_step, output, revision)
        return lambda _log_entry: mark_writes
    inverse_steps, problem = _parse_inverse(pause, result)
    mark_writes = _build_mark_writes(resources, undo_step, output, revision, inverse_steps)
    link = undo_step.link if undo_step and output.ok else None
    answered_at = resources.clock.now_iso()

    def build_writes(log_entry: LogEntry) -> Sequence[Write]:
        edit = JournalEdit(
            effect_key=call.effect_key,
            entry_number=log_entry.first_number,
            round=pause.round,
            call_index=pause.calls.index(call),
            tool_call_id=call.tool_call_id,
            tool_name=call.tool_name,
            input_summary=call.input_summary,
            revision_before=call.request_revision,
            revision_after=revision,
            answered_at=answered_at,
            inverse_problem=problem,
            undo_link=link,
        )
        return (build_edit_put(resources, pause.partition, edit, inverse_steps), *mark_writes)

    return build_writes


def skip_remaining_calls(pause: Pause, failed_call: RoundCall) -> Pause:
    """Return the pause of an undo without requests behind a call that failed, because they build on its effect."""
    skipped = {"runner": "settled", "known_output": NOT_REACHED_OUTPUT, "input": None}
    calls = tuple(
        call if call.is_done or call.effect_key == failed_call.effect_key else call.model_copy(update=skipped)
        for call in pause.calls
    )
    return pause.model_copy(update={"calls": calls})


def _is_edit(call: RoundCall, result: EditResult, output: ToolOutput, revision: str) -> bool:
    """Return whether the document was changed, by an editor that reports inverses or revisions."""
    if not call.is_edit or output.conflict:
        return False
    return result.inverse is not None or (output.ok and bool(revision) and revision != call.request_revision)


def _parse_inverse(pause: Pause, result: EditResult) -> tuple[tuple[InverseStep, ...], str]:
    """Return the inverse and an empty text, or nothing and the problem. The edit is kept in either case."""
    if result.inverse is None or result.inverse == []:
        return (), NO_INVERSE_MESSAGE
    try:
        return parse_inverse(get_editor_toolset(pause.scope), pause.scope, pause.tenant, result.inverse), ""
    except InvalidToolInput as error:
        return (), f"The editor's inverse cannot be used. {error}"[:MAX_REASON_CHARS]


def _build_mark_writes(
    resources: Resources,
    undo_step: UndoStep | None,
    output: ToolOutput,
    revision: str,
    inverse_steps: Sequence[InverseStep] = (),
) -> tuple[Write, ...]:
    if undo_step is None:
        return ()
    if output.ok:
        marks = undo_step.build_success_marks(resources, revision, inverse_steps)
    else:
        marks = (undo_step.build_failure_mark((output.error or "")[:MAX_REASON_CHARS]),)
    return tuple(
        build_mark_put(resources, undo_step.get_partition(placed.turn), placed.edit, placed.mark) for placed in marks
    )
