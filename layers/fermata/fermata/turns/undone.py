"""What an undo came to: for whoever asked for it, and for the model, which learns of it in the next turn."""

from collections.abc import Iterable

from fermata.aws.desk import Desk
from fermata.tools.editing import may_ask
from fermata.turns import journal
from fermata.turns.journal import Entry
from fermata.turns.standing import Standing
from fermata.turns.turn import Turn
from fermata.words.events import Skipped, UndoReport

NOT_ALLOWED = "Whoever took the edits back may not use {}."
UNANSWERED = "The editor was asked to take it back and did not answer: look whether it did."
NOT_ASKED = "The undo ended before it came to this edit."
PARTLY = "Only some of its calls were taken back."
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
        said = ["[The user took edits of yours back."]
        if self._undone:
            said.append(f"Undone, the newest first: {_named(self._undone)}.")
        if partly:
            said.append(f"Undone in part, or perhaps: {_named(partly)}.")
        if kept := [entry for entry, _ in self._skipped if entry not in partly]:
            said.append(f"Still there: {_named(kept)}.")
        return " ".join([*said, "What you know of the document is out of date: read it again before you edit.]"])

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


def _named(entries: Iterable[Entry]) -> str:
    named = [f"{entry.edit.tool_name} {entry.edit.input}".strip() for entry in entries]
    more = f" and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
    return "; ".join(named[:MOST_NAMED]) + more
