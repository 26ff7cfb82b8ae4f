"""What an undo came to: for whoever asked for it, and for the model, which learns of it in the next turn."""

from collections.abc import Iterable

from fermata.aws.desk import Desk
from fermata.tools.editing import may_ask
from fermata.turns import journal
from fermata.turns.journal import Edit, Entry
from fermata.turns.standing import Standing
from fermata.turns.turn import Turn
from fermata.words.events import Skipped, UndoReport

NOT_ALLOWED = "Whoever took the edits back may not use {}."
UNANSWERED = "The editor was asked to take it back and did not answer: look whether it did."
NOT_ASKED = "The undo ended before it came to this edit."
PARTLY = "Only some of its calls were taken back."
UNDID = (
    "[The user took edits of yours back.",
    "Undone, the newest first: {}.",
    "Undone in part, or perhaps: {}.",
    "Still there: {}.",
)
REDID = (
    "[The user redid edits of yours that had been taken back.",
    "Redone, in this order: {}.",
    "Redone in part, or perhaps: {}.",
    "Still undone: {}.",
)
MOST_NAMED = 12
"""Edits the model is told of by name."""


def obstacle(turn: Turn, entry: Entry) -> str:
    """Why this undo cannot ask for the edit's inverse; empty when it can. An edit is taken back by who may make it."""
    if not entry.tools:
        return entry.edit.problem
    capabilities = frozenset(turn.capabilities)
    for name in (entry.edit.tool_name, *entry.tools):
        if not may_ask(turn.scope, turn.tenant, name, capabilities):
            return NOT_ALLOWED.format(name)
    return ""


class Outcome:
    """Read when an undo ends, where nothing can follow any more."""

    def __init__(self, desk: Desk, turn: Turn, before: Standing) -> None:
        self._turn, self._before = turn, before
        edits = journal.everything(desk, turn.tenant, turn.undoes)
        meant = [entry for entry in edits if entry.key >= turn.through]
        self._origins = _origins(desk, turn.tenant, meant)
        self._words = REDID if any(entry.edit.link and not entry.edit.link.redoes for entry in meant) else UNDID
        self._undone = [entry for entry in meant if self._is_mine(entry) and entry.state == "undone"]
        self._skipped = [(entry, self._reason(entry)) for entry in meant if entry.state != "undone"]

    @property
    def report(self) -> UndoReport:
        return UndoReport(
            undone=tuple(entry.edit.effect_key for entry in self._undone),
            skipped=tuple(Skipped(effect_key=entry.edit.effect_key, reason=why) for entry, why in self._skipped),
        )

    @property
    def note(self) -> str:
        """For the model; empty when the document is as it was. What may have happened counts as well."""
        partly = [entry for entry, why in self._skipped if self._has_begun(entry) or why == UNANSWERED]
        if not self._undone and not partly:
            return ""
        kept = [entry for entry, _ in self._skipped if entry not in partly]
        heading, *lists = self._words
        named = zip(lists, (self._undone, partly, kept), strict=True)
        said = [sentence.format(self._named(entries)) for sentence, entries in named if entries]
        end = "What you know of the document is out of date: read it again before you edit.]"
        return " ".join([heading, *said, end])

    def _named(self, entries: Iterable[Entry]) -> str:
        """By the edits the model made, also where an undo's own edits were taken back."""
        made = (self._origins.get(entry.key, entry.edit) for entry in entries)
        named = list(dict.fromkeys((edit.effect_key, f"{edit.tool_name} {edit.input}".strip()) for edit in made))
        more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        return "; ".join(text for _, text in named[:MOST_NAMED]) + more

    def _is_mine(self, entry: Entry) -> bool:
        return entry.mark is not None and entry.mark.by == self._turn.id

    def _has_begun(self, entry: Entry) -> bool:
        return entry.mark is not None and self._is_mine(entry) and entry.mark.done > entry.mark.first

    def _reason(self, entry: Entry) -> str:
        if why := obstacle(self._turn, entry):
            return why
        if self._is_mine(entry) and entry.mark and entry.mark.reason:
            return f"{PARTLY} {entry.mark.reason}" if entry.done else entry.mark.reason
        return UNANSWERED if entry.key == self._before.edit else NOT_ASKED


def _origins(desk: Desk, tenant: str, entries: Iterable[Entry]) -> dict[str, Edit]:
    """What a model had made, for each edit of an undo."""
    links = {entry.key: entry.edit.link for entry in entries if entry.edit.link}
    turns = {link.turn for link in links.values()}
    known = {(turn, entry.key): entry.edit for turn in turns for entry in journal.everything(desk, tenant, turn)}
    return {key: known[link.turn, link.edit] for key, link in links.items() if (link.turn, link.edit) in known}
