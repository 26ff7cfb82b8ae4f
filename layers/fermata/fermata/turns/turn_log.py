"""Append to and read the turn log: all events of a turn, in order.

The log is the event stream that clients read. It is also the lock: the sort key of an entry is the number of its first
event, and every append is conditional. A writer that has not read the end of the log therefore writes to an existing
key and fails. The entry stored under that key shows what happened meanwhile. Either it raises LostRace, or (after an
answer, for example) the append is built again behind it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from fermata.aws import blob_store, observability
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import (
    CancellationReason,
    ConditionFailed,
    Item,
    Put,
    TransactionCanceled,
    Write,
)
from fermata.aws.resources import Resources
from fermata.aws.transient_errors import AWS_ERRORS
from fermata.domain.events import Event, RoundStartedEvent, parse_events
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.hooks.hook_points import has_hook_points
from fermata.turns.turn import Turn, TurnPartition
from fermata.turns.turn_state_from_log import TurnState
from fermata.turns.webhooks.outbox import build_outbox_put, has_webhook_events, queue_entry

MAX_APPEND_ATTEMPTS = 50
MAX_REFRESH_READS = 3


class LostRace(Exception):
    """Another writer was faster. A normal end of work, never an error."""


class TurnEnded(LostRace):
    """The turn is over; nothing may be appended."""


class Superseded(LostRace):
    """A newer invocation has taken the round."""


class StaleState(LostRace):
    """The turn is no longer in the state in which this step began: read it again."""


@value_dataclass(frozen=True)
class LogEntry:
    """One item of the log: `event_count` events from number `first_number` on, and the turn's state after them."""

    first_number: int
    event_count: int
    events: tuple[Event, ...]
    state: TurnState
    append_id: str
    """Chosen by the writer, who recognises its own entry by it when the answer to a write was lost."""
    at_ms: int
    """Epoch milliseconds."""

    @property
    def next_number(self) -> int:
        """The number of the event that follows the entry's last one."""
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
    """Return the row of an entry. Large events are stored in the bucket before this returns."""
    events = [event.model_dump(mode="json", by_alias=True, exclude_none=True) for event in log_entry.events]
    data = json.dumps(events, separators=(",", ":"))
    item: Item = {
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
        return item | {"data": data}
    return item | {"blob": resources.blobs.put_json(blob_store.turn_folder(partition.tenant, partition.turn), events)}


def read_last_entry(resources: Resources, pk: str, *, at_or_before: int | None = None) -> LogEntry | None:
    """Return the newest entry; None if there is none.

    Args:
        pk: The partition of the turn.
        at_or_before: The greatest number that the entry's first event may have; None for any.
    """
    max_sk = build_entry_key(at_or_before) if at_or_before is not None else "e#~"
    items = resources.tables.query_items(
        resources.settings.bridges_table, pk, min_sk="e#", max_sk=max_sk, descending=True, limit=1
    )
    return log_entry_from_item(resources, items[0]) if items else None


def read_entries_from(resources: Resources, pk: str, first_number: int, limit: int | None = None) -> list[LogEntry]:
    """Return the entries from a number on, the oldest first.

    Args:
        pk: The partition of the turn.
        first_number: The least number that the first event of an entry may have.
        limit: The greatest number of entries; None for all.
    """
    items = resources.tables.query_items(
        resources.settings.bridges_table, pk, min_sk=build_entry_key(first_number), max_sk="e#~", limit=limit
    )
    return [log_entry_from_item(resources, item) for item in items]


def read_whole_log(resources: Resources, pk: str, *, with_states: bool = False) -> list[LogEntry]:
    """Return all entries, oldest first.

    Args:
        resources: The table, and the bucket of large entries.
        pk: The partition of the turn.
        with_states: Whether also the turn's state and the time of each entry are read, not of the last one only.
    """
    last_entry = read_last_entry(resources, pk)
    if last_entry is None:
        return []
    items = resources.tables.query_items(
        resources.settings.bridges_table,
        pk,
        min_sk="e#",
        max_sk=build_entry_key(last_entry.first_number - 1),
        attributes=() if with_states else ("sk", "count", "data", "blob"),
    )
    if with_states:
        return [*(log_entry_from_item(resources, item) for item in items), last_entry]
    return [*(_build_shown_entry(resources, item) for item in items), last_entry]


def _build_shown_entry(resources: Resources, item: Item) -> LogEntry:
    data = resources.blobs.get_json(item["blob"]) if "blob" in item else json.loads(item["data"])
    return LogEntry(int(item["sk"][2:]), item["count"], parse_events(data), _UNKNOWN_STATE, "", 0)


_UNKNOWN_STATE = TurnState()


def read_end_type(resources: Resources, turn: Turn) -> str | None:
    """Return the type of the terminal event (done, error or cancelled), or None while the turn runs."""
    last_entry = read_last_entry(resources, turn.pk)
    if last_entry is None or last_entry.state.phase != "ended":
        return None
    return last_entry.events[-1].type


BuildEvents = Callable[[TurnState], Sequence[Event]]
"""Returns the events to append, given the state before them."""
UpdateState = Callable[[TurnState, TurnState], TurnState]
"""Returns the state to store, given the state before the events and the state after them."""
BuildWrites = Callable[[LogEntry, TurnState], Sequence[Write]]
"""Returns the writes of the same transaction, given the new entry and the state before it."""


def no_writes(_log_entry: LogEntry, _before: TurnState) -> Sequence[Write]:
    return ()


def no_state_update(_before: TurnState, after: TurnState) -> TurnState:
    return after


def fixed_events(*events: Event) -> BuildEvents:
    return lambda _before: events


def _has_listeners(log_entry: LogEntry) -> bool:
    """Return whether a webhook or an endpoint of the agent is told about the entry."""
    is_told = log_entry.state.has_webhooks and has_webhook_events(log_entry.events)
    return is_told or has_hook_points(log_entry.events, log_entry.state)


class TurnLog:
    """One writer's view of a log that it has read to its end. Not thread-safe: see round/stream_writer.py."""

    def __init__(
        self, resources: Resources, partition: TurnPartition, entry_number: int, next_number: int, state: TurnState
    ) -> None:
        self._resources = resources
        self.partition = partition
        self.last_entry_number = entry_number
        """Number of the first event of the last entry, which is the entry's sort key."""
        self.next_number = next_number
        self.state = state
        self.owner = ""
        """Set while this writer works on a round: a roundStarted event of any other owner then supersedes it."""
        self._is_superseded = False
        """Stays True: what this writer has not appended yet belongs to an attempt that is over (decision 0145)."""
        self.has_ended_turn = False
        """Whether this writer has ended the turn."""
        self._seen_at = resources.clock.monotonic()
        """When the call began that has shown or moved the end of the log: others may have appended since."""

    @classmethod
    def from_last_entry(cls, resources: Resources, partition: TurnPartition, last_entry: LogEntry) -> "TurnLog":
        return cls(resources, partition, last_entry.first_number, last_entry.next_number, last_entry.state)

    def append(
        self,
        build_events: BuildEvents,
        build_writes: BuildWrites = no_writes,
        *,
        is_expected: Callable[[TurnState], bool] = lambda _: True,
        update_state: UpdateState = no_state_update,
    ) -> LogEntry:
        """Write events, and the rows that belong to them, in one transaction behind the current end of the log.

        The callables are called again whenever another writer's entry came first.

        Args:
            build_events: The events, from the state right before them.
            build_writes: The other writes of the transaction.
            is_expected: Whether the append still makes sense in the state right before it.
            update_state: Sets in the new state what the events do not contain.

        Raises:
            TurnEnded: The turn is over.
            Superseded: This writer has an `owner`, and another owner has taken the round.
            StaleState: `is_expected` returned False.
            TransactionCanceled: A condition in `build_writes` failed; `reasons` are in the order of those writes. A
                ledger row that is stored already is left out instead (decision 0145).
        """
        append_id = new_id(16)
        for _ in range(MAX_APPEND_ATTEMPTS):
            self._check_may_write()
            if not is_expected(self.state):
                raise StaleState
            log_entry, put, writes = self._build_append(build_events, build_writes, update_state, append_id)
            began_at = self._resources.clock.monotonic()
            stored_entry = self._write(put, writes)
            if stored_entry is None or stored_entry.append_id == append_id:
                self._seen_at = began_at
                self.confirm_append(log_entry)
                self.has_ended_turn = log_entry.state.phase == "ended"
                return log_entry
            self.accept_entry(stored_entry)
        raise RuntimeError(
            f"The log of turn {self.partition.turn} moved on {MAX_APPEND_ATTEMPTS} times before an append."
        )

    def prepare_append(
        self,
        build_events: BuildEvents,
        build_writes: BuildWrites = no_writes,
        *,
        update_state: UpdateState = no_state_update,
    ) -> tuple[LogEntry, tuple[Write, ...]]:
        """Return an entry behind the known end of the log, and its writes, for a transaction of another turn.

        `confirm_append` follows when they are written. If they are refused, `read_new_entries` shows what came first.

        Args:
            build_events: As for `append`.
            build_writes: As for `append`.
            update_state: As for `append`.

        Raises:
            TurnEnded: The turn is over.
        """
        self._check_may_write()
        log_entry, put, writes = self._build_append(build_events, build_writes, update_state, new_id(16))
        return log_entry, (put, *writes)

    def _build_append(
        self, build_events: BuildEvents, build_writes: BuildWrites, update_state: UpdateState, append_id: str
    ) -> tuple[LogEntry, Put, tuple[Write, ...]]:
        log_entry = self._build_entry(build_events(self.state), update_state, append_id)
        item = log_entry_to_item(self._resources, self.partition, log_entry)
        put = Put(self._resources.settings.bridges_table, item, if_absent=True)
        return log_entry, put, (*build_writes(log_entry, self.state), *self._build_outbox(log_entry))

    def confirm_append(self, log_entry: LogEntry) -> None:
        """Continue behind an entry that was written."""
        self._move_behind(log_entry)
        self._queue_for_webhooks(log_entry)

    def _build_outbox(self, log_entry: LogEntry) -> Sequence[Write]:
        if not _has_listeners(log_entry):
            return ()
        partition = self.partition
        return (
            build_outbox_put(self._resources, partition.pk, log_entry.first_number, log_entry.at_ms, partition.expires),
        )

    def _queue_for_webhooks(self, log_entry: LogEntry) -> None:
        if _has_listeners(log_entry):
            queue_entry(self._resources, self.partition.tenant, self.partition.turn, log_entry.first_number)

    def _build_entry(self, events: Sequence[Event], update_state: UpdateState, append_id: str) -> LogEntry:
        state = update_state(self.state, self.state.after_events(events))
        for number, event in enumerate(events, self.next_number):
            if isinstance(event, RoundStartedEvent):
                state = replace(state, round_started_number=number)
        at_ms = int(self._resources.clock.time() * 1000)
        return LogEntry(self.next_number, len(events), tuple(events), state, append_id, at_ms)

    def _write(self, put: Put, writes: tuple[Write, ...]) -> LogEntry | None:
        """Return None when written, or the entry that is stored under the number already."""
        try:
            self._resources.tables.write_items(put, *writes)
        except ConditionFailed as refused:
            return self._existing_entry(refused.item)
        except TransactionCanceled as refused:
            if refused.reasons[0].condition_failed:
                return self._existing_entry(refused.reasons[0].item)
            other_writes = self._leave_out_stored_ledger_rows(writes, refused.reasons[1:])
            if len(other_writes) == len(writes):
                raise TransactionCanceled(refused.reasons[1:]) from refused
            return self._write(put, other_writes)
        except AWS_ERRORS:
            # No answer, or one that leaves it open: what is stored under the number says whether it was written.
            stored_item = self._resources.tables.get_item(put.table, put.item["pk"], put.item["sk"])
            if stored_item is None:
                raise
            return log_entry_from_item(self._resources, stored_item)
        return None

    def _leave_out_stored_ledger_rows(
        self, writes: tuple[Write, ...], reasons: Sequence[CancellationReason]
    ) -> tuple[Write, ...]:
        """Return the writes without refused ledger rows, unless another write was refused too.

        A row's key names its request, so the request is in the ledger. That must neither keep a response out of the
        log nor lead to another request (decision 0145).
        """
        refused_writes = [write for write, reason in zip(writes, reasons, strict=True) if reason.condition_failed]
        if not all(write.table == self._resources.settings.usage_table for write in refused_writes):
            return writes
        observability.log_warning("ledger.row_exists", turn=self.partition.turn, rows=len(refused_writes))
        return tuple(write for write in writes if write not in refused_writes)

    def _existing_entry(self, item: Item | None) -> LogEntry:
        if item is None:
            raise RuntimeError("A log item stood in the way and is gone; nothing deletes them while a turn runs.")
        return log_entry_from_item(self._resources, item)

    def _move_behind(self, log_entry: LogEntry) -> None:
        self.last_entry_number = log_entry.first_number
        self.next_number = log_entry.next_number
        self.state = log_entry.state

    def accept_entry(self, log_entry: LogEntry) -> None:
        """Continue behind an entry of another writer. Raises TurnEnded or Superseded when it ends this one's work."""
        self._move_behind(log_entry)
        round_starts = [event for event in log_entry.events if isinstance(event, RoundStartedEvent)]
        if self.owner and any(event.owner != self.owner for event in round_starts):
            self._is_superseded = True
        self._check_may_write()

    def _check_may_write(self) -> None:
        if self.state.phase == "ended":
            raise TurnEnded
        if self._is_superseded:
            raise Superseded

    def read_new_entries(self) -> None:
        """Read the entries that others have appended; one read when there are none. Raises as `accept_entry`."""
        self._check_may_write()
        tables = self._resources.tables
        table = self._resources.settings.bridges_table
        while True:
            began_at = self._resources.clock.monotonic()
            item = tables.get_item(table, self.partition.pk, build_entry_key(self.next_number))
            if item is None:
                self._seen_at = began_at
                return
            self.accept_entry(log_entry_from_item(self._resources, item))

    def refresh(self, max_age_seconds: float) -> None:
        """Read the entries of others until the end was known less than so long ago. Raises as `accept_entry`."""
        for _ in range(MAX_REFRESH_READS):
            if self._resources.clock.monotonic() - self._seen_at < max_age_seconds:
                return
            self.read_new_entries()
