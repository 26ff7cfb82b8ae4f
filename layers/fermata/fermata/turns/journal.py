"""A turn's edits and the way back from each (docs/editing.md): what was told when they were answered, never changed.

Rows lie in the turn's partition: `j#<edit>` is an edit, `j#<edit>#u` what undos have made of it so far. An edit is
named after the place of its call, `<round>#<index>`, so that edits sort as they were made.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from fermata.aws import blobs
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item, Put
from fermata.tools.editing import Step
from fermata.turns.turn import Place, Turn, partition
from fermata.words.base import Word
from fermata.words.dialect import Called

State = Literal["applied", "undone", "partly", "stuck"]
MARK = "#u"
AT_ONCE = 10
"""Edits an undo reads at once; it goes on from one answer to the next."""


class Link(Word):
    """An edit that an undo made: it took the call `step` of that edit's inverse, or `redoes` what that call had undone.

    Undos of undos all point to the edit a model made, however often it goes to and fro.
    """

    turn: str
    edit: str
    step: int
    redoes: bool = False


class Tip(Word):
    """The edit that redid the call `step`. Its own inverse is the newest way back: `tool` is the one call it has, or
    empty where it is not a single call, and the first inverse has to do.
    """

    step: int
    turn: str
    edit: str
    tool: str = ""


class Edit(Word):
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
    link: Link | None = None


class Mark(Word):
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
    tips: tuple[Tip, ...] = ()


@dataclass(frozen=True)
class Entry:
    """An edit as it is stored, and the mark it has. `tools`: those that take it back now."""

    key: str
    edit: Edit
    tools: tuple[str, ...]
    inverse: Item
    mark: Mark | None = None

    @property
    def done(self) -> int:
        return self.mark.done if self.mark else 0

    @property
    def state(self) -> State:
        if not self.tools:
            return "stuck"
        if self.done >= len(self.tools):
            return "undone"
        return "partly" if self.done else "applied"

    @property
    def tips(self) -> tuple[Tip, ...]:
        return self.mark.tips if self.mark else ()

    def marked(self, mark: Mark) -> "Entry":
        newer = {tip.step: tip.tool for tip in mark.tips if tip.tool}
        tools = tuple(newer.get(step, tool) for step, tool in enumerate(self.tools))
        return replace(self, tools=tools, mark=mark)


def key_of(round_: int, call: int) -> str:
    return f"{round_:06d}#{call:04d}"


def key_in(effect_key: str, turn: str) -> str | None:
    """The edit's key, where the effect key is one of this turn's."""
    parts = effect_key.split("/")
    if len(parts) != 3 or parts[0] != turn or not all(part.isascii() and part.isdigit() for part in parts[1:]):
        return None
    return key_of(int(parts[1][:6]), int(parts[2][:4]))


def put(desk: Desk, place: Place, edit: Edit, steps: Iterable[Step]) -> Put:
    """The write that stores an edit; a large inverse is in the bucket when this returns."""
    inverse = [step.wire() for step in steps]
    text = json.dumps(inverse, separators=(",", ":"))
    item: Item = {
        "pk": place.pk,
        "sk": f"j#{key_of(edit.round, edit.call)}",
        "v": 1,
        "data": json.dumps(edit.model_dump(mode="json", exclude_defaults=True), separators=(",", ":")),
        "tools": [step["tool"] for step in inverse],
        "ttl": place.expires,
    }
    if len(text) <= blobs.LARGE:
        item["inverse"] = text
    else:
        item["blob"] = desk.blobs.put(blobs.turn_folder(place.tenant, place.turn), inverse)
    return Put(desk.settings.bridges_table, item, absent=True)


def mark(desk: Desk, place: Place, key: str, made: Mark) -> Put:
    """Only the undo that holds the conversation writes it, so there is nobody to race."""
    item: Item = {
        "pk": place.pk,
        "sk": f"j#{key}{MARK}",
        "v": 1,
        "data": json.dumps(made.model_dump(mode="json", exclude_defaults=True), separators=(",", ":")),
        "ttl": place.expires,
    }
    return Put(desk.settings.bridges_table, item)


def steps(desk: Desk, tenant: str, entry: Entry) -> list[Step]:
    """The calls that take it back now."""
    found = _stored(desk, entry)
    for tip in entry.tips:
        made = find(desk, tenant, tip.turn, tip.edit) if tip.tool else None
        if made is not None:
            [found[tip.step]] = _stored(desk, made)
    return found


def _stored(desk: Desk, entry: Entry) -> list[Step]:
    inverse = entry.inverse
    stored = desk.blobs.get(inverse["blob"]) if "blob" in inverse else json.loads(inverse["inverse"])
    return [Step.read(step) for step in stored]


def find(desk: Desk, tenant: str, turn: str, key: str) -> Entry | None:
    rows = (
        desk.tables.get(desk.settings.bridges_table, partition(tenant, turn), f"j#{key}{end}") for end in ("", MARK)
    )
    return next(iter(_entries(row for row in rows if row is not None)), None)


def downwards(desk: Desk, tenant: str, turn: str, start: str = "") -> Iterator[Entry]:
    """A turn's edits from the edit `start` (or the newest) on, the newest first; read a few at a time."""
    high = f"j#{start}~" if start else "j#~"
    while True:
        entries, more = _some(desk, partition(tenant, turn), high)
        yield from entries
        if not more:
            return
        high = f"j#{entries[-1].key}"


