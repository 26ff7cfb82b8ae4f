"""Notices when nobody reads a turn any more, where that can be seen, and stops the turn if its clients mean that by it.

Instatic's browsers stop a turn by closing its stream (design §7). A Lambda does not see that, and its readers are in
many processes. The local service sees it, and all of its readers are in one.
"""

import threading
from dataclasses import dataclass, field

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.domain.events import CancelledEvent
from fermata.turns.end.end_turn import stop_turn
from fermata.turns.turn import Turn


@dataclass(eq=False)
class AbandonmentWatcher:
    resources: Resources
    _readers: dict[str, int] = field(default_factory=dict)
    _timers: dict[str, threading.Timer] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add_reader(self, turn: Turn) -> None:
        """Somebody begins to read: whatever was about to end the turn is called off."""
        if self._cares_for(turn):
            with self._lock:
                self._readers[turn.pk] = self._readers.get(turn.pk, 0) + 1
                self._call_off(turn.pk)

    def remove_reader(self, turn: Turn, *, is_broken_off: bool) -> None:
        """A reader is gone; `cut` when its connection broke before we had ended the response."""
        if not self._cares_for(turn):
            return
        with self._lock:
            left = self._readers.pop(turn.pk, 1) - 1
            if left:
                self._readers[turn.pk] = left
            elif is_broken_off:
                self._wait(turn)

    def _cares_for(self, turn: Turn) -> bool:
        stops = turn.dialect == "instatic" and not turn.undoes
        return stops and self.resources.settings.fermata_stage == "local"

    def _wait(self, turn: Turn) -> None:
        self._call_off(turn.pk)
        timer = threading.Timer(self.resources.settings.abandoned_seconds, self._give_up, (turn,))
        timer.daemon = True
        self._timers[turn.pk] = timer
        timer.start()

    def _call_off(self, pk: str) -> None:
        timer = self._timers.pop(pk, None)
        if timer:
            timer.cancel()

    def _give_up(self, turn: Turn) -> None:
        with self._lock:
            self._timers.pop(turn.pk, None)
            if self._readers.get(turn.pk):
                return
        try:
            how = stop_turn(self.resources, turn, CancelledEvent())
        except Exception:  # noqa: BLE001 - logged whole; the turn goes on, as it would where nobody sees who reads
            observability.log_exception("turn.abandoning_failed", turn=turn.id)
            return
        observability.log_event("turn.abandoned", turn=turn.id, ended=how)
