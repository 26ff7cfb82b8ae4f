"""What an answer leaves besides its result: an edit in the journal; in an undo, marks on what it took back."""

from collections.abc import Callable, Sequence

from fermata.aws.desk import Desk
from fermata.aws.dynamo import Write
from fermata.tools.coerce import InvalidInput
from fermata.tools.editing import Step, Told, read_inverse
from fermata.turns import journal, redoing
from fermata.turns.journal import Edit
from fermata.turns.log import Entry
from fermata.turns.pause import Call, Pause
from fermata.turns.redoing import Taking
from fermata.words.tools import ToolOutput

MOST_REASON = 500
NO_WAY_BACK = "The editor gave no way back for it."
NOT_REACHED = ToolOutput.failed("Not asked for: a call before it failed.")


def writes(
    desk: Desk, pause: Pause, call: Call, told: Told, output: ToolOutput, revision: str
) -> Callable[[Entry], Sequence[Write]]:
    """The writes that must be true together with an answer; `revision` is what the document is at after it."""
    taking = redoing.taking(desk, pause, call, output.ok)
    if not _is_an_edit(call, told, output, revision):
        marks = _marks(desk, taking, output, revision)
        return lambda _made: marks
    steps, problem = _way_back(pause, told)
    marks, link = _marks(desk, taking, output, revision, steps), taking.link if taking and output.ok else None
    at = desk.clock.instant()

    def both(made: Entry) -> Sequence[Write]:
        edit = Edit(
            effect_key=call.effect_key,
            seq=made.first,
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
        return (journal.put(desk, pause.place, edit, steps), *marks)

    return both


def give_up_the_rest(pause: Pause, call: Call) -> Pause:
    """The calls behind one that failed were meant to follow what it did: they are not asked for."""
    left_out = {"runner": "settled", "output": NOT_REACHED, "input": None}
    calls = tuple(
        one if one.is_done or one.effect_key == call.effect_key else one.model_copy(update=left_out)
        for one in pause.calls
    )
    return pause.model_copy(update={"calls": calls})


def _is_an_edit(call: Call, told: Told, output: ToolOutput, revision: str) -> bool:
    """Something that changed the document, by an editor that tells of it."""
    if not call.mutates or output.conflict:
        return False
    return told.inverse is not None or (output.ok and bool(revision) and revision != call.revision)


def _way_back(pause: Pause, told: Told) -> tuple[tuple[Step, ...], str]:
    if told.inverse is None or told.inverse == []:
        return (), NO_WAY_BACK
    try:
        return read_inverse(pause.scope, pause.tenant, told.inverse), ""
    except InvalidInput as fault:
        return (), f"The editor's inverse cannot be used. {fault}"[:MOST_REASON]


def _marks(
    desk: Desk, taking: Taking | None, output: ToolOutput, revision: str, steps: Sequence[Step] = ()
) -> tuple[Write, ...]:
    if taking is None:
        return ()
    if output.ok:
        made = taking.succeeded(desk, revision, steps)
    else:
        made = (taking.mark(taking.pause.planned, (output.error or "")[:MOST_REASON]),)
    return tuple(journal.mark(desk, taking.place(one.turn), one.edit, one.mark) for one in made)
