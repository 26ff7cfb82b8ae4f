"""Following a turn's log: where a reader begins, and one poller for all readers of a process (design §4, Readers)."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fermata.aws import signals
from fermata.aws.desk import Desk
from fermata.aws.dynamo import Item
from fermata.turns import log as logs
from fermata.turns.log import Entry
from fermata.turns.turn import Turn
from fermata.words.errors import Invalid, NotFound

BATCH = 100
MOST_FAILURES = 5
BACK_OFF = 8
"""A reader that has waited t seconds is polled again after t/8, between POLL_MS and IDLE_POLL_MS."""


def catch_up(desk: Desk, turn: Turn, after: int) -> list[Entry]:
    """Everything after event number `after` that is written already, beginning with the entry that holds it.

    Raises Invalid, naming the last number, when `after` lies beyond the log.
    """
    at = logs.last(desk, turn.pk, upto=after + 1)
    if at is None:
        raise NotFound("There is no such turn, or it is too old to be remembered.")
    if at.next <= after:
        raise Invalid(f"Event {after} does not exist yet: the last one is number {at.next - 1}.")
    return [at, *logs.since(desk, turn.pk, at.next)]


Deliver = Callable[[Entry | None], None]
"""Called from the polling thread with each new entry in order, or with None when the log cannot be read any more."""


@dataclass(eq=False)
class Follower:
    pk: str
    number: int
    deliver: Deliver
    waiting_since: float
    due: float
    found: bool = False
    """Whether the last look found something; a second find in a row means that this reader is behind."""


@dataclass(eq=False)
class Tails:
    """All readers of this process share one thread, which asks for their next entries with one read."""

    desk: Desk
    _followers: set[Follower] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _thread: threading.Thread | None = None
    _failures: int = 0

    def follow(self, turn: Turn, number: int, deliver: Deliver) -> Follower:
        now = self.desk.clock.monotonic()
        follower = Follower(turn.pk, number, deliver, waiting_since=now, due=now + self._interval(0))
        with self._changed:
            self._followers.add(follower)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tails", daemon=True)
                self._thread.start()
            self._changed.notify()
        return follower

    def leave(self, follower: Follower) -> None:
        with self._changed:
            self._followers.discard(follower)
            self._changed.notify()

    def _run(self) -> None:
        while True:
            due = self._next_due()
            if due is None:
                return
            self._poll(due)

    def _next_due(self) -> list[Follower] | None:
        """Waits for somebody to be due; None when the last reader has left."""
        with self._changed:
            while self._followers:
                now = self.desk.clock.monotonic()
                soonest = min(follower.due for follower in self._followers)
                if soonest <= now:
                    slack = now + self.desk.settings.poll_ms / 4000
                    due = sorted((one for one in self._followers if one.due <= slack), key=lambda one: one.due)
                    return due[:BATCH]
                self._changed.wait(soonest - now)
            self._thread = None
            return None

    def _poll(self, due: Sequence[Follower]) -> None:
        try:
            found = self._read(due)
        except Exception:  # noqa: BLE001 - logged; the readers are told when it does not pass
            self._stumble(due)
            return
        self._failures = 0
        now = self.desk.clock.monotonic()
        for follower in due:
            place = (follower.pk, follower.number)
            is_found = place in found
            if is_found:
                self._hand_over(follower, found[place], now)
            is_behind = is_found and follower.found
            follower.due = now if is_behind else now + self._interval(now - follower.waiting_since)
            follower.found = is_found

    def _read(self, due: Sequence[Follower]) -> dict[tuple[str, int], Entry | None]:
        """What there is under the numbers that are waited for; None for what cannot be read."""
        keys = sorted({(follower.pk, logs.key(follower.number)) for follower in due})
        rows = self.desk.tables.batch_get(self.desk.settings.bridges_table, keys)
        return {(pk, int(sk[2:])): self._entry(row) for (pk, sk), row in rows.items()}

    def _entry(self, row: Item) -> Entry | None:
        try:
            return logs.entry(self.desk, row)
        except Exception:  # noqa: BLE001 - logged; one turn's trouble is not that of the other readers
            signals.failed("tails.entry_unreadable", row=row["pk"])
            return None

    def _hand_over(self, follower: Follower, entry: Entry | None, now: float) -> None:
        """A reader that is told None, or cannot be told, has left."""
        if entry is not None:
            follower.number, follower.waiting_since = entry.next, now
        try:
            follower.deliver(entry)
        except Exception:  # noqa: BLE001 - logged; a reader that is gone must not take the others' thread with it
            signals.failed("tails.delivery_failed", row=follower.pk)
            entry = None
        if entry is None:
            self.leave(follower)

    def _interval(self, waited: float) -> float:
        settings = self.desk.settings
        return min(settings.idle_poll_ms / 1000, max(settings.poll_ms / 1000, waited / BACK_OFF))

    def _stumble(self, due: Sequence[Follower]) -> None:
        self._failures += 1
        signals.failed("tails.poll_failed", failures=self._failures)
        now = self.desk.clock.monotonic()
        for follower in due:
            follower.due = now + self.desk.settings.idle_poll_ms / 1000
            if self._failures >= MOST_FAILURES:
                self._hand_over(follower, None, now)
