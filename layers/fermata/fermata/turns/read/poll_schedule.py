"""Compute when a reader's log is read next: often when something is due, seldom while a browser or a person acts.

What is due is seen from the last entry (decision 0179). Times are seconds on the monotonic clock.
"""

from dataclasses import dataclass, field
from typing import Literal

from fermata.aws.settings import Settings
from fermata.domain.events import ReasoningEvent, TextEvent, ToolRequestEvent
from fermata.turns.turn_log import LogEntry

BACKOFF_DIVISOR = 8
"""A reader that has waited t seconds is polled again after t/8, within the limits of what it waits for."""
BROWSER_BACKOFF_DIVISOR = 4
FAST_POLL_SECONDS = 0.01
FIRST_HELD_POLL_SECONDS = 0.1
HELD_IDLE_FACTOR = 4
"""While a person or another server is waited for, looks are this much further apart (decision 0394)."""
MAX_CONSISTENT_INTERVAL_SECONDS = 0.02
"""Polls that are further apart find an entry later than an inconsistent read would."""
MAX_FOUND_IN_TURN = 4
"""So many polls that each find streamed text tell that the reader is behind. Other entries come in pairs at most."""

EXISTENCE_CHECK_SECONDS = 5
"""A log that has not grown for so long is looked for: its turn may have been erased (decision 0286)."""

AwaitedStep = Literal["service", "text", "browser", "hold"]
"""service: the next step of a function or the first text of a model · text: more of the text that flows ·
browser: the result of a tool call · hold: a decision, or a result that comes from elsewhere."""


@dataclass
class PollSchedule:
    """The times at which one log is read for one reader."""

    settings: Settings
    waiting_since: float
    last_entry: LogEntry | None = None
    next_poll_at: float = field(init=False)
    _awaited: AwaitedStep = "service"
    _gap_seconds: float = 0.0
    """Between the last two entries of text, on their writer's clock."""
    _found_in_turn: int = 0
    _interval_seconds: float = 0.0
    """Between the poll before and the next one."""
    _existed_at: float = field(init=False)
    """When the log was there for certain."""

    def __post_init__(self) -> None:
        if self.last_entry is not None:
            self._awaited = _find_awaited_step(self.last_entry, is_text_flowing=False)
        self.next_poll_at = self.waiting_since + self.compute_interval(0)
        self._existed_at = self.waiting_since

    @property
    def needs_consistent_read(self) -> bool:
        """Whether an entry must be found as soon as it is written: a step of the service that is looked for often.

        Otherwise a read at half the price does, which may find it a moment later. An entry never changes, so a poll
        finds the whole entry or none.
        """
        return self._awaited == "service" and self._interval_seconds <= MAX_CONSISTENT_INTERVAL_SECONDS

    def add_entry(self, entry: LogEntry, now: float) -> None:
        """Note that a poll has found this entry."""
        previous, self.last_entry = self.last_entry, entry
        self.waiting_since = self._existed_at = now
        self._found_in_turn += 1
        self._interval_seconds = 0.0
        is_text_flowing = previous is not None and _is_text(previous) and _is_text(entry)
        self._awaited = _find_awaited_step(entry, is_text_flowing=is_text_flowing)
        self._gap_seconds = (entry.at_ms - previous.at_ms) / 1000 if previous is not None and is_text_flowing else 0.0
        is_behind = self._found_in_turn >= (MAX_FOUND_IN_TURN if is_text_flowing else 2)
        self.next_poll_at = now if is_behind else now + self.compute_interval(0)

    def add_miss(self, now: float) -> None:
        """Note that a poll has found nothing."""
        self._found_in_turn = 0
        self._interval_seconds = self.compute_interval(now - self.waiting_since)
        self.next_poll_at = now + self._interval_seconds

    def delay_poll(self, now: float) -> None:
        """Put the next poll off, for a reader that is told when its log grows: it finds only what nobody told."""
        self.next_poll_at = max(self.next_poll_at, now + self.settings.idle_poll_ms / 1000)

    def is_existence_due(self, now: float) -> bool:
        """Return whether the next poll has to find out if the log is still there."""
        return now - self._existed_at >= EXISTENCE_CHECK_SECONDS

    def add_existence(self, now: float) -> None:
        """Note that a poll has found the log, whether it has grown or not."""
        self._existed_at = now

    def compute_interval(self, waited_seconds: float) -> float:
        """Return the seconds until the next poll, for a reader that has waited so long."""
        idle_seconds = self.settings.idle_poll_ms / 1000
        longest = idle_seconds * HELD_IDLE_FACTOR if self._awaited == "hold" else idle_seconds
        divisor = BROWSER_BACKOFF_DIVISOR if self._awaited == "browser" else BACKOFF_DIVISOR
        return min(longest, max(self._compute_shortest(waited_seconds), waited_seconds / divisor))

    def _compute_shortest(self, waited_seconds: float) -> float:
        usual = self.settings.poll_ms / 1000
        if self._awaited == "hold":
            return min(FIRST_HELD_POLL_SECONDS, self.settings.idle_poll_ms / 1000)
        if self._awaited == "text":
            return max(FAST_POLL_SECONDS, self._compute_text_interval(waited_seconds, usual))
        return min(usual, 2 * FAST_POLL_SECONDS if self._awaited == "browser" else FAST_POLL_SECONDS)

    def _compute_text_interval(self, waited_seconds: float, usual: float) -> float:
        """Compute when to look for text, which comes at even intervals.

        Look shortly before it, and halfway, because the round may end at any time.

        What is found shortly before its time lets the next looks come closer to the writes.
        """
        expected = self._gap_seconds - usual / 5
        halfway = expected / 2
        if waited_seconds < halfway * 0.9:
            return halfway
        if waited_seconds < expected * 0.9:
            return expected - waited_seconds
        return usual * 0.4


def _is_text(entry: LogEntry) -> bool:
    return bool(entry.events) and all(isinstance(event, TextEvent | ReasoningEvent) for event in entry.events)


def _find_awaited_step(entry: LogEntry, *, is_text_flowing: bool) -> AwaitedStep:
    if entry.state.held_until:
        return "hold"
    if entry.events and isinstance(entry.events[-1], ToolRequestEvent):
        return "browser"
    return "text" if is_text_flowing else "service"
