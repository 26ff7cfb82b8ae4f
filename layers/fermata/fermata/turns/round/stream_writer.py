"""Write streamed text into the turn log in batches, and notice meanwhile when the work has become pointless."""

from collections.abc import Callable
from typing import Self

from fermata.aws.clock import JoinableThread
from fermata.aws.resources import Resources
from fermata.domain.events import ReasoningEvent, TextEvent
from fermata.turns.round.heartbeat import Heartbeat
from fermata.turns.turn_log import TurnLog, fixed_events

LOG_CHECK_INTERVAL_SECONDS = 0.5
FLUSH_INTERVAL_APPENDS = 16
"""An append is not sent before the last one is over for this many times as long as it took."""
MAX_FLUSH_INTERVAL_SECONDS = 1.0
PROMPT_FLUSHES = 8
SLOW_FLUSH_FACTOR = 1.6
"""After so many batches of a long text, each is collected for longer: who reads it is behind anyway (decision 0180)."""
MAX_HOLD_SECONDS = 0.005
"""How long the first text is kept at most while more of the response is here already (decision 0601)."""
HoldText = Callable[[Callable[[], object]], bool]
"""Lets what it is given be called before the response is waited for. Returns False if nobody can do that."""


def hold_nothing(_write_held: Callable[[], object]) -> bool:
    """Tell the writer that nobody says when the response is waited for."""
    return False


class StreamWriter:
    """Context manager with a background thread, one per model request or server tool.

    The first text is written at once, or with `hold` as soon as what has arrived of the response is read: a call that
    is part of it is then committed together with the text. Further text is written after `flush_ms` or `flush_bytes`,
    whichever comes first; later while appends take long, so that they wait less for each other (decision 0168), and in
    a long text (decision 0180). When the end of the log was not known for half a second, the thread reads it. It also
    sends heartbeats.

    When the thread meets a lost race or an error, it stores it in `failure` and calls `abort`, which must end what the
    main thread waits for. `write` and the end of the `with` block then raise the failure.
    """

    def __init__(
        self,
        resources: Resources,
        log: TurnLog,
        heartbeat: Heartbeat,
        abort: Callable[[], object],
        hold: HoldText = hold_nothing,
    ) -> None:
        self._clock = resources.clock
        self._settings = resources.settings
        self._log = log
        self._heartbeat = heartbeat
        self._abort = abort
        self._hold = hold
        self._held_until: float | None = None
        """Set from the first text on, if it is held."""
        self._flushed_at = self._clock.monotonic()
        self._flush_interval_seconds = self._settings.flush_ms / 1000
        self._flush_count = 0
        self._unwritten: list[TextEvent | ReasoningEvent] = []
        self._unwritten_bytes = 0
        self._lock = self._clock.new_lock()
        self._stopped = self._clock.new_event()
        self._thread: JoinableThread | None = None
        self.failure: BaseException | None = None
        self.first_written_at: float | None = None
        """When the first text was written, on the monotonic clock."""

    def __enter__(self) -> Self:
        self._thread = self._clock.start_thread(self._watch, "stream-writer")
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        if self.failure is not None:
            raise self.failure

    def write(self, event: TextEvent | ReasoningEvent) -> None:
        """Add text to the stream.

        Raises:
            BaseException: `failure`, if the background thread has met one.
        """
        with self._lock:
            if self.failure is not None:
                raise self.failure
            self._add_unwritten(event)
            if self._unwritten_bytes >= self._settings.flush_bytes or self._is_write_due():
                self._flush()

    def write_held(self) -> None:
        """Write the first text if it is held. A failure is that of the background thread."""
        with self._lock:
            if self._held_until is None or self.first_written_at is not None or self.failure is not None:
                return
            self.failure = self._try(self._flush) if self._unwritten else None
        if self.failure is not None:
            self._abort()

    def check_log(self) -> None:
        """Let the main thread read the log, if its end was not known for half a second (decision 0186).

        Raises:
            BaseException: `failure`, if the background thread has met one.
        """
        self.append(lambda: self._log.refresh(LOG_CHECK_INTERVAL_SECONDS))

    def append(self, append_to_log: Callable[[], object]) -> None:
        """Let the main thread append something else than text.

        Raises:
            BaseException: `failure`, if the background thread has met one.
        """
        with self._lock:
            if self.failure is not None:
                raise self.failure
            if self._held_until is not None and self.first_written_at is None and self._unwritten:
                self._flush()
            append_to_log()

    def take_unwritten(self) -> tuple[TextEvent | ReasoningEvent, ...]:
        """Return the text that is not in the log yet. It belongs into the commit that follows."""
        with self._lock:
            events = tuple(self._unwritten)
            self._unwritten = []
            self._unwritten_bytes = 0
            return events

    def _add_unwritten(self, event: TextEvent | ReasoningEvent) -> None:
        previous = self._unwritten[-1] if self._unwritten else None
        self._unwritten_bytes += len(event.text.encode())
        if type(previous) is type(event):
            self._unwritten[-1] = type(event)(text=previous.text + event.text)
        else:
            self._unwritten.append(event)

    def _is_write_due(self) -> bool:
        """Return whether text is written now. The first one may be held, however long the response was waited for."""
        return not self._holds_text() if self.first_written_at is None else self._is_flush_due()

    def _holds_text(self) -> bool:
        """Return whether the first text waits for the rest of what has arrived."""
        now = self._clock.monotonic()
        if self._held_until is None:
            self._held_until = now + MAX_HOLD_SECONDS if self._hold(self.write_held) else now
        return now < self._held_until

    def _is_flush_due(self) -> bool:
        return self._clock.monotonic() - self._flushed_at >= self._flush_interval_seconds

    def _flush(self) -> None:
        events = tuple(self._unwritten)
        self._unwritten = []
        self._unwritten_bytes = 0
        started_at = self._clock.monotonic()
        self._log.append(fixed_events(*events))
        self._flush_count += 1
        self._flushed_at = self._clock.monotonic()
        self._flush_interval_seconds = self._compute_flush_interval(self._flushed_at - started_at)
        self.first_written_at = self.first_written_at or self._flushed_at

    def _compute_flush_interval(self, append_seconds: float) -> float:
        interval_seconds = min(FLUSH_INTERVAL_APPENDS * append_seconds, MAX_FLUSH_INTERVAL_SECONDS)
        factor = SLOW_FLUSH_FACTOR if self._flush_count > PROMPT_FLUSHES else 1
        return max(interval_seconds, self._settings.flush_ms * factor / 1000)

    def _watch(self) -> None:
        while not self._stopped.wait(min(self._flush_interval_seconds, LOG_CHECK_INTERVAL_SECONDS)):
            with self._lock:
                # Stored under the same lock, so that `write` appends nothing in between (decision 0145). A failure of
                # the main thread, for whose flush this one has waited here, stays.
                self.failure = self.failure or self._try(self._flush_or_check_log)
            if self.failure is not None:
                self._abort()
                return

    def _try(self, act: Callable[[], object]) -> BaseException | None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - raised again in the main thread, where it belongs
            return error
        return None

    def _flush_or_check_log(self) -> None:
        if self._unwritten and self._is_flush_due():
            self._flush()
        else:
            self._log.refresh(LOG_CHECK_INTERVAL_SECONDS)
        self._heartbeat.send_if_due()
