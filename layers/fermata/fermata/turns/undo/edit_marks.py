"""Which edits stand and which are taken back once an undo's call has succeeded, also where it undid an undo.

An edit of a model may go to and fro as often as somebody likes. Whatever undoes it or redoes it is linked to it, so
two marks say how it stands: its own, and that of the edit which was taken back now.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fermata.aws.resources import Resources
from fermata.tools.calls.edit_results import InverseStep
from fermata.turns import edit_journal
from fermata.turns.edit_journal import EditMark, JournalEntry, RedoneStep, UndoLink
from fermata.turns.pause import Pause, RoundCall, UndoTarget
from fermata.turns.turn import TurnPartition


class PlacedMark(NamedTuple):
    turn: str
    edit: str
    mark: EditMark


@dataclass(frozen=True)
class UndoStep:
    """One answered call of an undo: the call `step` of what takes `target` back, of which `done` are applied now."""

    pause: Pause
    undo_target: UndoTarget
    call: RoundCall
    journal_entry: JournalEntry
    step: int
    undone_steps: int

    def partition_of_turn(self, turn: str) -> TurnPartition:
        return TurnPartition(self.pause.tenant, turn, self.pause.expires)

    @property
    def link(self) -> UndoLink | None:
        """What the call's own edit is to the one a model made. One of several calls that redo does not stand for it."""
        known = self.journal_entry.edit.link
        if known is None:
            return UndoLink(turn=self.undo_target.turn, edit=self.journal_entry.key, step=self.step)
        return known.model_copy(update={"redoes": not known.redoes}) if len(self.journal_entry.tools) == 1 else None

    def build_mark(self, revision: str, reason: str = "") -> PlacedMark:
        """Of what was to be taken back. As long as nothing of it was, it stands as it was redone."""
        old = self.journal_entry.mark
        made = EditMark(
            by=self.pause.turn,
            done=self.undone_steps,
            first=self.undo_target.first,
            reason=reason,
            revision=revision,
            redone=old.redone if old and old.done == self.undone_steps else "",
            tips=tuple(tip for tip in self.journal_entry.redone_steps if tip.step >= self.undone_steps),
        )
        return PlacedMark(self.undo_target.turn, self.journal_entry.key, made)

    def build_success_marks(
        self, resources: Resources, revision: str, inverse_steps: Sequence[InverseStep]
    ) -> tuple[PlacedMark, ...]:
        """`steps`: the inverse of the call itself."""
        link = self.journal_entry.edit.link
        other = (
            self._of_tip(resources, revision)
            if link is None
            else self._of_origin(resources, link, revision, inverse_steps)
        )
        return (self.build_mark(revision), *([other] if other else []))

    def _of_tip(self, resources: Resources, revision: str) -> PlacedMark | None:
        """What had redone it is taken back with it."""
        tip = next((tip for tip in self.journal_entry.redone_steps if tip.step == self.step), None)
        made = edit_journal.find_journal_entry(resources, self.pause.tenant, tip.turn, tip.edit) if tip else None
        if tip is None or made is None:
            return None
        mark = EditMark(by=self.pause.turn, done=len(made.tools), first=made.undone_steps, revision=revision)
        return PlacedMark(tip.turn, tip.edit, mark)

    def _of_origin(
        self, resources: Resources, link: UndoLink, revision: str, steps: Sequence[InverseStep]
    ) -> PlacedMark | None:
        """The edit a model made stands again, or is taken back again."""
        origin = edit_journal.find_journal_entry(resources, self.pause.tenant, link.turn, link.edit)
        stood = link.step if link.redoes else link.step + 1
        if origin is None or origin.undone_steps != stood or self.undone_steps < len(self.journal_entry.tools):
            return None
        tips = tuple(tip for tip in origin.redone_steps if tip.step != link.step)
        by = self.pause.turn
        if link.redoes:
            return PlacedMark(
                link.turn, link.edit, EditMark(by=by, done=stood + 1, first=stood, revision=revision, tips=tips)
            )
        tip = self._tip(link.step, steps)
        mark = EditMark(by=by, done=link.step, first=link.step, revision=revision, redone=by, tips=(*tips, tip))
        return PlacedMark(link.turn, link.edit, mark)

    def _tip(self, step: int, steps: Sequence[InverseStep]) -> RedoneStep:
        key = edit_journal.build_edit_key(self.pause.round, self.pause.calls.index(self.call))
        tool = steps[0].tool if len(steps) == 1 and len(self.journal_entry.tools) == 1 else ""
        return RedoneStep(step=step, turn=self.pause.turn, edit=key, tool=tool)


def find_undo_step(resources: Resources, pause: Pause, call: RoundCall, has_succeeded: bool) -> UndoStep | None:
    """None where nothing is taken back."""
    taken = pause.takes_back
    target = edit_journal.find_journal_entry(resources, pause.tenant, taken.turn, taken.edit) if taken else None
    if taken is None or target is None:
        return None
    done = taken.first + sum(one.is_done for one in pause.calls)
    return UndoStep(pause, taken, call, target, step=done, undone_steps=done + has_succeeded)
