"""What an answer leaves besides its result: an edit in the journal; in an undo, marks on what it took back."""

from collections.abc import Callable, Sequence

from fermata.aws.dynamodb import Write
from fermata.aws.resources import Resources
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.edit_results import EditResult, InverseStep, parse_inverse
from fermata.tools.schema.coercion import InvalidToolInput
from fermata.turns import edit_journal
from fermata.turns.edit_journal import JournalEdit
from fermata.turns.pause import Pause, RoundCall
from fermata.turns.turn_log import LogEntry
from fermata.turns.undo import edit_marks
from fermata.turns.undo.edit_marks import UndoStep

MAX_REASON_CHARS = 500
NO_INVERSE_MESSAGE = "The editor gave no way back for it."
NOT_REACHED_OUTPUT = ToolOutput.failure("Not asked for: a call before it failed.")


def journal_writes_builder(
    resources: Resources, pause: Pause, call: RoundCall, told: EditResult, output: ToolOutput, revision: str
) -> Callable[[LogEntry], Sequence[Write]]:
    """The writes that must be true together with an answer; `revision` is what the document is at after it."""
    taking = edit_marks.find_undo_step(resources, pause, call, output.ok)
    if not _is_an_edit(call, told, output, revision):
        marks = _marks(resources, taking, output, revision)
        return lambda _made: marks
    steps, problem = _way_back(pause, told)
    marks, link = _marks(resources, taking, output, revision, steps), taking.link if taking and output.ok else None
    at = resources.clock.now_iso()

    def both(made: LogEntry) -> Sequence[Write]:
        edit = JournalEdit(
            effect_key=call.effect_key,
            seq=made.first_number,
            round=pause.round,
            call=pause.calls.index(call),
            tool_call_id=call.tool_call_id,
            tool_name=call.tool_name,
            input=call.summary,
            revision_before=call.revision,
            revision_after=revision,
            at=at,
            problem=problem,
            link=link,
        )
        return (edit_journal.build_edit_put(resources, pause.partition, edit, steps), *marks)

    return both


def skip_remaining_calls(pause: Pause, call: RoundCall) -> Pause:
    """The calls behind one that failed were meant to follow what it did: they are not asked for."""
    left_out = {"runner": "settled", "output": NOT_REACHED_OUTPUT, "input": None}
    calls = tuple(
        one if one.is_done or one.effect_key == call.effect_key else one.model_copy(update=left_out)
        for one in pause.calls
    )
    return pause.model_copy(update={"calls": calls})


def _is_an_edit(call: RoundCall, told: EditResult, output: ToolOutput, revision: str) -> bool:
    """Something that changed the document, by an editor that tells of it."""
    if not call.mutates or output.conflict:
        return False
    return told.inverse is not None or (output.ok and bool(revision) and revision != call.revision)


def _way_back(pause: Pause, told: EditResult) -> tuple[tuple[InverseStep, ...], str]:
    if told.inverse is None or told.inverse == []:
        return (), NO_INVERSE_MESSAGE
    try:
        return parse_inverse(pause.scope, pause.tenant, told.inverse), ""
    except InvalidToolInput as fault:
        return (), f"The editor's inverse cannot be used. {fault}"[:MAX_REASON_CHARS]


def _marks(
    resources: Resources, taking: UndoStep | None, output: ToolOutput, revision: str, steps: Sequence[InverseStep] = ()
) -> tuple[Write, ...]:
    if taking is None:
        return ()
    if output.ok:
        made = taking.build_success_marks(resources, revision, steps)
    else:
        made = (taking.build_mark(taking.pause.planned, (output.error or "")[:MAX_REASON_CHARS]),)
    return tuple(
        edit_journal.build_mark_put(resources, taking.partition_of_turn(one.turn), one.edit, one.mark) for one in made
    )
