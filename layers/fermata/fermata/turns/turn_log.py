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

from fermata.aws import blob_store
from fermata.aws.clock import new_id
from fermata.aws.dynamodb import ConditionFailed, Item, Put, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.domain.events import Event, RoundStartedEvent, parse_events
from fermata.turns.state import TurnState
from fermata.turns.turn import TurnPartition

MAX_APPEND_ATTEMPTS = 50


class LostRace(Exception):
    """Somebody else went on; a normal end of work, never an error."""


class TurnEnded(LostRace):
    pass


class Superseded(LostRace):
    pass


class StaleState(LostRace):
    """The turn no longer stands where this step began; look again."""


@dataclass(frozen=True)
class LogEntry:
    """One item of the log: `count` events from number `first` on, and where the turn stood after them."""

    first_number: int
    event_count: int
    events: tuple[Event, ...]
    state: TurnState
    append_id: str
    at_ms: int

    @property
    def next_number(self) -> int:
        return self.first_number + self.event_count


def build_entry_key(first_number: int) -> str:
    return f"e#{first_number:010d}"


def log_entry_from_item(resources: Resources, item: Item) -> LogEntry:
    data = resources.blobs.get_json(item["blob"]) if "blob" in item else json.loads(item["data"])
    return LogEntry(
        first_number=int(item["sk"][2:]),
        event_count=item["count"],
        events=parse_events(data),
        state=TurnState.from_item(json.loads(item["s"])),
        append_id=item["id"],
        at_ms=item["at"],
    )


def log_entry_to_item(resources: Resources, partition: TurnPartition, log_entry: LogEntry) -> Item:
    """The row of an entry; its events lie in the bucket when they are large."""
    events = [event.model_dump(mode="json", by_alias=True, exclude_none=True) for event in log_entry.events]
    data = json.dumps(events, separators=(",", ":"))
    row: Item = {
        "pk": partition.pk,
        "sk": build_entry_key(log_entry.first_number),
        "v": 1,
        "count": log_entry.event_count,
        "s": json.dumps(log_entry.state.to_item(), separators=(",", ":")),
        "id": log_entry.append_id,
        "at": log_entry.at_ms,
        "ttl": partition.expires,
    }
    if len(data) <= blob_store.BLOB_THRESHOLD_BYTES:
        return row | {"data": data}
    return row | {"blob": resources.blobs.put_json(blob_store.turn_folder(partition.tenant, partition.turn), events)}


def read_last_entry(resources: Resources, pk: str, *, at_or_before: int | None = None) -> LogEntry | None:
    """The newest entry (that begins at or before `upto`)."""
    high = build_entry_key(at_or_before) if at_or_before is not None else "e#~"
    found = resources.tables.query_items(
        resources.settings.bridges_table, pk, min_sk="e#", max_sk=high, descending=True, limit=1
    )
    return log_entry_from_item(resources, found[0]) if found else None


def read_entries_from(resources: Resources, pk: str, first_number: int, limit: int | None = None) -> list[LogEntry]:
    """Entries from number `first` on."""
    found = resources.tables.query_items(
        resources.settings.bridges_table, pk, min_sk=build_entry_key(first_number), max_sk="e#~", limit=limit
    )
    return [log_entry_from_item(resources, row) for row in found]


BuildEvents = Callable[[TurnState], Sequence[Event]]
BuildStateChanges = Callable[[TurnState], Mapping[str, Any]]
BuildWrites = Callable[[LogEntry, TurnState], Sequence[Write]]
"""The writes that must be true together with an append, given the entry and where the turn stood before it."""


def no_writes(_entry: LogEntry, _before: TurnState) -> Sequence[Write]:
    return ()


def no_state_changes(_before: TurnState) -> Mapping[str, Any]:
    return {}


def fixed_events(*events: Event) -> BuildEvents:
    return lambda _: events


