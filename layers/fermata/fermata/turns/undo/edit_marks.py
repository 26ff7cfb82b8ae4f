"""Compute the marks that an answered call of an undo leaves on edits, also where the undo undid an undo.

An edit that an undo made is linked to the edit whose inverse it has applied or redone (`UndoLink`). What an answer
changes about one edit it therefore also changes about the edit behind it, up to the edit of a model (decision 0155).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fermata.aws.resources import Resources
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.calls.edit_results import InverseStep
from fermata.turns.edit_journal import (
    EditMark,
    JournalEntry,
    StepMark,
    StepState,
    UndoLink,
    build_edit_key,
    find_journal_entry,
)
from fermata.turns.pause import Pause
from fermata.turns.round_call import RoundCall
from fermata.turns.turn import TurnPartition
from fermata.turns.undo.inverse_plan import iter_replaced_edits


class PlacedMark(NamedTuple):
    """A mark, and the edit that it belongs to."""

    turn: str
    edit: str
    mark: EditMark


@value_dataclass(frozen=True)
class UndoStep:
    """One answered call of an undo: call `step` of the inverse of `target_entry`."""

    pause: Pause
    call: RoundCall
    undone_entry: JournalEntry
    """The edit that the round undoes."""
    target_entry: JournalEntry
    """This edit, or an edit that redid a part of it."""
    step: int

    def get_partition(self, turn: str) -> TurnPartition:
        """Return the partition of a turn's rows. They expire with this undo's."""
        return TurnPartition(self.pause.tenant, turn, self.pause.expires)

    @property
    def link(self) -> UndoLink:
        """Link of the edit that this call makes."""
        target = self.target_entry
        if target.edit.undo_link and len(target.inverse_tools) == 1:
            return target.edit.undo_link.model_copy(update={"is_redo": not target.edit.undo_link.is_redo})
        return UndoLink(turn=target.turn, edit_key=target.key, step=self.step)

    def build_failure_mark(self, reason: str) -> PlacedMark:
        """Return the mark of the edit that was to be undone. It stays redone, as no call was applied."""
        old_mark = self.undone_entry.mark
        return self._place(
            self.undone_entry,
            EditMark(
                marking_turn=self.pause.turn,
                has_begun=self._has_begun(old_mark),
                steps=old_mark.steps if old_mark else (),
                skip_reason=reason,
                revision_after=self.pause.planned_on_revision,
                last_redo_turn=old_mark.last_redo_turn if old_mark else "",
            ),
        )

    def build_success_marks(
        self, resources: Resources, revision: str, inverse_steps: Sequence[InverseStep]
    ) -> tuple[PlacedMark, ...]:
        """Return the marks after a call that succeeded.

        Args:
            revision: The document's revision after the call.
            inverse_steps: The inverse of the call itself.
        """
        applied = self._build_step_mark(self.step, "applied")
        mark = self._build_mark(self.target_entry, applied, revision)
        marks = [
            self._place(self.target_entry, mark),
            *self._build_link_marks(resources, self.target_entry.with_mark(mark), revision, inverse_steps),
            *self._build_replaced_marks(resources, revision),
        ]
        return tuple(marks)

    def _build_link_marks(
        self, resources: Resources, changed_entry: JournalEntry, revision: str, inverse_steps: Sequence[InverseStep]
    ) -> Iterator[PlacedMark]:
        """Mark the edits behind the one that is undone. Each is redone, or undone again, as far as the other is not."""
        is_redo = False
        while link := changed_entry.edit.undo_link:
            linked_entry = find_journal_entry(resources, self.pause.tenant, link.turn, link.edit_key)
            if linked_entry is None or not _is_holder(changed_entry, linked_entry.steps[link.step]):
                return
            is_redo ^= not link.is_redo
            step_mark = self._build_linked_step_mark(changed_entry, link, inverse_steps)
            mark = self._build_mark(linked_entry, step_mark, revision, is_redo=is_redo)
            yield self._place(linked_entry, mark)
            changed_entry = linked_entry.with_mark(mark)

    def _build_linked_step_mark(
        self, changed_entry: JournalEntry, link: UndoLink, inverse_steps: Sequence[InverseStep]
    ) -> StepMark:
        if len(changed_entry.inverse_tools) == 1:  # this call has changed it as a whole, and takes its place
            if link.is_redo:
                return self._build_step_mark(link.step, "applied")
            tool = inverse_steps[0].tool if len(inverse_steps) == 1 else ""
            return self._build_step_mark(link.step, "open", is_redo=True, tool=tool)
        return StepMark(
            step=link.step,
            state=_get_step_state(changed_entry, link),
            turn=changed_entry.turn,
            edit_key=changed_entry.key,
            is_redo=link.is_redo,
        )

    def _build_replaced_marks(self, resources: Resources, revision: str) -> Iterator[PlacedMark]:
        """Mark edits as undone that had redone this call and cannot be undone any more, because it was repeated."""
        old_step = self.target_entry.steps[self.step]
        for entry in iter_replaced_edits(resources, self.pause.tenant, self.target_entry, old_step):
            steps = tuple(StepMark(step=step) for step, _ in enumerate(entry.inverse_tools))
            yield self._place(entry, EditMark(marking_turn=self.pause.turn, steps=steps, revision_after=revision))

    def _build_mark(
        self, entry: JournalEntry, step_mark: StepMark, revision: str, *, is_redo: bool = False
    ) -> EditMark:
        old_mark = entry.mark or EditMark(marking_turn="")
        mark = EditMark(
            marking_turn=self.pause.turn,
            has_begun=not is_redo or self._has_begun(old_mark),
            steps=old_mark.steps,
            revision_after=revision,
            last_redo_turn=self.pause.turn if is_redo else "",
        )
        return mark.with_step(step_mark)

    def _build_step_mark(self, step: int, state: StepState, *, is_redo: bool = False, tool: str = "") -> StepMark:
        """Return the mark of a call whose state this answer's edit holds."""
        edit_key = build_edit_key(self.pause.round, self.pause.calls.index(self.call))
        return StepMark(
            step=step, state=state, turn=self.pause.turn, edit_key=edit_key, is_redo=is_redo, newer_inverse_tool=tool
        )

    def _has_begun(self, old_mark: EditMark | None) -> bool:
        return old_mark is not None and old_mark.marking_turn == self.pause.turn and old_mark.has_begun

    @staticmethod
    def _place(entry: JournalEntry, mark: EditMark) -> PlacedMark:
        return PlacedMark(entry.turn, entry.key, mark)


