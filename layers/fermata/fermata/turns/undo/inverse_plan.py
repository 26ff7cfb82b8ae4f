"""Plan which calls undo an edit now, where parts of it were undone and redone before (decision 0155).

A call of an inverse that no undo has applied is requested itself. A call that was applied and then redone is replaced
by the inverses of the edits that redid it, because these fit the document as it is now.
"""

from collections.abc import Iterator

from fermata.agents.registry import get_editor_toolset
from fermata.aws.resources import Resources
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.calls.edit_results import is_tool_permitted
from fermata.turns.edit_journal import JournalEntry, StepMark, find_journal_entry
from fermata.turns.pause import InverseCallKey
from fermata.turns.turn import Turn

NOT_ALLOWED_REASON = "The user who undoes the edits may not use {}."
HALF_REDONE_REASON = (
    "It was redone in part, and the editor reported no inverse for that part. Redo the rest of it first."
)


class UndoObstacle(Exception):
    """An edit cannot be undone. The message says why, for the user, and the code for clients in other languages."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class _NoWayBack(Exception):
    """The editor gave no usable inverse for an edit that would have to be undone."""


@value_dataclass(frozen=True)
class PlannedCall:
    """Call `step` of the inverse of `entry`, as the result of that edit gave it."""

    entry: JournalEntry
    step: int

    @property
    def key(self) -> InverseCallKey:
        """The key under which the undo finds what this call's result has to mark."""
        return InverseCallKey(turn=self.entry.turn, edit_key=self.entry.key, step=self.step)

    @property
    def tool(self) -> str:
        """The canonical name of the tool to call."""
        return str(self.entry.inverse_item["tools"][self.step])


def plan_undo(resources: Resources, turn: Turn, entry: JournalEntry) -> list[PlannedCall]:
    """Return the calls with which the undo `turn` undoes an edit, in their order.

    A user may undo what the user may also do: the edit's own tool and those of its inverse must be permitted.

    Raises:
        UndoObstacle: It cannot undo the edit.
    """
    if not entry.inverse_tools:
        raise UndoObstacle(entry.edit.inverse_problem, "undoImpossible")
    try:
        calls = list(_plan_edit(resources, turn.tenant, entry))
    except _NoWayBack as error:
        raise UndoObstacle(HALF_REDONE_REASON, "undoHalfRedone") from error
    capabilities = frozenset(turn.capabilities)
    for name in (entry.edit.tool_name, *entry.inverse_tools, *(call.tool for call in calls)):
        if not is_tool_permitted(get_editor_toolset(turn.scope), turn.scope, turn.tenant, name, capabilities):
            raise UndoObstacle(NOT_ALLOWED_REASON.format(name), "undoNotAllowed")
    return calls


def iter_replaced_edits(
    resources: Resources, tenant: str, entry: JournalEntry, step: StepMark
) -> Iterator[JournalEntry]:
    """Yield the edits by which a call was applied and redone, as far as they could be undone themselves."""
    holder = _find_holder(resources, tenant, entry, step)
    if holder is None:
        return
    if holder.state in ("applied", "partly"):
        yield holder
    for holder_step in holder.steps:
        yield from iter_replaced_edits(resources, tenant, holder, holder_step)


def _plan_edit(resources: Resources, tenant: str, entry: JournalEntry) -> Iterator[PlannedCall]:
    if not entry.inverse_tools:
        raise _NoWayBack
    for step in entry.steps:
        yield from _plan_step(resources, tenant, entry, step)


def _plan_step(resources: Resources, tenant: str, entry: JournalEntry, step: StepMark) -> list[PlannedCall]:
    """Plan how to apply one call of an inverse, or what is missing of it."""
    if step.state == "applied":
        return []
    try:
        return list(_plan_change(resources, tenant, entry, step, is_undone=step.is_redo))
    except _NoWayBack:
        if step.state == "partly":
            raise
        return [PlannedCall(entry, step.step)]


def _plan_redo(resources: Resources, tenant: str, entry: JournalEntry) -> Iterator[PlannedCall]:
    """Plan how to take back what undos have done with an edit, the newest first."""
    for step in reversed(entry.steps):
        if step.state != "open":
            yield from _plan_change(resources, tenant, entry, step, is_undone=not step.is_redo)


def _plan_change(
    resources: Resources, tenant: str, entry: JournalEntry, step: StepMark, *, is_undone: bool
) -> Iterator[PlannedCall]:
    """Plan how to undo or to redo the edit that has brought a call into its state."""
    holder = _find_holder(resources, tenant, entry, step)
    if holder is None:
        raise _NoWayBack
    plan = _plan_edit if is_undone else _plan_redo
    yield from plan(resources, tenant, holder)


def _find_holder(resources: Resources, tenant: str, entry: JournalEntry, step: StepMark) -> JournalEntry | None:
    """Return the edit that has brought a call into its state, if it reported anything and knows what it has done."""
    holder = find_journal_entry(resources, tenant, step.turn, step.edit_key) if step.edit_key else None
    link = holder.edit.undo_link if holder else None
    is_linked = link and (link.turn, link.edit_key, link.step) == (entry.turn, entry.key, step.step)
    return holder if is_linked else None
