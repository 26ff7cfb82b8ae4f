"""Store the journal of a turn: edits, their inverses, and what undos have done with them (docs/revisions-and-undo.md).

The rows are in the turn's partition (decision 0116). `j#<edit>` is an edit and never changes; `j#<edit>#u` is the mark
that undos have left on it. The key of an edit is the place of its call, `<round>#<index>`, so edits sort by time.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal

from pydantic import model_validator

from fermata.aws import blob_store
from fermata.aws.dynamodb_items_and_writes import Item, Put
from fermata.aws.resources import Resources
from fermata.domain.base import StoredModel, StoredNames
from fermata.domain.value_dataclass import value_dataclass
from fermata.tools.calls.edit_results import InverseStep
from fermata.turns.turn import Turn, TurnPartition, build_turn_pk

EditState = Literal["applied", "undone", "partly", "stuck"]
"""stuck: the edit has no usable inverse."""
StepState = Literal["open", "partly", "applied"]
"""partly: an edit that applied the call was undone in part, or one that redid it."""
MARK_SUFFIX = "#u"
JOURNAL_BATCH_SIZE = 10
"""Edits that an undo reads with one query."""
_STORED_STEP_NAMES = StoredNames({"edit_key": "edit", "is_redo": "redoes", "newer_inverse_tool": "tool"})
_STORED_EDIT_NAMES = StoredNames(
    {
        "entry_number": "seq",
        "call_index": "call",
        "input_summary": "input",
        "answered_at": "at",
        "inverse_problem": "problem",
        "undo_link": "link",
    }
)
_STORED_MARK_NAMES = StoredNames(
    {
        "marking_turn": "by",
        "has_begun": "begun",
        "skip_reason": "reason",
        "revision_after": "revision",
        "last_redo_turn": "redone",
    }
)


class UndoLink(StoredModel, alias_generator=StoredNames({"edit_key": "edit", "is_redo": "redoes"})):
    """What an undo's edit has applied: call `step` of the inverse of another edit, or with `is_redo` the undo of it.

    The link skips edits whose inverse is a single call, because they apply or redo the call as a whole. It then points
    to the edit behind them, which is nearly always a model's (decisions 0119 and 0155).
    """

    turn: str
    edit_key: str
    step: int
    is_redo: bool = False


class StepMark(StoredModel, alias_generator=_STORED_STEP_NAMES):
    """What has become of one call of an inverse."""

    step: int
    state: StepState = "applied"
    turn: str = ""
    edit_key: str = ""
    """The edit that has brought the call into this state, by applying it or with `is_redo` by redoing what it undid.

    Undoing that edit changes the state. Empty in marks that were stored as a count.
    """
    is_redo: bool = False
    newer_inverse_tool: str = ""
    """The tool of that edit's inverse, if it takes the place of the call and is a single call."""


class JournalEdit(StoredModel, alias_generator=_STORED_EDIT_NAMES):
    """An edit as its answer reported it."""

    effect_key: str
    entry_number: int
    """Number of the log entry that holds the answer."""
    round: int
    call_index: int
    """Index of the call in its round."""
    tool_call_id: str
    tool_name: str
    input_summary: str
    revision_before: str = ""
    revision_after: str = ""
    answered_at: str
    """ISO 8601."""
    inverse_problem: str = ""
    """Why the inverse cannot be used; empty when it can."""
    undo_link: UndoLink | None = None
    """Set for an edit that an undo made."""


