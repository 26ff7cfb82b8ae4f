"""The rounds of an undo: each asks the editor for the inverse of one edit, the newest first; then the undo is done."""

from dataclasses import dataclass

from fermata.tools.editing import Step, find
from fermata.tools.names import wire_name
from fermata.tools.pipeline import effect_key, wait_seconds
from fermata.turns import journal
from fermata.turns import pause as pauses
from fermata.turns.commits import Commit
from fermata.turns.ending import end
from fermata.turns.journal import Entry
from fermata.turns.pause import Call, Pause, TakenBack
from fermata.turns.progress import settle
from fermata.turns.undone import obstacle
from fermata.turns.work import Work
from fermata.words.events import Done, RoundStarted, ToolCall


@dataclass(frozen=True)
class Next:
    """The edit to take back now, and what the document is expected to be at."""

    entry: Entry
    planned: str


def take_back(work: Work) -> bool:
    """Ask for the next inverse, or end; raises Moved when somebody else went on."""
    seen = work.log.standing
    found = _next(work)
    if found is None:
        end(work.desk, work.turn, work.log, Done(), expect=lambda now: now == seen)
        return True
    pause = _pause(work, found)
    progress = settle(pause, {}, now=work.desk.clock.time(), nonce=work.nonce())
    began = RoundStarted(round=pause.round, epoch=work.wake.epoch, owner=work.wake.owner)
    told = (
        ToolCall(tool_call_id=call.tool_call_id, tool_name=call.tool_name, input=call.input) for call in pause.calls
    )
    work.commit(Commit.of(pause, progress=progress, events=(began, *told)))
    return True


def _next(work: Work) -> Next | None:
    """The newest edit below the one that was seen to last, as far as this undo goes."""
    turn, last = work.turn, work.log.standing.edit
    newer: Entry | None = None
    for entry in journal.downwards(work.desk, turn.tenant, turn.undoes, last):
        if entry.key < turn.through:
            return None
        if entry.key != last and entry.state != "undone" and not obstacle(turn, entry):
            return Next(entry, _planned(turn.id, entry, newer))
        newer = entry
    return None


def _planned(undo: str, entry: Entry, newer: Entry | None) -> str:
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


def _pause(work: Work, found: Next) -> Pause:
    turn, entry, round_ = work.turn, found.entry, work.log.standing.round + 1
    steps = journal.steps(work.desk, turn.tenant, entry)[entry.done :]
    calls = [_call(work, round_, index, step) for index, step in enumerate(steps)]
    taken = TakenBack(
        turn=turn.undoes,
        edit=entry.key,
        effect_key=entry.edit.effect_key,
        first=entry.done,
        of=len(entry.tools),
    )
    pause = pauses.fresh(turn, round_, calls, found.planned, taken)
    return pause.waited_for(work.wake.token, work.wake.epoch)


def _call(work: Work, round_: int, index: int, step: Step) -> Call:
    tool, usual = find(work.turn.scope, step.tool), work.desk.settings.browser_wait_seconds
    return Call(
        tool_call_id=f"undo-{round_}-{index}",
        tool_name=wire_name(tool, work.names) if tool else step.tool,
        runner="browser",
        mutates=True,
        effect_key=effect_key(work.turn.id, round_, index),
        wait_seconds=wait_seconds(tool, usual) if tool else usual,
        input=step.input,
    )
