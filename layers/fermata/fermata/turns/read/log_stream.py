"""Stream a turn's log to one reader: its events from a number on, which
one that reconnects names, until the turn or the reader's time ends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, TypeAlias

from fermata.aws.resources import Resources
from fermata.domain.events import Event, HeldEvent
from fermata.turns.read.follow_log import LogPoller
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry

HOLD_GRACE_SECONDS = 30
"""How long a reader stays connected while the turn waits for a person."""
HELD_RETRY_SECONDS = 10
"""How often a client asks how the turn is from then on. What was decided elsewhere shows so late at most."""

MAX_CHUNK_BYTES = 64_000
"""What is known of a log is sent in pieces of about this size, because a piece for each entry takes longer."""

EventRenderer: TypeAlias = Callable[[int, Event], bytes]
"""Render the event of a number for the reader's client; nothing, if the client does not receive it."""


class EntryRenderer(Protocol):
    """Renders whole entries, for clients whose responses end where they have to act (decision 0379)."""

    def render_events(self, events: Sequence[Event]) -> bytes:
        """Return what the client receives of an entry, with which it is one step further in the log."""

    def is_response_over(self) -> bool:
        """Return whether the response ends here, unless the log goes on already."""


class LogStream:
    """The stream of one response.

    Args:
        make_heartbeat: Returns what is sent when there is nothing to send for `heartbeat_seconds`.
        after: The number of the last event that the reader has.
        heartbeat_seconds: None for `reader_heartbeat_seconds`.
        is_silent_without_events: Send nothing, instead of a heartbeat, for an entry that the client does not receive.
        entry_renderer: Renders entries in place of `render`, from the log's first one on.
        see_entry: Is told of each entry before it is rendered.
    """

    def __init__(
        self,
        resources: Resources,
        turn: Turn,
        poller: LogPoller,
        render: EventRenderer,
        make_heartbeat: Callable[[], bytes],
        *,
        after: int,
        heartbeat_seconds: float | None = None,
        is_silent_without_events: bool = False,
        entry_renderer: EntryRenderer | None = None,
        see_entry: Callable[[LogEntry], object] | None = None,
    ) -> None:
        self.is_complete = False
        """False while lines are sent, and after the client has disconnected in the middle of them."""
        self.has_sent_end = False
        """Whether the turn's terminal event was sent."""
        self.has_queued_prompts = False
        """Whether prompts wait for the turn, whose terminal event was sent, to end."""
        self._settings = resources.settings
        self._clock = resources.clock
        self._turn = turn
        self._poller = poller
        self._render = render
        self._entry_renderer = entry_renderer
        self._see_entry = see_entry
        self._make_heartbeat = make_heartbeat
        self._is_silent_without_events = is_silent_without_events
        self._heartbeat_seconds = heartbeat_seconds or resources.settings.reader_heartbeat_seconds
        self._last_sent_number = after
        self._deadline = self._clock.monotonic() + self._settings.reader_seconds

    async def send(self, entries: Iterable[LogEntry]) -> AsyncIterator[bytes]:
        """Yield the lines of these entries, then those of new entries.

        It ends with the terminal event, at this reader's deadline, or `HOLD_GRACE_SECONDS` into a hold.
        """
        last_entry, known = None, bytearray()
        for last_entry in entries:
            known += self._render_entry(last_entry)
            if len(known) > MAX_CHUNK_BYTES:
                yield bytes(known)
                known.clear()
        yield bytes(known)
        if last_entry is not None and last_entry.state.phase != "ended" and not self._is_response_over():
            async with self._follow_log(last_entry) as queue:
                async for chunk in self._send_new_entries(queue, last_entry):
                    yield chunk
        self.is_complete = True

    @asynccontextmanager
    async def _follow_log(self, last_entry: LogEntry) -> AsyncIterator["asyncio.Queue[LogEntry | None]"]:
        queue: asyncio.Queue[LogEntry | None] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        def deliver(entry: LogEntry | None) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, entry)

        follower = self._poller.follow(self._turn, last_entry.next_number, deliver, last_entry)
        try:
            yield queue
        finally:
            self._poller.unfollow(follower)

    async def _send_new_entries(
        self, queue: "asyncio.Queue[LogEntry | None]", last_entry: LogEntry
    ) -> AsyncIterator[bytes]:
        arrived_at = self._clock.monotonic()
        while (now := self._clock.monotonic()) < self._deadline:
            if last_entry.state.held_until and now - arrived_at > HOLD_GRACE_SECONDS:
                yield self._render_hold(last_entry)
                return
            try:
                timeout = min(self._heartbeat_seconds, self._deadline - now)
                entry = await asyncio.wait_for(queue.get(), timeout)
            except TimeoutError:
                yield self._make_heartbeat()
                continue
            if entry is None:
                return
            last_entry = entry
            arrived_at = self._clock.monotonic()
            yield self._render_entry(entry)
            if entry.state.phase == "ended" or (queue.empty() and self._is_response_over()):
                return

    def _is_response_over(self) -> bool:
        return self._entry_renderer is not None and self._entry_renderer.is_response_over()

    def _render_entry(self, entry: LogEntry) -> bytes:
        if self._see_entry is not None:
            self._see_entry(entry)
        rendered = self._entry_renderer.render_events(entry.events) if self._entry_renderer else self._join(entry)
        self._last_sent_number = max(self._last_sent_number, entry.next_number - 1)
        self.has_sent_end = entry.state.phase == "ended"
        self.has_queued_prompts = self.has_sent_end and entry.state.has_queued_prompts
        return rendered if rendered or self._is_silent_without_events else self._make_heartbeat()

    def _join(self, entry: LogEntry) -> bytes:
        numbered = enumerate(entry.events, entry.first_number)
        return b"".join(self._render(number, event) for number, event in numbered if number > self._last_sent_number)

    def _render_hold(self, last_entry: LogEntry) -> bytes:
        until = self._clock.now_iso(last_entry.state.held_until - self._clock.time())
        event = HeldEvent(until=until, retry_after=HELD_RETRY_SECONDS)
        if self._entry_renderer:
            return self._entry_renderer.render_events([event])
        return self._render(self._last_sent_number, event)
