"""Summarize an undo: a report for the client, and a note for the model, which reads it in the next turn."""

from collections.abc import Sequence

from fermata.aws.resources import Resources
from fermata.domain.events import SkippedEdit, UndoReport
from fermata.turns.edit_journal import JournalEdit, JournalEntry, list_journal_entries
from fermata.turns.turn import Turn
from fermata.turns.turn_state_from_log import TurnState
from fermata.turns.undo.inverse_plan import UndoObstacle, plan_undo

UNANSWERED_REASON = "The editor was asked to undo it and did not answer: check whether it did."
NOT_ASKED_REASON = "The undo ended before it reached this edit."
PARTLY_UNDONE_REASON = "Only some of its calls were undone."
UNDO_NOTE_PARTS = (
    "[The user took edits of yours back.",
    "Undone, the newest first: {}.",
    "Undone in part, or perhaps: {}.",
    "Still there: {}.",
)
REDO_NOTE_PARTS = (
    "[The user redid edits of yours that had been taken back.",
    "Redone, in this order: {}.",
    "Redone in part, or perhaps: {}.",
    "Still undone: {}.",
)
NOTE_END = "What you know of the document is out of date: read it again before you edit.]"
MAX_NAMED_EDITS = 12
"""Edits that the note names; it counts the others."""


class UndoOutcome:
    """What has become of each edit, read when the undo ends and no answer can follow."""

    def __init__(self, resources: Resources, turn: Turn, state_before: TurnState) -> None:
        self._resources = resources
        self._turn = turn
        self._state_before = state_before
        all_entries = list_journal_entries(resources, turn.tenant, turn.undone_turn)
        entries = [entry for entry in all_entries if entry.key >= turn.oldest_edit_to_undo]
        model_edits = _ModelEdits(resources, turn.tenant)
        self._model_edits = {entry.key: model_edits.find(entry) for entry in entries}
        is_redo = any(is_undo for _, is_undo in self._model_edits.values())
        self._note_parts = REDO_NOTE_PARTS if is_redo else UNDO_NOTE_PARTS
        self._undone = [entry for entry in entries if self._is_marked(entry) and entry.state == "undone"]
        self._skipped = [(entry, self._explain_skip(entry)) for entry in entries if entry.state != "undone"]

    @property
    def report(self) -> UndoReport:
        """What the terminal event reports: the effect keys that were undone, and each other edit with the reason."""
        return UndoReport(
            undone=tuple(entry.edit.effect_key for entry in self._undone),
            skipped=tuple(skipped for _, skipped in self._skipped),
        )

    @property
    def note(self) -> str:
        """Text for the model. Empty when the document is certainly unchanged."""
        partly = [
            entry for entry, skipped in self._skipped if self._has_begun(entry) or skipped.reason == UNANSWERED_REASON
        ]
        if not self._undone and not partly:
            return ""
        unchanged = [entry for entry, _ in self._skipped if entry not in partly]
        heading, undone_part, partly_part, unchanged_part = self._note_parts
        parts = ((undone_part, self._undone), (partly_part, partly), (unchanged_part, unchanged))
        sentences = [part.format(self._list_names(entries)) for part, entries in parts if entries]
        return " ".join([heading, *sentences, NOTE_END])

    def _list_names(self, entries: Sequence[JournalEntry]) -> str:
        """Name the model's own edits, also where an undo's edits were undone."""
        edits = [self._model_edits[entry.key][0] for entry in entries]
        names = {edit.effect_key: f"{edit.tool_name} {edit.input_summary}".strip() for edit in edits}
        more = f" and {len(names) - MAX_NAMED_EDITS} more" if len(names) > MAX_NAMED_EDITS else ""
        return "; ".join(list(names.values())[:MAX_NAMED_EDITS]) + more

    def _is_marked(self, entry: JournalEntry) -> bool:
        """Return whether this undo wrote the mark."""
        return entry.mark is not None and entry.mark.marking_turn == self._turn.id

    def _has_begun(self, entry: JournalEntry) -> bool:
        return entry.mark is not None and self._is_marked(entry) and entry.mark.has_begun

    def _explain_skip(self, entry: JournalEntry) -> SkippedEdit:
        key = entry.edit.effect_key
        try:
            plan_undo(self._resources, self._turn, entry)
        except UndoObstacle as obstacle:
            return SkippedEdit(effect_key=key, reason=str(obstacle), code=obstacle.code)
        if self._is_marked(entry) and entry.mark and entry.mark.skip_reason:
            beginning = f"{PARTLY_UNDONE_REASON} " if entry.state == "partly" else ""
            return SkippedEdit(effect_key=key, reason=beginning + entry.mark.skip_reason)
        if entry.key == self._state_before.last_edit_key:
            return SkippedEdit(effect_key=key, reason=UNANSWERED_REASON, code="undoUnanswered")
        return SkippedEdit(effect_key=key, reason=NOT_ASKED_REASON, code="undoNotReached")


class _ModelEdits:
    """The model's edits behind the edits that undos made (decision 0119)."""

    def __init__(self, resources: Resources, tenant: str) -> None:
        self._resources = resources
        self._tenant = tenant
        self._journals: dict[str, dict[str, JournalEntry]] = {}

    def find(self, entry: JournalEntry) -> tuple[JournalEdit, bool]:
        """Return the model's edit, or the last one that has not expired, and whether `entry` has undone it."""
        is_undo = False
        while link := entry.edit.undo_link:
            linked_entry = self._read_journal(link.turn).get(link.edit_key)
            is_undo ^= not link.is_redo
            if linked_entry is None:
                break
            entry = linked_entry
        return entry.edit, is_undo

    def _read_journal(self, turn: str) -> dict[str, JournalEntry]:
        if turn not in self._journals:
            entries = list_journal_entries(self._resources, self._tenant, turn)
            self._journals[turn] = {entry.key: entry for entry in entries}
        return self._journals[turn]
