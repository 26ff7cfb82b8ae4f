"""Cancel turns that no client reads any more, where the service can see that (decisions 0068 and 0211).

Instatic's browsers stop a turn by closing its stream. The local service sees that. A Lambda function does not, and the
readers of a turn are in many processes there.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from fermata.aws import observability
from fermata.aws.clock import CancellableTimer
from fermata.aws.resources import Resources
from fermata.domain.events import CancelledEvent
from fermata.turns.end.stop_turn import stop_turn
from fermata.turns.read.reader_presence import (
    PRESENCE_RENEWAL_SECONDS,
    PRESENCE_SECONDS,
    is_departure_detectable,
    mark_reader_departed,
    mark_reader_present,
)
from fermata.turns.turn import Turn


@dataclass(eq=False)
class AbandonmentWatcher:
    """Counts the readers of each turn in this process."""

    resources: Resources
    _readers: dict[str, int] = field(default_factory=dict)
    _timers: dict[str, CancellableTimer] = field(default_factory=dict)
    _renewals: dict[str, CancellableTimer] = field(default_factory=dict)
    _lock: AbstractContextManager[object] = field(init=False)

    def __post_init__(self) -> None:
        self._lock = self.resources.clock.new_lock()

    def add_reader(self, turn: Turn, *, is_returning: bool = False) -> None:
        """Count a reader, and revoke the cancellation that its predecessor may have caused.

        Args:
            turn: The turn that is read.
            is_returning: Whether the turn may have had readers before. One that comes late is noted in any case,
                because what the turn's start says lasts no longer than until the next renewal.
        """
        if not is_departure_detectable(self.resources, turn):
            return
        with self._lock:
            self._readers[turn.pk] = self._readers.get(turn.pk, 0) + 1
            self._stop_timer(turn.pk)
            if turn.pk not in self._renewals:
                self._schedule_renewal(turn)
            now = self.resources.clock.time()
        if is_returning or now - turn.started_ms / 1000 > PRESENCE_SECONDS - PRESENCE_RENEWAL_SECONDS:
            mark_reader_present(self.resources, turn, now)

    def remove_reader(self, turn: Turn, *, is_broken_off: bool, has_seen_end: bool = False) -> None:
        """Count a reader off. After the last one the turn is cancelled, unless another comes in time.

        Args:
            turn: The turn that was read.
            is_broken_off: Whether the client closed the connection before the response was complete.
            has_seen_end: Whether the response was complete because the turn is over.
        """
        if not is_departure_detectable(self.resources, turn):
            return
        with self._lock:
            readers_left = self._readers.pop(turn.pk, 1) - 1
            if readers_left:
                self._readers[turn.pk] = readers_left
                return
            if renewal := self._renewals.pop(turn.pk, None):
                renewal.cancel()
            if is_broken_off and not turn.undone_turn:
                self._start_timer(turn)
            # A reader that returns before the thread has written is later than this.
            now = self.resources.clock.time()
        if not has_seen_end:
            self.resources.clock.start_thread(lambda: self._mark_departed(turn, now), "reader-departed")

    def _schedule_renewal(self, turn: Turn) -> None:
        self._renewals[turn.pk] = self.resources.clock.start_timer(
            PRESENCE_RENEWAL_SECONDS, lambda: self._renew_presence(turn)
        )

    def _renew_presence(self, turn: Turn) -> None:
        with self._lock:
            if turn.pk not in self._readers:
                return
            self._schedule_renewal(turn)
            now = self.resources.clock.time()
        try:
            mark_reader_present(self.resources, turn, now)
        except Exception:  # noqa: BLE001 - logged whole; the next renewal follows
            observability.log_exception("turn.presence_not_marked", turn=turn.id)

    def _mark_departed(self, turn: Turn, since: float) -> None:
        try:
            mark_reader_departed(self.resources, turn, since)
        except Exception:  # noqa: BLE001 - logged whole; the next prompt is then refused until the turn is cancelled
            observability.log_exception("turn.departure_not_marked", turn=turn.id)

    def _start_timer(self, turn: Turn) -> None:
        self._stop_timer(turn.pk)
        seconds = self.resources.settings.abandoned_seconds
        self._timers[turn.pk] = self.resources.clock.start_timer(seconds, lambda: self._cancel_abandoned(turn))

    def _stop_timer(self, pk: str) -> None:
        timer = self._timers.pop(pk, None)
        if timer:
            timer.cancel()

    def _cancel_abandoned(self, turn: Turn) -> None:
        with self._lock:
            self._timers.pop(turn.pk, None)
            if self._readers.get(turn.pk):
                return
        try:
            end_type = stop_turn(self.resources, turn, CancelledEvent())
        except Exception:  # noqa: BLE001 - logged whole; the turn goes on, as it would on AWS
            observability.log_exception("turn.abandoning_failed", turn=turn.id)
            return
        observability.log_event("turn.abandoned", turn=turn.id, ended=end_type)
