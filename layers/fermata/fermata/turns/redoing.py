"""Which edits stand and which are taken back once an undo's call has succeeded, also where it undid an undo.

An edit of a model may go to and fro as often as somebody likes. Whatever undoes it or redoes it is linked to it, so
two marks say how it stands: its own, and that of the edit which was taken back now.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fermata.aws.desk import Desk
from fermata.tools.editing import Step
from fermata.turns import journal
from fermata.turns.journal import Entry, Link, Mark, Tip
from fermata.turns.pause import Call, Pause, TakenBack
from fermata.turns.turn import Place


class Marked(NamedTuple):
    turn: str
    edit: str
    mark: Mark


@dataclass(frozen=True)
class Taking:
    """One answered call of an undo: the call `step` of what takes `target` back, of which `done` are applied now."""

    pause: Pause
    taken: TakenBack
    call: Call
    target: Entry
    step: int
    done: int

    def place(self, turn: str) -> Place:
        return Place(self.pause.tenant, turn, self.pause.expires)

    @property
    def link(self) -> Link | None:
        """What the call's own edit is to the one a model made. One of several calls that redo does not stand for it."""
        known = self.target.edit.link
        if known is None:
            return Link(turn=self.taken.turn, edit=self.target.key, step=self.step)
        return known.model_copy(update={"redoes": not known.redoes}) if len(self.target.tools) == 1 else None

    def mark(self, revision: str, reason: str = "") -> Marked:
        """Of what was to be taken back. As long as nothing of it was, it stands as it was redone."""
        old = self.target.mark
        made = Mark(
            by=self.pause.turn,
            done=self.done,
            first=self.taken.first,
            reason=reason,
            revision=revision,
            redone=old.redone if old and old.done == self.done else "",
            tips=tuple(tip for tip in self.target.tips if tip.step >= self.done),
        )
        return Marked(self.taken.turn, self.target.key, made)

    def succeeded(self, desk: Desk, revision: str, steps: Sequence[Step]) -> tuple[Marked, ...]:
        """`steps`: the inverse of the call itself."""
        link = self.target.edit.link
        other = self._of_tip(desk, revision) if link is None else self._of_origin(desk, link, revision, steps)
        return (self.mark(revision), *([other] if other else []))

    def _of_tip(self, desk: Desk, revision: str) -> Marked | None:
        """What had redone it is taken back with it."""
        tip = next((tip for tip in self.target.tips if tip.step == self.step), None)
        made = journal.find(desk, self.pause.tenant, tip.turn, tip.edit) if tip else None
        if tip is None or made is None:
            return None
        mark = Mark(by=self.pause.turn, done=len(made.tools), first=made.done, revision=revision)
        return Marked(tip.turn, tip.edit, mark)

    def _of_origin(self, desk: Desk, link: Link, revision: str, steps: Sequence[Step]) -> Marked | None:
        """The edit a model made stands again, or is taken back again."""
        origin = journal.find(desk, self.pause.tenant, link.turn, link.edit)
        stood = link.step if link.redoes else link.step + 1
        if origin is None or origin.done != stood or self.done < len(self.target.tools):
            return None
        tips = tuple(tip for tip in origin.tips if tip.step != link.step)
        by = self.pause.turn
        if link.redoes:
            return Marked(link.turn, link.edit, Mark(by=by, done=stood + 1, first=stood, revision=revision, tips=tips))
        tip = self._tip(link.step, steps)
        mark = Mark(by=by, done=link.step, first=link.step, revision=revision, redone=by, tips=(*tips, tip))
        return Marked(link.turn, link.edit, mark)

    def _tip(self, step: int, steps: Sequence[Step]) -> Tip:
        key = journal.key_of(self.pause.round, self.pause.calls.index(self.call))
        tool = steps[0].tool if len(steps) == 1 and len(self.target.tools) == 1 else ""
        return Tip(step=step, turn=self.pause.turn, edit=key, tool=tool)


def taking(desk: Desk, pause: Pause, call: Call, has_succeeded: bool) -> Taking | None:
    """None where nothing is taken back."""
    taken = pause.takes_back
    target = journal.find(desk, pause.tenant, taken.turn, taken.edit) if taken else None
    if taken is None or target is None:
        return None
    done = taken.first + sum(one.is_done for one in pause.calls)
    return Taking(pause, taken, call, target, step=done, done=done + has_succeeded)
