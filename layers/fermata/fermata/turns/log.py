"""The turn log: all events of a turn, in order. The log is the stream, and the log is the lock (design §4).

An item's key is the number of its first event. The next number is `first + count` of the last item that was read,
so an append by somebody who has not read the end lands on an existing key and fails. What is stored there says
what happened meanwhile:

LostRace
  Ended         the turn is over
  Superseded    a newer attempt works on this round
  Moved         the step that was to be written makes no sense any more
Anything else (an answer, say) moves the writer on: the append is built again on what it found.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fermata.aws import blobs
from fermata.aws.clock import new_id
from fermata.aws.desk import Desk
from fermata.aws.dynamo import ConditionFailed, Item, Put, TransactionRefused, Write
from fermata.aws.trouble import TROUBLE
from fermata.turns.standing import Standing
from fermata.turns.turn import Place
from fermata.words.events import Event, RoundStarted, events_adapter

APPEND_TRIES = 50


class LostRace(Exception):
    """Somebody else went on; a normal end of work, never an error."""


class Ended(LostRace):
    pass


class Superseded(LostRace):
    pass


class Moved(LostRace):
    """The turn no longer stands where this step began; look again."""


@dataclass(frozen=True)
class Entry:
    """One item of the log: `count` events from number `first` on, and where the turn stood after them."""

    first: int
    count: int
    events: tuple[Event, ...]
    standing: Standing
    append_id: str
    at_ms: int

    @property
    def next(self) -> int:
        return self.first + self.count


def key(first: int) -> str:
    return f"e#{first:010d}"


def entry(desk: Desk, item: Item) -> Entry:
    data = desk.blobs.get(item["blob"]) if "blob" in item else json.loads(item["data"])
    return Entry(
        first=int(item["sk"][2:]),
        count=item["count"],
        events=tuple(events_adapter.validate_python(data)),
        standing=Standing.from_item(json.loads(item["s"])),
        append_id=item["id"],
        at_ms=item["at"],
    )


def item(desk: Desk, place: Place, made: Entry) -> Item:
    """The row of an entry; its events lie in the bucket when they are large."""
    events = [event.model_dump(mode="json", by_alias=True, exclude_none=True) for event in made.events]
    data = json.dumps(events, separators=(",", ":"))
    row: Item = {
        "pk": place.pk,
        "sk": key(made.first),
        "v": 1,
        "count": made.count,
        "s": json.dumps(made.standing.to_item(), separators=(",", ":")),
        "id": made.append_id,
        "at": made.at_ms,
        "ttl": place.expires,
    }
    if len(data) <= blobs.LARGE:
        return row | {"data": data}
    return row | {"blob": desk.blobs.put(blobs.turn_folder(place.tenant, place.turn), events)}


def last(desk: Desk, pk: str, *, upto: int | None = None) -> Entry | None:
    """The newest entry (that begins at or before `upto`)."""
    high = key(upto) if upto is not None else "e#~"
    found = desk.tables.query(desk.settings.bridges_table, pk, low="e#", high=high, descending=True, limit=1)
    return entry(desk, found[0]) if found else None


def since(desk: Desk, pk: str, first: int, limit: int | None = None) -> list[Entry]:
    """Entries from number `first` on."""
    found = desk.tables.query(desk.settings.bridges_table, pk, low=key(first), high="e#~", limit=limit)
    return [entry(desk, row) for row in found]


Telling = Callable[[Standing], Sequence[Event]]
Changes = Callable[[Standing], Mapping[str, Any]]
Along = Callable[[Entry, Standing], Sequence[Write]]
"""The writes that must be true together with an append, given the entry and where the turn stood before it."""


def nothing(_entry: Entry, _before: Standing) -> Sequence[Write]:
    return ()


def unchanged(_before: Standing) -> Mapping[str, Any]:
    return {}


def telling(*events: Event) -> Telling:
    return lambda _: events


class Log:
    """One writer's view of a turn's log, read to its end. Not thread-safe: see vigil.py."""

    def __init__(self, desk: Desk, place: Place, entry_number: int, next_number: int, standing: Standing) -> None:
        self._desk = desk
        self.place = place
        self.entry = entry_number
        self.next = next_number
        self.standing = standing
        self.owner = ""
        """Set when this writer works on a round: any other's roundStarted then supersedes it."""

    @classmethod
    def behind(cls, desk: Desk, place: Place, tail: Entry) -> "Log":
        return cls(desk, place, tail.first, tail.next, tail.standing)

    def append(
        self,
        events: Telling,
        along: Along = nothing,
        *,
        expect: Callable[[Standing], bool] = lambda _: True,
        changes: Changes = unchanged,
    ) -> Entry:
        """Write events and what belongs to them as one transaction, after whatever others appended meanwhile.

        `events`, `along` and `changes` (what the events do not tell) are given where the turn stands right before.
        `expect` says whether the append still makes sense there; if not, Moved is raised. A condition of
        `along` that does not hold raises TransactionRefused, its reasons in the order of `along`.
        """
        append_id = new_id(16)
        for _ in range(APPEND_TRIES):
            if self.standing.phase == "ended":
                raise Ended
            if not expect(self.standing):
                raise Moved
            made = self._made(events(self.standing), changes(self.standing), append_id)
            put = Put(self._desk.settings.bridges_table, item(self._desk, self.place, made), absent=True)
            found = self._try(put, tuple(along(made, self.standing)))
            if found is None or found.append_id == append_id:
                self.entry, self.next, self.standing = made.first, made.next, made.standing
                return made
            self.meet(found)
        raise RuntimeError(f"The log of turn {self.place.turn} moved on {APPEND_TRIES} times before an append.")

    def _made(self, events: Sequence[Event], changes: Mapping[str, Any], append_id: str) -> Entry:
        settled = dict(changes)
        for number, event in enumerate(events, self.next):
            if isinstance(event, RoundStarted):
                settled["begun"] = number
        standing = self.standing.after(events).replace(**settled)
        return Entry(self.next, len(events), tuple(events), standing, append_id, int(self._desk.clock.time() * 1000))

    def _try(self, put: Put, along: tuple[Write, ...]) -> Entry | None:
        """None when written; the entry in the way when the number was taken."""
        try:
            self._desk.tables.write(put, *along)
        except ConditionFailed as refused:
            return self._in_the_way(refused.item)
        except TransactionRefused as refused:
            if not refused.reasons[0].failed:
                raise TransactionRefused(refused.reasons[1:]) from refused
            return self._in_the_way(refused.reasons[0].item)
        except TROUBLE:
            # No answer, or one that leaves it open: what is stored under the number says whether it was written.
            stored = self._desk.tables.get(put.table, put.item["pk"], put.item["sk"])
            if stored is None:
                raise
            return entry(self._desk, stored)
        return None

    def _in_the_way(self, found: Item | None) -> Entry:
        if found is None:
            raise RuntimeError("A log item stood in the way and is gone; nothing deletes them while a turn runs.")
        return entry(self._desk, found)

    def meet(self, found: Entry) -> None:
        """Take in what somebody else appended."""
        self.entry, self.next, self.standing = found.first, found.next, found.standing
        if found.standing.phase == "ended":
            raise Ended
        if self.owner and any(isinstance(event, RoundStarted) and event.owner != self.owner for event in found.events):
            raise Superseded

    def peek(self) -> None:
        """Catch up with one read of the next number (and more only when something is there)."""
        row = self._desk.tables.get(self._desk.settings.bridges_table, self.place.pk, key(self.next))
        while row is not None:
            self.meet(entry(self._desk, row))
            row = self._desk.tables.get(self._desk.settings.bridges_table, self.place.pk, key(self.next))
