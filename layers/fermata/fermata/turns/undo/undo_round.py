"""The rounds of an undo: each asks the editor for the inverse of one edit, the newest first; then the undo is done."""

from dataclasses import dataclass

from fermata.domain.events import DoneEvent, RoundStartedEvent, ToolCallEvent
from fermata.tools.calls.edit_results import InverseStep, find_edit_tool
from fermata.tools.calls.pipeline import build_effect_key, get_timeout_seconds
from fermata.tools.tool_names import get_wire_name
from fermata.turns import edit_journal
from fermata.turns.commits import RoundCommit
from fermata.turns.edit_journal import JournalEntry
from fermata.turns.end.end_turn import end_turn
from fermata.turns.pause import Pause, RoundCall, UndoTarget, build_pause
from fermata.turns.round.turn_context import TurnContext
from fermata.turns.transitions import apply_outputs
from fermata.turns.undo.undo_report import find_undo_obstacle


@dataclass(frozen=True)
class NextInverse:
    """The edit to take back now, and what the document is expected to be at."""

    entry: JournalEntry
    planned_revision: str


def run_undo_round(context: TurnContext) -> bool:
    """Ask for the next inverse, or end; raises Moved when somebody else went on."""
    seen = context.log.state
    found = _next(context)
    if found is None:
        end_turn(context.resources, context.turn, context.log, DoneEvent(), is_expected=lambda now: now == seen)
        return True
    pause = _pause(context, found)
    progress = apply_outputs(pause, {}, now=context.resources.clock.time(), nonce=context.new_nonce())
    began = RoundStartedEvent(round=pause.round, epoch=context.invocation.epoch, owner=context.invocation.owner)
    told = (
        ToolCallEvent(tool_call_id=call.tool_call_id, tool_name=call.tool_name, input=call.input)
        for call in pause.calls
    )
    context.commit(RoundCommit.for_pause(pause, progress=progress, events=(began, *told)))
    return True


def _next(work: TurnContext) -> NextInverse | None:
    """The newest edit below the one that was seen to last, as far as this undo goes."""
    turn, last = work.turn, work.log.state.edit
    newer: JournalEntry | None = None
    for entry in edit_journal.iter_journal_newest_first(work.resources, turn.tenant, turn.undoes, last):
        if entry.key < turn.through:
            return None
        if entry.key != last and entry.state != "undone" and not find_undo_obstacle(turn, entry):
            return NextInverse(entry, _planned(turn.id, entry, newer))
        newer = entry
    return None


def _planned(undo: str, entry: JournalEntry, newer: JournalEntry | None) -> str:
    """What the edit left behind. Where it was redone, or the edit behind it was taken back, the document may be called
    otherwise now; of both, what this undo did is the latest.
    """
    mark, left = entry.mark, entry.edit.revision_after
    if mark and mark.done:
        return mark.revision or left
    redone = mark.revision if mark and mark.redone else ""
    follows = newer is not None and newer.edit.revision_before == left
    if newer and follows and newer.state == "undone" and newer.mark and (newer.mark.by == undo or not redone):
        return newer.mark.revision or redone or left
    return redone or left


def _pause(work: TurnContext, found: NextInverse) -> Pause:
    turn, entry, round_ = work.turn, found.entry, work.log.state.round + 1
    steps = edit_journal.load_inverse_steps(work.resources, turn.tenant, entry)[entry.undone_steps :]
    calls = [_call(work, round_, index, step) for index, step in enumerate(steps)]
    taken = UndoTarget(
        turn=turn.undoes,
        edit=entry.key,
        effect_key=entry.edit.effect_key,
        first=entry.undone_steps,
        of=len(entry.tools),
    )
    pause = build_pause(turn, round_, calls, found.planned_revision, taken)
    return pause.with_token(work.invocation.token, work.invocation.epoch)


def _call(work: TurnContext, round_: int, index: int, step: InverseStep) -> RoundCall:
    tool, usual = find_edit_tool(work.turn.scope, step.tool), work.resources.settings.browser_wait_seconds
    return RoundCall(
        tool_call_id=f"undo-{round_}-{index}",
        tool_name=get_wire_name(tool, work.tool_names) if tool else step.tool,
        runner="browser",
        mutates=True,
        effect_key=build_effect_key(work.turn.id, round_, index),
        wait_seconds=get_timeout_seconds(tool, usual) if tool else usual,
        input=step.input,
    )
