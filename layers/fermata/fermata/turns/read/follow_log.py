"""Follow turn logs: read what is there, then poll for new entries, with one poller for all readers of a process."""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fermata.aws import observability
from fermata.aws.clock import JoinableThread
from fermata.aws.dynamodb_items_and_writes import Item, deserialize_item
from fermata.aws.resources import Resources
from fermata.domain.errors import LogRewound, NotFound
from fermata.domain.events import CancelledEvent
from fermata.turns.read.poll_schedule import PollSchedule
from fermata.turns.turn import TURN_NOT_FOUND_MESSAGE, Turn
from fermata.turns.turn_log import LogEntry, build_entry_key, log_entry_from_item, read_entries_from, read_last_entry
from fermata.turns.turn_state_from_log import TurnState

POLL_BATCH_SIZE = 90
MAX_EXISTENCE_CHECKS = 10
"""Logs that a poll looks for besides, in the same request, which reads 100 items at most."""
MAX_POLL_FAILURES = 5
MAX_HEARD_ROWS = 100
"""That are kept for one reader. What it was told of beyond them is read from the table."""
ERASED_LOG_REASON = "The data of this turn was erased."
"""How the stream of a reader ends that has missed the end of a log before it was erased."""


def read_entries_after(resources: Resources, turn: Turn, event_number: int) -> list[LogEntry]:
    """Return the entries that follow an event, beginning with the entry that contains the next one, or else the last.

    Args:
        turn: The turn whose log is read.
        event_number: The last event that the reader has; 0 for none. The first entry may hold earlier events too.

    Raises:
        NotFound: The turn has no log.
        LogRewound: There is no such event; the error names the last one (decision 0162).
    """
    first_entry = read_last_entry(resources, turn.pk, at_or_before=event_number + 1)
    if first_entry is None:
        raise NotFound(TURN_NOT_FOUND_MESSAGE)
    next_number = first_entry.next_number
    if next_number <= event_number:
        last_seq = next_number - 1
        raise LogRewound(
            f"Event {event_number} does not exist: the last one is number {last_seq}. Follow the turn from after=0.",
            last_seq=last_seq,
        )
    return [first_entry, *read_entries_from(resources, turn.pk, next_number)]


DeliverEntry = Callable[[LogEntry | None], None]
"""Called in the polling thread with each new entry in order, or with None when the log can no longer be read."""


@dataclass(eq=False)
class LogFollower:
    """One reader of one log, and the number of the entry it waits for."""

    pk: str
    next_number: int
    deliver: DeliverEntry
    schedule: PollSchedule
    heard_rows: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """Rows of which the poller was told, by their numbers, until they are delivered (decision 0656)."""
    heard_until: int = 0
    """The greatest number of which it was told, whether its row is kept or not."""

    @property
    def place(self) -> tuple[str, int]:
        """The partition and the number of the entry it waits for."""
        return self.pk, self.next_number

    def hear(self, number: int, row: Mapping[str, Any]) -> None:
        """Keep a row that the reader has not seen yet, and look at once."""
        if number < self.next_number:
            return
        self.heard_until = max(self.heard_until, number)
        if len(self.heard_rows) < MAX_HEARD_ROWS:
            self.heard_rows[number] = row
        self.schedule.next_poll_at = 0

    def forget_seen_rows(self) -> None:
        """Forget the rows of entries that were delivered."""
        for number in [number for number in self.heard_rows if number < self.next_number]:
            del self.heard_rows[number]