class EditMark(StoredModel, alias_generator=_STORED_MARK_NAMES):
    """What undos have done with an edit. Written as a whole by the newest of them."""

    marking_turn: str
    """The turn that wrote the mark."""
    has_begun: bool = False
    """Whether that turn has applied a call of the inverse."""
    steps: tuple[StepMark, ...] = ()
    """The calls of the inverse that are not in their first state, which is open (decision 0155)."""
    skip_reason: str = ""
    revision_after: str = ""
    """The document's revision after those calls, if the editor reported one."""
    last_redo_turn: str = ""
    """The undo of an undo that has redone the edit, or a part of it, last."""

    @model_validator(mode="before")
    @classmethod
    def _convert_count(cls, data: Any) -> Any:
        """Convert the form stored earlier: the number of calls that are applied, and the redone ones behind them."""
        if not isinstance(data, dict) or "done" not in data:
            return data
        done = data["done"]
        applied = [{"step": step} for step in range(done)]
        redone = [{**tip, "state": "open", "redoes": True} for tip in data.get("tips", ()) if tip["step"] >= done]
        return {**data, "begun": done > data.get("first", 0), "steps": [*applied, *redone]}

    def with_step(self, changed: StepMark) -> "EditMark":
        """Return the mark with the state of one call of the inverse replaced."""
        steps = (*(step for step in self.steps if step.step != changed.step), changed)
        return self.model_copy(update={"steps": tuple(sorted(steps, key=lambda step: step.step))})


@value_dataclass(frozen=True)
class JournalEntry:
    """An edit with its mark."""

    key: str
    edit: JournalEdit
    inverse_tools: tuple[str, ...]
    """Tools that undo the edit now, one for each call of its inverse."""
    inverse_item: Item
    mark: EditMark | None = None

    @property
    def turn(self) -> str:
        """The id of the turn that made the edit."""
        return self.edit.effect_key.partition("/")[0]

    @property
    def steps(self) -> tuple[StepMark, ...]:
        """The state of each call of the inverse."""
        marked = {step.step: step for step in self.mark.steps} if self.mark else {}
        return tuple(marked.get(step, StepMark(step=step, state="open")) for step, _ in enumerate(self.inverse_tools))

    @property
    def state(self) -> EditState:
        """What undos have done to the edit so far; `stuck` if it has no inverse."""
        if not self.inverse_tools:
            return "stuck"
        states = {step.state for step in self.steps}
        if states == {"applied"}:
            return "undone"
        return "applied" if states == {"open"} else "partly"

    def with_mark(self, mark: EditMark) -> "JournalEntry":
        newer_tools = {step.step: step.newer_inverse_tool for step in mark.steps if step.newer_inverse_tool}
        inverse_tools = tuple(newer_tools.get(step, tool) for step, tool in enumerate(self.inverse_item["tools"]))
        return replace(self, inverse_tools=inverse_tools, mark=mark)


def build_edit_key(round_: int, call_index: int) -> str:
    return f"{round_:06d}#{call_index:04d}"


def edit_key_from_effect_key(effect_key: str, turn: str) -> str | None:
    """Return the key of the edit, or None when the effect key is malformed or belongs to another turn."""
    parts = effect_key.split("/")
    if len(parts) != 3 or parts[0] != turn or not all(part.isascii() and part.isdigit() for part in parts[1:]):
        return None
    return build_edit_key(int(parts[1][:6]), int(parts[2][:4]))


def build_edit_put(
    resources: Resources, partition: TurnPartition, edit: JournalEdit, inverse_steps: Iterable[InverseStep]
) -> Put:
    """Return the write that stores an edit. A large inverse is stored in the bucket before this returns."""
    inverse = [step.to_wire() for step in inverse_steps]
    inverse_json = json.dumps(inverse, separators=(",", ":"))
    item: Item = {
        "pk": partition.pk,
        "sk": f"j#{build_edit_key(edit.round, edit.call_index)}",
        "v": 1,
        "data": json.dumps(edit.to_stored_json(), separators=(",", ":")),
        "tools": [step["tool"] for step in inverse],
        "ttl": partition.expires,
    }
    if len(inverse_json) <= blob_store.BLOB_THRESHOLD_BYTES:
        item["inverse"] = inverse_json
    else:
        item["blob"] = resources.blobs.put_json(blob_store.turn_folder(partition.tenant, partition.turn), inverse)
    return Put(resources.settings.bridges_table, item, if_absent=True)


def build_mark_put(resources: Resources, partition: TurnPartition, edit_key: str, edit_mark: EditMark) -> Put:
    """Return the write that stores a mark.

    It needs no condition: only the one undo that holds the conversation's claim writes marks (decision 0116).
    """
    item: Item = {
        "pk": partition.pk,
        "sk": f"j#{edit_key}{MARK_SUFFIX}",
        "v": 1,
        "data": json.dumps(edit_mark.to_stored_json(), separators=(",", ":")),
        "ttl": partition.expires,
    }
    return Put(resources.settings.bridges_table, item)


