"""Compute the marks that an answered call of an undo leaves on edits, also where the undo undid an undo.

Whatever undoes or redoes an edit of a model is linked to that edit (decision 0119). An answer therefore changes at most
two marks: that of the edit which was undone now, and that of the edit which this redoes or no longer redoes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fermata.aws.resources import Resources
from fermata.tools.calls.edit_results import InverseStep
from fermata.turns.edit_journal import (
    EditMark,
    JournalEntry,
    RedoneStep,
    UndoLink,
    build_edit_key,
    find_journal_entry,
)
from fermata.turns.pause import Pause, RoundCall, UndoTarget
from fermata.turns.turn import TurnPartition


class PlacedMark(NamedTuple):
    """A mark, and the edit that it belongs to."""

    turn: str
    edit: str
    mark: EditMark


@dataclass(frozen=True)
class UndoStep:
    """One answered call of an undo."""

    pause: Pause
    undo_target: UndoTarget
    call: RoundCall
    target_entry: JournalEntry
    """The edit that is undone."""
    step: int
    """Index of the call in the edit's inverse."""
    undone_steps: int
    """Calls of the inverse that are applied after this one."""

    def get_partition(self, turn: str) -> TurnPartition:
        """Return the partition of a turn's rows. They expire with this undo's."""
        return TurnPartition(self.pause.tenant, turn, self.pause.expires)

    @property
    def link(self) -> UndoLink | None:
        """Link of the edit that this call makes; None if it is one of several calls that redo an edit together."""
        target_link = self.target_entry.edit.link
        if target_link is None:
            return UndoLink(turn=self.undo_target.turn, edit=self.target_entry.key, step=self.step)
        if len(self.target_entry.inverse_tools) != 1:
            return None
        return target_link.model_copy(update={"redoes": not target_link.redoes})

    def build_mark(self, revision: str, reason: str = "") -> PlacedMark:
        """Return the mark of the edit that is undone. It stays redone as long as none of its calls was applied."""
        old_mark = self.target_entry.mark
        mark = EditMark(
            by=self.pause.turn,
            done=self.undone_steps,
            first=self.undo_target.first,
            reason=reason,
            revision=revision,
            redone=old_mark.redone if old_mark and old_mark.done == self.undone_steps else "",
            tips=tuple(redone for redone in self.target_entry.redone_steps if redone.step >= self.undone_steps),
        )
        return PlacedMark(self.undo_target.turn, self.target_entry.key, mark)

    def build_success_marks(
        self, resources: Resources, revision: str, inverse_steps: Sequence[InverseStep]
    ) -> tuple[PlacedMark, ...]:
        """Return the marks after a call that succeeded.

        Args:
            revision: The document's revision after the call.
            inverse_steps: The inverse of the call itself.
        """
        link = self.target_entry.edit.link
        if link is None:
            linked_mark = self._build_redo_mark(resources, revision)
        else:
            linked_mark = self._build_model_edit_mark(resources, link, revision, inverse_steps)
        return (self.build_mark(revision), *([linked_mark] if linked_mark else []))

    def _build_redo_mark(self, resources: Resources, revision: str) -> PlacedMark | None:
        """Mark the edit that had redone this step: it is undone along with it."""
        redone = next((redone for redone in self.target_entry.redone_steps if redone.step == self.step), None)
        if redone is None:
            return None
        redo_entry = find_journal_entry(resources, self.pause.tenant, redone.turn, redone.edit)
        if redo_entry is None:
            return None
        mark = EditMark(
            by=self.pause.turn,
            done=len(redo_entry.inverse_tools),
            first=redo_entry.undone_steps,
            revision=revision,
        )
        return PlacedMark(redone.turn, redone.edit, mark)

    def _build_model_edit_mark(
        self, resources: Resources, link: UndoLink, revision: str, inverse_steps: Sequence[InverseStep]
    ) -> PlacedMark | None:
        """Mark the model's edit behind an undo's edit: it is redone, or with `link.redoes` undone again."""
        model_entry = find_journal_entry(resources, self.pause.tenant, link.turn, link.edit)
        expected_steps = link.step if link.redoes else link.step + 1
        if model_entry is None or model_entry.undone_steps != expected_steps:
            return None
        if self.undone_steps < len(self.target_entry.inverse_tools):
            return None
        other_redone = tuple(redone for redone in model_entry.redone_steps if redone.step != link.step)
        undo_turn = self.pause.turn
        if link.redoes:
            mark = EditMark(
                by=undo_turn, done=expected_steps + 1, first=expected_steps, revision=revision, tips=other_redone
            )
        else:
            mark = EditMark(
                by=undo_turn,
                done=link.step,
                first=link.step,
                revision=revision,
                redone=undo_turn,
                tips=(*other_redone, self._build_redone_step(link.step, inverse_steps)),
            )
        return PlacedMark(link.turn, link.edit, mark)

    def _build_redone_step(self, step: int, inverse_steps: Sequence[InverseStep]) -> RedoneStep:
        edit_key = build_edit_key(self.pause.round, self.pause.calls.index(self.call))
        is_single_call = len(inverse_steps) == 1 and len(self.target_entry.inverse_tools) == 1
        tool = inverse_steps[0].tool if is_single_call else ""
        return RedoneStep(step=step, turn=self.pause.turn, edit=edit_key, tool=tool)


def find_undo_step(resources: Resources, pause: Pause, call: RoundCall, has_succeeded: bool) -> UndoStep | None:
    """Return the step that an answer to `call` completes, or None when the turn is no undo."""
    undo_target = pause.takes_back
    if undo_target is None:
        return None
    target_entry = find_journal_entry(resources, pause.tenant, undo_target.turn, undo_target.edit)
    if target_entry is None:
        return None
    step = undo_target.first + sum(pause_call.is_done for pause_call in pause.calls)
    return UndoStep(pause, undo_target, call, target_entry, step=step, undone_steps=step + has_succeeded)