def _is_holder(entry: JournalEntry, step: StepMark) -> bool:
    """Return whether the state of a call depends on this edit. Marks that were stored as a count do not name it."""
    return not step.edit_key or (step.turn, step.edit_key) == (entry.turn, entry.key)


def _get_step_state(entry: JournalEntry, link: UndoLink) -> StepState:
    """Return the state of the call that an edit has applied, or redone, when that edit itself was changed."""
    if entry.state == "partly":
        return "partly"
    return "applied" if (entry.state == "undone") == link.is_redo else "open"


def find_undo_step(resources: Resources, pause: Pause, call: RoundCall) -> UndoStep | None:
    """Return the step that an answer to `call` completes, or None when the turn is no undo."""
    undo_target = pause.undo_target
    if undo_target is None:
        return None
    key = undo_target.get_inverse_call(pause.calls.index(call))
    undone_entry = find_journal_entry(resources, pause.tenant, undo_target.turn, undo_target.edit_key)
    target_entry = undone_entry
    if (key.turn, key.edit_key) != (undo_target.turn, undo_target.edit_key):
        target_entry = find_journal_entry(resources, pause.tenant, key.turn, key.edit_key)
    if undone_entry is None or target_entry is None:
        return None
    return UndoStep(pause, call, undone_entry, target_entry, key.step)