class TurnLog:
    """One writer's view of a turn's log, read to its end. Not thread-safe: see vigil.py."""

    def __init__(
        self, resources: Resources, partition: TurnPartition, entry_number: int, next_number: int, state: TurnState
    ) -> None:
        self._resources = resources
        self.partition = partition
        self.last_entry_number = entry_number
        self.next_number = next_number
        self.state = state
        self.owner = ""
        """Set when this writer works on a round: any other's roundStarted then supersedes it."""

    @classmethod
    def from_last_entry(cls, resources: Resources, partition: TurnPartition, last_entry: LogEntry) -> "TurnLog":
        return cls(resources, partition, last_entry.first_number, last_entry.next_number, last_entry.state)

    def append(
        self,
        build_events: BuildEvents,
        build_writes: BuildWrites = no_writes,
        *,
        is_expected: Callable[[TurnState], bool] = lambda _: True,
        build_state_changes: BuildStateChanges = no_state_changes,
    ) -> LogEntry:
        """Write events and what belongs to them as one transaction, after whatever others appended meanwhile.

        `events`, `along` and `changes` (what the events do not tell) are given where the turn stands right before.
        `expect` says whether the append still makes sense there; if not, Moved is raised. A condition of
        `along` that does not hold raises TransactionRefused, its reasons in the order of `along`.
        """
        append_id = new_id(16)
        for _ in range(MAX_APPEND_ATTEMPTS):
            if self.state.phase == "ended":
                raise TurnEnded
            if not is_expected(self.state):
                raise StaleState
            made = self._made(build_events(self.state), build_state_changes(self.state), append_id)
            put = Put(
                self._resources.settings.bridges_table,
                log_entry_to_item(self._resources, self.partition, made),
                if_absent=True,
            )
            found = self._try(put, tuple(build_writes(made, self.state)))
            if found is None or found.append_id == append_id:
                self.last_entry_number, self.next_number, self.state = made.first_number, made.next_number, made.state
                return made
            self.accept_entry(found)
        raise RuntimeError(
            f"The log of turn {self.partition.turn} moved on {MAX_APPEND_ATTEMPTS} times before an append."
        )

    def _made(self, events: Sequence[Event], changes: Mapping[str, Any], append_id: str) -> LogEntry:
        settled = dict(changes)
        for number, event in enumerate(events, self.next_number):
            if isinstance(event, RoundStartedEvent):
                settled["begun"] = number
        standing = self.state.after_events(events).replace(**settled)
        return LogEntry(
            self.next_number, len(events), tuple(events), standing, append_id, int(self._resources.clock.time() * 1000)
        )

    def _try(self, put: Put, along: tuple[Write, ...]) -> LogEntry | None:
        """None when written; the entry in the way when the number was taken."""
        try:
            self._resources.tables.write_items(put, *along)
        except ConditionFailed as refused:
            return self._in_the_way(refused.item)
        except TransactionCanceled as refused:
            if not refused.reasons[0].condition_failed:
                raise TransactionCanceled(refused.reasons[1:]) from refused
            return self._in_the_way(refused.reasons[0].item)
        except AWS_ERRORS:
            # No answer, or one that leaves it open: what is stored under the number says whether it was written.
            stored = self._resources.tables.get_item(put.table, put.item["pk"], put.item["sk"])
            if stored is None:
                raise
            return log_entry_from_item(self._resources, stored)
        return None

    def _in_the_way(self, found: Item | None) -> LogEntry:
        if found is None:
            raise RuntimeError("A log item stood in the way and is gone; nothing deletes them while a turn runs.")
        return log_entry_from_item(self._resources, found)

    def accept_entry(self, log_entry: LogEntry) -> None:
        """Take in what somebody else appended."""
        self.last_entry_number, self.next_number, self.state = (
            log_entry.first_number,
            log_entry.next_number,
            log_entry.state,
        )
        if log_entry.state.phase == "ended":
            raise TurnEnded
        if self.owner and any(
            isinstance(event, RoundStartedEvent) and event.owner != self.owner for event in log_entry.events
        ):
            raise Superseded

    def read_new_entries(self) -> None:
        """Catch up with one read of the next number (and more only when something is there)."""
        row = self._resources.tables.get_item(
            self._resources.settings.bridges_table, self.partition.pk, build_entry_key(self.next_number)
        )
        while row is not None:
            self.accept_entry(log_entry_from_item(self._resources, row))
            row = self._resources.tables.get_item(
                self._resources.settings.bridges_table, self.partition.pk, build_entry_key(self.next_number)
            )
