"""What an undo came to: for whoever asked for it, and for the model, which learns of it in the next turn."""

from collections.abc import Iterable

from fermata.aws.resources import Resources
from fermata.domain.events import SkippedEdit, UndoReport
from fermata.tools.calls.edit_results import is_tool_permitted
from fermata.turns import edit_journal
from fermata.turns.edit_journal import JournalEdit, JournalEntry
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
MAX_NAMED_EDITS = 12
"""Edits the model is told of by name."""


def find_undo_obstacle(turn: Turn, entry: JournalEntry) -> str:
    """Why this undo cannot ask for the edit's inverse; empty when it can. An edit is taken back by who may make it."""
    if not entry.tools:
        return entry.edit.problem
    capabilities = frozenset(turn.capabilities)
    for name in (entry.edit.tool_name, *entry.tools):
        if not is_tool_permitted(turn.scope, turn.tenant, name, capabilities):
            return NOT_ALLOWED_REASON.format(name)
    return ""


class UndoOutcome:
    """Read when an undo ends, where nothing can follow any more."""

    def __init__(self, resources: Resources, turn: Turn, state_before: TurnState) -> None:
        self._turn, self._before = turn, state_before
        edits = edit_journal.list_journal_entries(resources, turn.tenant, turn.undoes)
        meant = [entry for entry in edits if entry.key >= turn.through]
        self._origins = _origins(resources, turn.tenant, meant)
        self._words = (
            REDO_NOTE_PARTS
            if any(entry.edit.link and not entry.edit.link.redoes for entry in meant)
            else UNDO_NOTE_PARTS
        )
        self._undone = [entry for entry in meant if self._is_mine(entry) and entry.state == "undone"]
        self._skipped = [(entry, self._reason(entry)) for entry in meant if entry.state != "undone"]

    @property
    def report(self) -> UndoReport:
        return UndoReport(
            undone=tuple(entry.edit.effect_key for entry in self._undone),
            skipped=tuple(SkippedEdit(effect_key=entry.edit.effect_key, reason=why) for entry, why in self._skipped),
        )

    @property
    def note(self) -> str:
        """For the model; empty when the document is as it was. What may have happened counts as well."""
        partly = [entry for entry, why in self._skipped if self._has_begun(entry) or why == UNANSWERED_REASON]
        if not self._undone and not partly:
            return ""
        kept = [entry for entry, _ in self._skipped if entry not in partly]
        heading, *lists = self._words
        named = zip(lists, (self._undone, partly, kept), strict=True)
        said = [sentence.format(self._named(entries)) for sentence, entries in named if entries]
        end = "What you know of the document is out of date: read it again before you edit.]"
        return " ".join([heading, *said, end])

    def _named(self, entries: Iterable[JournalEntry]) -> str:
        """By the edits the model made, also where an undo's own edits were taken back."""
        made = (self._origins.get(entry.key, entry.edit) for entry in entries)
        named = list(dict.fromkeys((edit.effect_key, f"{edit.tool_name} {edit.input}".strip()) for edit in made))
        more = f" and {len(named) - MAX_NAMED_EDITS} more" if len(named) > MAX_NAMED_EDITS else ""
        return "; ".join(text for _, text in named[:MAX_NAMED_EDITS]) + more

    def _is_mine(self, entry: JournalEntry) -> bool:
        return entry.mark is not None and entry.mark.by == self._turn.id

    def _has_begun(self, entry: JournalEntry) -> bool:
        return entry.mark is not None and self._is_mine(entry) and entry.mark.done > entry.mark.first

    def _reason(self, entry: JournalEntry) -> str:
        if why := find_undo_obstacle(self._turn, entry):
            return why
        if self._is_mine(entry) and entry.mark and entry.mark.reason:
            return f"{PARTLY_UNDONE_REASON} {entry.mark.reason}" if entry.undone_steps else entry.mark.reason
        return UNANSWERED_REASON if entry.key == self._before.edit else NOT_ASKED_REASON


def _origins(resources: Resources, tenant: str, entries: Iterable[JournalEntry]) -> dict[str, JournalEdit]:
    """What a model had made, for each edit of an undo."""
    links = {entry.key: entry.edit.link for entry in entries if entry.edit.link}
    turns = {link.turn for link in links.values()}
    known = {
        (turn, entry.key): entry.edit
        for turn in turns
        for entry in edit_journal.list_journal_entries(resources, tenant, turn)
    }
    return {key: known[link.turn, link.edit] for key, link in links.items() if (link.turn, link.edit) in known}
