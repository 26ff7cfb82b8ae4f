"""Summarize an undo: a report for the client, and a note for the model, which reads it in the next turn."""

from collections.abc import Iterable, Sequence

from fermata.aws.resources import Resources
from fermata.domain.events import SkippedEdit, UndoReport
from fermata.tools.calls.edit_results import is_tool_permitted
from fermata.turns.edit_journal import JournalEdit, JournalEntry, list_journal_entries
from fermata.turns.state import TurnState
from fermata.turns.turn import Turn

NOT_ALLOWED_REASON = "Whoever took the edits back may not use {}."
UNANSWERED_REASON = "The editor was asked to take it back and did not answer: look whether it did."
NOT_ASKED_REASON = "The undo ended before it came to this edit."
PARTLY_UNDONE_REASON = "Only some of its calls were taken back."
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


def find_undo_obstacle(turn: Turn, entry: JournalEntry) -> str:
    """Return why the undo `turn` cannot undo an edit, or an empty text when it can.

    A user may undo what the user may also do: the edit's own tool and those of its inverse must be permitted.
    """
    if not entry.inverse_tools:
        return entry.edit.problem
    capabilities = frozenset(turn.capabilities)
    for name in (entry.edit.tool_name, *entry.inverse_tools):
        if not is_tool_permitted(turn.scope, turn.tenant, name, capabilities):
            return NOT_ALLOWED_REASON.format(name)
    return ""


class UndoOutcome:
    """What has become of each edit, read when the undo ends and no answer can follow."""

    def __init__(self, resources: Resources, turn: Turn, state_before: TurnState) -> None:
        self._turn = turn
        self._state_before = state_before
        all_entries = list_journal_entries(resources, turn.tenant, turn.undoes)
        entries = [entry for entry in all_entries if entry.key >= turn.through]
        self._model_edits = _read_model_edits(resources, turn.tenant, entries)
        is_redo = any(entry.edit.link and not entry.edit.link.redoes for entry in entries)
        self._note_parts = REDO_NOTE_PARTS if is_redo else UNDO_NOTE_PARTS
        self._undone = [entry for entry in entries if self._is_marked(entry) and entry.state == "undone"]
        self._skipped = [(entry, self._get_reason(entry)) for entry in entries if entry.state != "undone"]

    @property
    def report(self) -> UndoReport:
        return UndoReport(
            undone=tuple(entry.edit.effect_key for entry in self._undone),
            skipped=tuple(
                SkippedEdit(effect_key=entry.edit.effect_key, reason=reason) for entry, reason in self._skipped
            ),
        )

    @property
    def note(self) -> str:
        """Text for the model. Empty when the document is certainly unchanged."""
        partly = [entry for entry, reason in self._skipped if self._has_begun(entry) or reason == UNANSWERED_REASON]
        if not self._undone and not partly:
            return ""
        unchanged = [entry for entry, _ in self._skipped if entry not in partly]
        heading, undone_part, partly_part, unchanged_part = self._note_parts
        parts = ((undone_part, self._undone), (partly_part, partly), (unchanged_part, unchanged))
        sentences = [part.format(self._list_names(entries)) for part, entries in parts if entries]
        return " ".join([heading, *sentences, NOTE_END])

    def _list_names(self, entries: Sequence[JournalEntry]) -> str:
        """Name the model's own edits, also where an undo's edits were undone."""
        edits = [self._model_edits.get(entry.key, entry.edit) for entry in entries]
        names = {edit.effect_key: f"{edit.tool_name} {edit.input}".strip() for edit in edits}
        more = f" and {len(names) - MAX_NAMED_EDITS} more" if len(names) > MAX_NAMED_EDITS else ""
        return "; ".join(list(names.values())[:MAX_NAMED_EDITS]) + more

    def _is_marked(self, entry: JournalEntry) -> bool:
        """Whether this undo wrote the mark."""
        return entry.mark is not None and entry.mark.by == self._turn.id

    def _has_begun(self, entry: JournalEntry) -> bool:
        return entry.mark is not None and self._is_marked(entry) and entry.mark.done > entry.mark.first

    def _get_reason(self, entry: JournalEntry) -> str:
        if obstacle := find_undo_obstacle(self._turn, entry):
            return obstacle
        if self._is_marked(entry) and entry.mark and entry.mark.reason:
            return f"{PARTLY_UNDONE_REASON} {entry.mark.reason}" if entry.undone_steps else entry.mark.reason
        return UNANSWERED_REASON if entry.key == self._state_before.last_edit_key else NOT_ASKED_REASON


def _read_model_edits(resources: Resources, tenant: str, entries: Iterable[JournalEntry]) -> dict[str, JournalEdit]:
    """Return the model's edit behind each edit that an undo made, by the key of the latter (decision 0119)."""
    links = {entry.key: entry.edit.link for entry in entries if entry.edit.link}
    turns = {link.turn for link in links.values()}
    edits = {(turn, entry.key): entry.edit for turn in turns for entry in list_journal_entries(resources, tenant, turn)}
    return {key: edits[link.turn, link.edit] for key, link in links.items() if (link.turn, link.edit) in edits}
