"""Following a turn's log: where a reader begins, and one poller for all readers of a process (design §4, Readers)."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fermata.aws import observability
from fermata.aws.dynamodb import Item
from fermata.aws.resources import Resources
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry, build_entry_key, log_entry_from_item, read_entries_from, read_last_entry

POLL_BATCH_SIZE = 100
MAX_POLL_FAILURES = 5
POLL_BACKOFF_DIVISOR = 8
"""A reader that has waited t seconds is polled again after t/8, between POLL_MS and IDLE_POLL_MS."""


def read_entries_after(resources: Resources, turn: Turn, event_number: int) -> list[LogEntry]:
    """Everything after event number `after` that is written already, beginning with the entry that holds it.

    Raises Invalid, naming the last number, when `after` lies beyond the log.
    """
    at = read_last_entry(resources, turn.pk, at_or_before=event_number + 1)
    if at is None:
        raise NotFound("There is no such turn, or it is too old to be remembered.")
    if at.next_number <= event_number:
        raise InvalidRequest(f"Event {event_number} does not exist yet: the last one is number {at.next_number - 1}.")
    return [at, *read_entries_from(resources, turn.pk, at.next_number)]


DeliverEntry = Callable[[LogEntry | None], None]
"""Called from the polling thread with each new entry in order, or with None when the log cannot be read any more."""


@dataclass(eq=False)
class LogFollower:
    pk: str
    next_number: int
    deliver: DeliverEntry
    waiting_since: float
    next_poll_at: float
    found_entry: bool = False
    """Whether the last look found something; a second find in a row means that this reader is behind."""


@dataclass(eq=False)
class LogPoller:
    """All readers of this process share one thread, which asks for their next entries with one read."""

    resources: Resources
    _followers: set[LogFollower] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _thread: threading.Thread | None = None
    _failures: int = 0

    def follow(self, turn: Turn, next_number: int, deliver: DeliverEntry) -> LogFollower:
        now = self.resources.clock.monotonic()
        follower = LogFollower(turn.pk, next_number, deliver, waiting_since=now, next_poll_at=now + self._interval(0))
        with self._changed:
            self._followers.add(follower)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tails", daemon=True)
                self._thread.start()
            self._changed.notify()
        return follower

    def unfollow(self, follower: LogFollower) -> None:
        with self._changed:
            self._followers.discard(follower)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            due = self._next_due()
            if due is None:
                return
            self._poll(due)

    def _next_due(self) -> list[LogFollower] | None:
        """Waits for somebody to be due; None when the last reader has left."""
        with self._changed:
            while self._followers:
                now = self.resources.clock.monotonic()
                soonest = min(follower.next_poll_at for follower in self._followers)
                if soonest <= now:
                    slack = now + self.resources.settings.poll_ms / 4000
                    due = sorted(
                        (one for one in self._followers if one.next_poll_at <= slack), key=lambda one: one.next_poll_at
                    )
                    return due[:POLL_BATCH_SIZE]
                self._changed.wait(soonest - now)
            self._thread = None
            return None

    def _poll(self, due: Sequence[LogFollower]) -> None:
        try:
            found = self._read(due)
        except Exception:  # noqa: BLE001 - logged; the readers are told when it does not pass
            self._stumble(due)
            return
        self._failures = 0
        now = self.resources.clock.monotonic()
        for follower in due:
            place = (follower.pk, follower.next_number)
            is_found = place in found
            if is_found:
                self._hand_over(follower, found[place], now)
            is_behind = is_found and follower.found_entry
            follower.next_poll_at = now if is_behind else now + self._interval(now - follower.waiting_since)
            follower.found_entry = is_found

    def _read(self, due: Sequence[LogFollower]) -> dict[tuple[str, int], LogEntry | None]:
        """What there is under the numbers that are waited for; None for what cannot be read."""
        keys = sorted({(follower.pk, build_entry_key(follower.next_number)) for follower in due})
        rows = self.resources.tables.batch_get_items(self.resources.settings.bridges_table, keys)
        return {(pk, int(sk[2:])): self._entry(row) for (pk, sk), row in rows.items()}

    def _entry(self, row: Item) -> LogEntry | None:
        try:
            return log_entry_from_item(self.resources, row)
        except Exception:  # noqa: BLE001 - logged; one turn's trouble is not that of the other readers
            observability.log_exception("tails.entry_unreadable", row=row["pk"])
            return None

    def _hand_over(self, follower: LogFollower, entry: LogEntry | None, now: float) -> None:
        """A reader that is told None, or cannot be told, has left."""
        if entry is not None:
            follower.next_number, follower.waiting_since = entry.next_number, now
        try:
            follower.deliver(entry)
        except Exception:  # noqa: BLE001 - logged; a reader that is gone must not take the others' thread with it
            observability.log_exception("tails.delivery_failed", row=follower.pk)
            entry = None
        if entry is None:
            self.unfollow(follower)

    def _interval(self, waited: float) -> float:
        settings = self.resources.settings
        return min(settings.idle_poll_ms / 1000, max(settings.poll_ms / 1000, waited / POLL_BACKOFF_DIVISOR))

    def _stumble(self, due: Sequence[LogFollower]) -> None:
        self._failures += 1
        observability.log_exception("tails.poll_failed", failures=self._failures)
        now = self.resources.clock.monotonic()
        for follower in due:
            follower.next_poll_at = now + self.resources.settings.idle_poll_ms / 1000
            if self._failures >= MAX_POLL_FAILURES:
                self._hand_over(follower, None, now)