def _some(desk: Desk, pk: str, high: str) -> tuple[list[Entry], bool]:
    """The highest entries up to `high`, itself not included, and whether there may be more."""
    table, limit = desk.settings.bridges_table, 2 * AT_ONCE + 1
    found = desk.tables.query(table, pk, low="j#", high=high, descending=True, limit=limit)
    entries = _entries(row for row in reversed(found) if row["sk"] != high)[::-1]
    return entries, len(found) == limit and bool(entries)


def page(desk: Desk, turn: Turn, *, after: str = "", limit: int) -> tuple[list[Entry], str | None]:
    """Edits in their order, behind the edit `after`; and the key of the last one when there are more."""
    low = f"j#{after}~" if after else "j#"
    found = desk.tables.query(desk.settings.bridges_table, turn.pk, low=low, high="j#~", limit=2 * limit + 2)
    entries = _entries(found)
    return entries[:limit], entries[limit - 1].key if len(entries) > limit else None


def everything(desk: Desk, tenant: str, turn: str) -> list[Entry]:
    """All edits of a turn, the newest first."""
    found = desk.tables.query(desk.settings.bridges_table, partition(tenant, turn), low="j#", high="j#~")
    return _entries(found)[::-1]


def _entries(rows: Iterable[Item]) -> list[Entry]:
    """Rows in their order: each edit, and behind it its mark."""
    entries: list[Entry] = []
    for row in rows:
        key = row["sk"][2:].removesuffix(MARK)
        data: dict[str, Any] = json.loads(row["data"])
        if not row["sk"].endswith(MARK):
            entries.append(Entry(key, Edit.model_validate(data), tuple(row["tools"]), row))
        elif entries and entries[-1].key == key:
            entries[-1] = entries[-1].marked(Mark.model_validate(data))
    return entries


def view(entry: Entry, called: Called = str) -> dict[str, Any]:
    """The edit as it is shown: the names of the calls that take it back, not what they carry."""
    shown = {name: member for name, member in entry.edit.wire().items() if member != "" and name != "link"}
    shown |= {"toolName": called(entry.edit.tool_name), "inverse": [called(tool) for tool in entry.tools]}
    shown |= {"input": entry.edit.input, "state": entry.state}
    if mark := entry.mark:
        shown |= {"redoneBy": mark.redone} if mark.redone else {}
        shown |= {"undoneBy": mark.by} if mark.by != mark.redone else {}
        shown |= {"reason": mark.reason} if mark.reason else {}
    return shown
