"""While a handler works for a turn: its text flows into the log, its token stays alive, and it learns when to stop."""

import threading
from collections.abc import Callable
from typing import Self

from fermata.aws.resources import Resources
from fermata.domain.events import ReasoningEvent, TextEvent
from fermata.turns.round.heartbeat import Heartbeat
from fermata.turns.turn_log import LostRace, TurnLog, fixed_events

LOG_CHECK_INTERVAL_SECONDS = 0.5


class StreamWriter:
    """One background thread per provider request or server tool; leaving the `with` block joins it.

    Text is written at once when nothing waits, else after FLUSH_MS or FLUSH_BYTES, whichever comes first. When
    nothing was appended for half a second the next number of the log is read. Whoever loses the race while
    watching is remembered in `lost`, and `hang_up` closes what the main thread reads from.
    """

    def __init__(self, resources: Resources, log: TurnLog, heartbeat: Heartbeat, abort: Callable[[], object]) -> None:
        self._resources, self._log, self._pulse, self._hang_up = resources, log, heartbeat, abort
        self._settings = resources.settings
        now = resources.clock.monotonic()
        self._touched = self._flushed = now
        self._waiting: list[TextEvent | ReasoningEvent] = []
        self._bytes = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="vigil", daemon=True)
        self.failure: BaseException | None = None
        self.first_written_at: float | None = None
        """When the first text was written, on the monotonic clock."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def write(self, event: TextEvent | ReasoningEvent) -> None:
        """Add text to the stream; raises what the race was lost to."""
        with self._lock:
            if self.failure is not None:
                raise self.failure
            self._keep(event)
            if self.first_written_at is None or self._bytes >= self._settings.flush_bytes or self._is_due():
                self._flush()

    def take_unwritten(self) -> tuple[TextEvent | ReasoningEvent, ...]:
        """The text that was not written yet; it belongs into the commit that follows."""
        with self._lock:
            left, self._waiting, self._bytes = tuple(self._waiting), [], 0
            return left

    def _keep(self, piece: TextEvent | ReasoningEvent) -> None:
        previous = self._waiting[-1] if self._waiting else None
        self._bytes += len(piece.text.encode())
        if type(previous) is type(piece):
            self._waiting[-1] = type(piece)(text=previous.text + piece.text)
        else:
            self._waiting.append(piece)

    def _is_due(self) -> bool:
        return self._resources.clock.monotonic() - self._flushed >= self._settings.flush_ms / 1000

    def _flush(self) -> None:
        events, self._waiting, self._bytes = tuple(self._waiting), [], 0
        self._log.append(fixed_events(*events))
        self._touched = self._flushed = self._resources.clock.monotonic()
        self.first_written_at = self.first_written_at or self._flushed

    def _watch(self) -> None:
        tick = min(self._settings.flush_ms / 1000, LOG_CHECK_INTERVAL_SECONDS)
        while not self._over.wait(tick):
            try:
                with self._lock:
                    self._look()
            except LostRace as lost:
                self._stop(lost)
                return
            except Exception as failure:  # noqa: BLE001 - raised again in the main thread, where it belongs
                self._stop(failure)
                return

    def _look(self) -> None:
        now = self._resources.clock.monotonic()
        if self._waiting and self._is_due():
            self._flush()
        elif now - self._touched >= LOG_CHECK_INTERVAL_SECONDS:
            self._log.read_new_entries()
            self._touched = now
        self._pulse.send_if_due()

    def _stop(self, lost: BaseException) -> None:
        self.failure = lost
        self._hang_up()