@dataclass(eq=False)
class LogPoller:
    """Polls for all readers of this process in one thread, which reads their next entries with one request."""

    resources: Resources
    _followers: set[LogFollower] = field(default_factory=set)
    _changed: threading.Condition = field(init=False)
    _thread: JoinableThread | None = None
    _failures: int = 0
    _hears_appends: bool = False

    def __post_init__(self) -> None:
        self._changed = self.resources.clock.new_condition()

    def follow(
        self, turn: Turn, next_number: int, deliver: DeliverEntry, last_entry: LogEntry | None = None
    ) -> LogFollower:
        """Deliver the entries from number `next_number` on, until `unfollow`.

        Args:
            last_entry: The entry before them, if it was read. It tells how often to poll.
        """
        schedule = PollSchedule(self.resources.settings, self.resources.clock.monotonic(), last_entry)
        follower = LogFollower(turn.pk, next_number, deliver, schedule)
        with self._changed:
            self._followers.add(follower)
            if self._thread is None:
                self._thread = self.resources.clock.start_thread(self._run, "log-poller")
            self._changed.notify()
        return follower

    def unfollow(self, follower: LogFollower) -> None:
        """Deliver nothing more to a follower. Safe to repeat."""
        with self._changed:
            self._followers.discard(follower)
            self._changed.notify()

    def hear_append(self, row: Mapping[str, Any]) -> None:
        """Deliver an entry that was appended just now, without reading it (decision 0656).

        Only who hears of appends can call this: the service on one machine does (decision 0167).

        Args:
            row: The entry's row as it is stored, in DynamoDB's typed form.
        """
        pk, number = row["pk"]["S"], int(row["sk"]["S"][2:])
        with self._changed:
            told = [follower for follower in self._followers if follower.pk == pk]
            for follower in told:
                follower.hear(number, row)
            if told:
                self._changed.notify()

    def set_hearing(self, hears_appends: bool) -> None:
        """Say whether `hear_append` is called for each append from now on, so that polls may be far apart."""
        with self._changed:
            self._hears_appends = hears_appends
            for follower in self._followers:
                follower.heard_rows.clear()
                follower.schedule.next_poll_at = 0  # what came before, nobody has told
            self._changed.notify()

    def _run(self) -> None:
        while True:
            due_followers = self._wait_for_due()
            if due_followers is None:
                return
            self._poll(due_followers)

    def _wait_for_due(self) -> list[LogFollower] | None:
        """Return the followers to poll now; None when the last one has left."""
        with self._changed:
            while self._followers:
                now = self.resources.clock.monotonic()
                first_poll_at = min(follower.schedule.next_poll_at for follower in self._followers)
                if first_poll_at <= now:
                    return self._select_due(now)
                self._changed.wait(first_poll_at - now)
            self._thread = None
            return None

    def _select_due(self, now: float) -> list[LogFollower]:
        """Include those that are due soon, so that they share a request."""
        latest = now + self.resources.settings.poll_ms / 4000
        due = [follower for follower in self._followers if follower.schedule.next_poll_at <= latest]
        return sorted(due, key=lambda follower: follower.schedule.next_poll_at)[:POLL_BATCH_SIZE]

    def _poll(self, followers: Sequence[LogFollower]) -> None:
        heard_rows = self._get_heard_rows(followers)
        entries = {place: self._parse_entry(deserialize_item(row)) for place, row in heard_rows.items()}
        unheard = [follower for follower in followers if follower.place not in entries]
        if unheard and (read := self._try_reading(unheard)) is not None:
            entries |= read
        elif unheard:
            followers = [follower for follower in followers if follower.place in entries]
        now = self.resources.clock.monotonic()
        for follower in followers:
            place = follower.place
            is_heard = follower.next_number in follower.heard_rows  # not what another reader of this log was told of
            if place in entries:
                self._deliver(follower, entries[place], now)
            else:
                follower.schedule.add_miss(now)
            self._schedule_next_poll(follower, is_heard=is_heard, is_found=place in entries)

    def _try_reading(self, followers: Sequence[LogFollower]) -> dict[tuple[str, int], LogEntry | None] | None:
        """Return the next entries of these followers that exist, or None if they cannot be read now."""
        now = self.resources.clock.monotonic()
        checked = [follower for follower in followers if follower.schedule.is_existence_due(now)]
        try:
            entries = self._read_next_entries(followers, checked[:MAX_EXISTENCE_CHECKS])
        except Exception:  # noqa: BLE001 - logged; after some failures the readers are notified
            self._handle_poll_failure(followers)
            return None
        self._failures = 0
        return entries

    def _get_heard_rows(self, followers: Sequence[LogFollower]) -> dict[tuple[str, int], Mapping[str, Any]]:
        """Return the rows for which these followers wait, and that were told. One look needs no lock."""
        rows = ((follower.place, follower.heard_rows.get(follower.next_number)) for follower in followers)
        return {place: row for place, row in rows if row is not None}

    def _schedule_next_poll(self, follower: LogFollower, *, is_heard: bool, is_found: bool) -> None:
        """Look again at once for entries of which it was told; for others seldom while it hears of appends.

        A row behind one that is missing waits until that one was told, or is found by a read. Behind an entry that a
        read has found there may be more that were written before anybody listened.
        """
        with self._changed:
            follower.forget_seen_rows()
            is_told_of_more = is_found and follower.next_number <= follower.heard_until
            if is_told_of_more or follower.next_number in follower.heard_rows:
                follower.schedule.next_poll_at = 0
            elif self._hears_appends and (is_heard or not is_found):
                follower.schedule.delay_poll(self.resources.clock.monotonic())

    def _read_next_entries(
        self, followers: Sequence[LogFollower], checked: Sequence[LogFollower]
    ) -> dict[tuple[str, int], LogEntry | None]:
        """Return the entries that exist, by partition and number; None for one that cannot be parsed.

        Args:
            checked: Those whose logs are looked for too. An erased one ends with an entry that is not stored.
        """
        next_keys = {(follower.pk, build_entry_key(follower.next_number)) for follower in followers}
        first_keys = {(follower.pk, build_entry_key(1)) for follower in checked}
        items = self._read_items(next_keys | first_keys, any(it.schedule.needs_consistent_read for it in followers))
        entries = {(pk, int(sk[2:])): self._parse_entry(items[pk, sk]) for pk, sk in next_keys & items.keys()}
        missing = first_keys - items.keys()
        if missing:  # it is rare, so that being sure may cost a request
            missing -= self._read_items(missing, consistent=True).keys()
        now = self.resources.clock.monotonic()
        for follower in checked:
            if (follower.pk, build_entry_key(1)) in missing:
                entries.setdefault((follower.pk, follower.next_number), self._end_erased_log(follower.next_number))
            else:
                follower.schedule.add_existence(now)
        return entries

    def _read_items(self, keys: Collection[tuple[str, str]], consistent: bool) -> dict[tuple[str, str], Item]:
        table = self.resources.settings.bridges_table
        return self.resources.tables.batch_get_items(table, sorted(keys), consistent=consistent)

    def _end_erased_log(self, number: int) -> LogEntry:
        at_ms = int(self.resources.clock.time() * 1000)
        return LogEntry(number, 1, (CancelledEvent(reason=ERASED_LOG_REASON),), TurnState(phase="ended"), "", at_ms)

    def _parse_entry(self, item: Item) -> LogEntry | None:
        try:
            return log_entry_from_item(self.resources, item)
        except Exception:  # noqa: BLE001 - logged; an unreadable log must not affect the readers of others
            observability.log_exception("log_poller.entry_unreadable", row=item["pk"])
            return None

    def _deliver(self, follower: LogFollower, log_entry: LogEntry | None, now: float) -> None:
        """Deliver an entry. A reader that gets None or the last one, or whose delivery fails, is followed no longer."""
        if log_entry is not None:
            follower.next_number = log_entry.next_number
            follower.schedule.add_entry(log_entry, now)
        try:
            follower.deliver(log_entry)
        except Exception:  # noqa: BLE001 - logged; a reader that is gone must not end the others' thread
            observability.log_exception("log_poller.delivery_failed", row=follower.pk)
            log_entry = None
        if log_entry is None or log_entry.state.phase == "ended":
            self.unfollow(follower)

    def _handle_poll_failure(self, followers: Sequence[LogFollower]) -> None:
        self._failures += 1
        observability.log_exception("log_poller.poll_failed", failures=self._failures)
        now = self.resources.clock.monotonic()
        for follower in followers:
            follower.schedule.next_poll_at = now + self.resources.settings.idle_poll_ms / 1000
            if self._failures >= MAX_POLL_FAILURES:
                self._deliver(follower, None, now)
