"""A turn's edits and the way back from each (docs/editing.md): what was told when they were answered, never changed.

Rows lie in the turn's partition: `j#<edit>` is an edit, `j#<edit>#u` what undos have made of it so far. An edit is
named after the place of its call, `<round>#<index>`, so that edits sort as they were made.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from fermata.aws import blob_store
from fermata.aws.dynamodb import Item, Put
from fermata.aws.resources import Resources
from fermata.domain.base import DomainModel
from fermata.domain.dialect import ToolNameMapper
from fermata.tools.calls.edit_results import InverseStep
from fermata.turns.turn import Turn, TurnPartition, build_turn_pk

EditState = Literal["applied", "undone", "partly", "stuck"]
MARK_SUFFIX = "#u"
JOURNAL_BATCH_SIZE = 10
"""Edits an undo reads at once; it goes on from one answer to the next."""


class UndoLink(DomainModel):
    """An edit that an undo made: it took the call `step` of that edit's inverse, or `redoes` what that call had undone.

    Undos of undos all point to the edit a model made, however often it goes to and fro.
    """

    turn: str
    edit: str
    step: int
    redoes: bool = False


class RedoneStep(DomainModel):
    """The edit that redid the call `step`. Its own inverse is the newest way back: `tool` is the one call it has, or
    empty where it is not a single call, and the first inverse has to do.
    """

    step: int
    turn: str
    edit: str
    tool: str = ""


class JournalEdit(DomainModel):
    """`problem`: why no call takes it back. `at`: an ISO instant. `link`: where an undo made it."""

    effect_key: str
    seq: int
    round: int
    call: int
    tool_call_id: str
    tool_name: str
    input: str
    revision_before: str = ""
    revision_after: str = ""
    at: str
    problem: str = ""
    link: UndoLink | None = None


class EditMark(DomainModel):
    """What the undo `by` came to with an edit: `done` of its calls have been applied, `first` of them before it.

    `revision`: what the document was at after them, where the editor said so. `redone`: the undo of an undo that made
    the edit stand again; `tips` are what it did for that.
    """

    by: str
    done: int
    first: int = 0
    reason: str = ""
    revision: str = ""
    redone: str = ""
    tips: tuple[RedoneStep, ...] = ()


@dataclass(frozen=True)
class JournalEntry:
    """An edit as it is stored, and the mark it has. `tools`: those that take it back now."""

    key: str
    edit: JournalEdit
    tools: tuple[str, ...]
    inverse_row: Item
    mark: EditMark | None = None

    @property
    def undone_steps(self) -> int:
        return self.mark.done if self.mark else 0

    @property
    def state(self) -> EditState:
        if not self.tools:
            return "stuck"
        if self.undone_steps >= len(self.tools):
            return "undone"
        return "partly" if self.undone_steps else "applied"

    @property
    def redone_steps(self) -> tuple[RedoneStep, ...]:
        return self.mark.tips if self.mark else ()

    def with_mark(self, mark: EditMark) -> "JournalEntry":
        newer = {tip.step: tip.tool for tip in mark.tips if tip.tool}
        tools = tuple(newer.get(step, tool) for step, tool in enumerate(self.tools))
        return replace(self, tools=tools, mark=mark)


def build_edit_key(round_: int, call_index: int) -> str:
    return f"{round_:06d}#{call_index:04d}"


def edit_key_from_effect_key(effect_key: str, turn: str) -> str | None:
    """The edit's key, where the effect key is one of this turn's."""
    parts = effect_key.split("/")
    if len(parts) != 3 or parts[0] != turn or not all(part.isascii() and part.isdigit() for part in parts[1:]):
        return None
    return build_edit_key(int(parts[1][:6]), int(parts[2][:4]))


def build_edit_put(
    resources: Resources, partition: TurnPartition, edit: JournalEdit, steps: Iterable[InverseStep]
) -> Put:
    """The write that stores an edit; a large inverse is in the bucket when this returns."""
    inverse = [step.to_wire() for step in steps]
    text = json.dumps(inverse, separators=(",", ":"))
    item: Item = {
        "pk": partition.pk,
        "sk": f"j#{build_edit_key(edit.round, edit.call)}",
        "v": 1,
        "data": json.dumps(edit.model_dump(mode="json", exclude_defaults=True), separators=(",", ":")),
        "tools": [step["tool"] for step in inverse],
        "ttl": partition.expires,
    }
    if len(text) <= blob_store.BLOB_THRESHOLD_BYTES:
        item["inverse"] = text
    else:
        item["blob"] = resources.blobs.put_json(blob_store.turn_folder(partition.tenant, partition.turn), inverse)
    return Put(resources.settings.bridges_table, item, if_absent=True)


def build_mark_put(resources: Resources, partition: TurnPartition, key: str, edit_mark: EditMark) -> Put:
    """Only the undo that holds the conversation writes it, so there is nobody to race."""
    item: Item = {
        "pk": partition.pk,
        "sk": f"j#{key}{MARK_SUFFIX}",
        "v": 1,
        "data": json.dumps(edit_mark.model_dump(mode="json", exclude_defaults=True), separators=(",", ":")),
        "ttl": partition.expires,
    }
    return Put(resources.settings.bridges_table, item)


def load_inverse_steps(resources: Resources, tenant: str, entry: JournalEntry) -> list[InverseStep]:
    """The calls that take it back now."""
    found = _stored(resources, entry)
    for tip in entry.redone_steps:
        made = find_journal_entry(resources, tenant, tip.turn, tip.edit) if tip.tool else None
        if made is not None:
            [found[tip.step]] = _stored(resources, made)
    return found


def _stored(resources: Resources, entry: JournalEntry) -> list[InverseStep]:
    inverse = entry.inverse_row
    stored = resources.blobs.get_json(inverse["blob"]) if "blob" in inverse else json.loads(inverse["inverse"])
    return [InverseStep.from_wire(step) for step in stored]


def find_journal_entry(resources: Resources, tenant: str, turn: str, key: str) -> JournalEntry | None:
    rows = (
        resources.tables.get_item(resources.settings.bridges_table, build_turn_pk(tenant, turn), f"j#{key}{end}")
        for end in ("", MARK_SUFFIX)
    )
    return next(iter(_entries(row for row in rows if row is not None)), None)


def iter_journal_newest_first(resources: Resources, tenant: str, turn: str, start: str = "") -> Iterator[JournalEntry]:
    """A turn's edits from the edit `start` (or the newest) on, the newest first; read a few at a time."""
    high = f"j#{start}~" if start else "j#~"
    while True:
        entries, more = _some(resources, build_turn_pk(tenant, turn), high)
        yield from entries
        if not more:
            return
        high = f"j#{entries[-1].key}"