def load_inverse_steps(resources: Resources, entry: JournalEntry) -> list[InverseStep]:
    """Return the inverse as the edit's own result gave it."""
    row = entry.inverse_item
    steps = resources.blobs.get_json(row["blob"]) if "blob" in row else json.loads(row["inverse"])
    return [InverseStep.from_wire(step) for step in steps]


def find_journal_entry(resources: Resources, tenant: str, turn: str, edit_key: str) -> JournalEntry | None:
    pk = build_turn_pk(tenant, turn)
    table = resources.settings.bridges_table
    rows = [resources.tables.get_item(table, pk, f"j#{edit_key}{suffix}") for suffix in ("", MARK_SUFFIX)]
    return next(iter(_entries_from_rows(row for row in rows if row is not None)), None)


def find_model_entry(resources: Resources, tenant: str, entry: JournalEntry) -> JournalEntry | None:
    """Return the model's edit behind an undo's edit, or None when it has expired."""
    found: JournalEntry | None = entry
    while found and found.edit.undo_link:
        found = find_journal_entry(resources, tenant, found.edit.undo_link.turn, found.edit.undo_link.edit_key)
    return found


def iter_journal_newest_first(resources: Resources, tenant: str, turn: str, start: str = "") -> Iterator[JournalEntry]:
    """Yield a turn's edits from the edit `start` (or the newest) on, in batches of `JOURNAL_BATCH_SIZE`."""
    max_sk = f"j#{start}~" if start else "j#~"
    while True:
        entries, has_more = _read_batch_below(resources, build_turn_pk(tenant, turn), max_sk)
        yield from entries
        if not has_more:
            return
        max_sk = f"j#{entries[-1].key}"


def _read_batch_below(resources: Resources, pk: str, max_sk: str) -> tuple[list[JournalEntry], bool]:
    """Return the newest entries below `max_sk`, and whether there may be more."""
    table = resources.settings.bridges_table
    limit = 2 * JOURNAL_BATCH_SIZE + 1  # an edit and its mark each, and the row `max_sk` itself
    rows = resources.tables.query_items(table, pk, min_sk="j#", max_sk=max_sk, descending=True, limit=limit)
    entries = _entries_from_rows(row for row in reversed(rows) if row["sk"] != max_sk)[::-1]
    return entries, len(rows) == limit and bool(entries)


def read_journal_page(
    resources: Resources, turn: Turn, *, after: str = "", limit: int
) -> tuple[list[JournalEntry], str | None]:
    """Return edits behind the edit `after`, oldest first, and the key of the last one when there are more."""
    min_sk = f"j#{after}~" if after else "j#"
    rows = resources.tables.query_items(
        resources.settings.bridges_table, turn.pk, min_sk=min_sk, max_sk="j#~", limit=2 * limit + 2
    )
    entries = _entries_from_rows(rows)
    return entries[:limit], entries[limit - 1].key if len(entries) > limit else None


def list_journal_entries(resources: Resources, tenant: str, turn: str) -> list[JournalEntry]:
    """Return all edits of a turn, newest first."""
    table = resources.settings.bridges_table
    rows = resources.tables.query_items(table, build_turn_pk(tenant, turn), min_sk="j#", max_sk="j#~")
    return _entries_from_rows(rows)[::-1]


def _entries_from_rows(rows: Iterable[Item]) -> list[JournalEntry]:
    """Combine rows in the order of their keys, in which a mark follows its edit."""
    entries: list[JournalEntry] = []
    for row in rows:
        key = row["sk"][2:].removesuffix(MARK_SUFFIX)
        data: dict[str, Any] = json.loads(row["data"])
        if not row["sk"].endswith(MARK_SUFFIX):
            entries.append(JournalEntry(key, JournalEdit.from_stored(data), tuple(row["tools"]), row))
        elif entries and entries[-1].key == key:
            entries[-1] = entries[-1].with_mark(EditMark.from_stored(data))
    return entries