def _some(resources: Resources, pk: str, high: str) -> tuple[list[JournalEntry], bool]:
    """The highest entries up to `high`, itself not included, and whether there may be more."""
    table, limit = resources.settings.bridges_table, 2 * JOURNAL_BATCH_SIZE + 1
    found = resources.tables.query_items(table, pk, min_sk="j#", max_sk=high, descending=True, limit=limit)
    entries = _entries(row for row in reversed(found) if row["sk"] != high)[::-1]
    return entries, len(found) == limit and bool(entries)


def read_journal_page(
    resources: Resources, turn: Turn, *, after: str = "", limit: int
) -> tuple[list[JournalEntry], str | None]:
    """Edits in their order, behind the edit `after`; and the key of the last one when there are more."""
    low = f"j#{after}~" if after else "j#"
    found = resources.tables.query_items(
        resources.settings.bridges_table, turn.pk, min_sk=low, max_sk="j#~", limit=2 * limit + 2
    )
    entries = _entries(found)
    return entries[:limit], entries[limit - 1].key if len(entries) > limit else None


def list_journal_entries(resources: Resources, tenant: str, turn: str) -> list[JournalEntry]:
    """All edits of a turn, the newest first."""
    found = resources.tables.query_items(
        resources.settings.bridges_table, build_turn_pk(tenant, turn), min_sk="j#", max_sk="j#~"
    )
    return _entries(found)[::-1]


def _entries(rows: Iterable[Item]) -> list[JournalEntry]:
    """Rows in their order: each edit, and behind it its mark."""
    entries: list[JournalEntry] = []
    for row in rows:
        key = row["sk"][2:].removesuffix(MARK_SUFFIX)
        data: dict[str, Any] = json.loads(row["data"])
        if not row["sk"].endswith(MARK_SUFFIX):
            entries.append(JournalEntry(key, JournalEdit.model_validate(data), tuple(row["tools"]), row))
        elif entries and entries[-1].key == key:
            entries[-1] = entries[-1].with_mark(EditMark.model_validate(data))
    return entries


def journal_entry_to_wire(entry: JournalEntry, to_wire_name: ToolNameMapper = str) -> dict[str, Any]:
    """The edit as it is shown: the names of the calls that take it back, not what they carry."""
    shown = {name: member for name, member in entry.edit.to_wire().items() if member != "" and name != "link"}
    shown |= {"toolName": to_wire_name(entry.edit.tool_name), "inverse": [to_wire_name(tool) for tool in entry.tools]}
    shown |= {"input": entry.edit.input, "state": entry.state}
    if mark := entry.mark:
        shown |= {"redoneBy": mark.redone} if mark.redone else {}
        shown |= {"undoneBy": mark.by} if mark.by != mark.redone else {}
        shown |= {"reason": mark.reason} if mark.reason else {}
    return shown
