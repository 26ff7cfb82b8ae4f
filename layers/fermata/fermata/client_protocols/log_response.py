"""Send the log of a turn as the response of a request, whatever protocol its renderer speaks."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from fermata.aws.resources import Resources
from fermata.limits.reader_leases import ReaderLease
from fermata.turns.prompt_queue.start_queued_prompt import start_next_prompt
from fermata.turns.read.abandonment import AbandonmentWatcher
from fermata.turns.read.follow_log import LogPoller
from fermata.turns.read.log_stream import EntryRenderer, LogStream
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext

handler_pool = ThreadPoolExecutor(max_workers=32, thread_name_prefix="handler")
"""The threads of the handlers, which are synchronous."""


def get_log_poller(resources: Resources) -> LogPoller:
    """Return the poller that all streams of this process share, also when the first two begin at once."""
    return resources.cache.get_shared(("log poller",), lambda: LogPoller(resources))


def get_abandonment_watcher(resources: Resources) -> AbandonmentWatcher:
    """Return the watcher that counts the readers of this process."""
    return resources.cache.get_shared(("abandonment watcher",), lambda: AbandonmentWatcher(resources))


def no_last_bytes() -> bytes:
    return b""


def send_chunks(
    context: RequestContext,
    turn: Turn,
    entries: Iterable[LogEntry],
    renderer: EntryRenderer,
    headers: Mapping[str, str],
    *,
    heartbeat: bytes,
    is_returning: bool,
    render_end: Callable[[], bytes] = no_last_bytes,
    see_entry: Callable[[LogEntry], object] | None = None,
) -> Response:
    """Return the response that sends a log in the chunks of a client's protocol, which ends where the client acts.

    Args:
        context: The request.
        turn: The turn of the log.
        entries: What is known of the log, in order.
        renderer: Renders whole entries.
        headers: Of the response.
        heartbeat: What is sent while nothing happens; empty for nothing.
        is_returning: Whether the turn may have had readers before. Such a stream counts as a reader.
        render_end: Returns what is sent after the last entry.
        see_entry: Is told of each entry before it is rendered.
    """
    log_stream = LogStream(
        context.resources,
        turn,
        get_log_poller(context.resources),
        lambda _number, _event: b"",
        lambda: heartbeat,
        after=0,
        is_silent_without_events=True,
        entry_renderer=renderer,
        see_entry=see_entry,
    )
    return send_log(
        context,
        turn,
        entries,
        log_stream,
        headers,
        is_returning=is_returning,
        is_counted=is_returning,
        render_end=render_end,
    )


def send_log(
    context: RequestContext,
    turn: Turn,
    entries: Iterable[LogEntry],
    log_stream: LogStream,
    headers: Mapping[str, str],
    *,
    is_returning: bool,
    is_counted: bool,
    render_end: Callable[[], bytes] = no_last_bytes,
) -> Response:
    """Return the response that sends a log.

    Args:
        context: The request.
        turn: The turn of the log.
        entries: What is known of the log, in order.
        log_stream: Renders them, and what follows.
        headers: Of the response.
        is_returning: Whether the turn may have had readers before.
        is_counted: Whether the stream counts as a reader. That with which a turn starts does not (decision 0263).
        render_end: Returns what is sent after the last entry.
    """
    resources = context.resources
    lease = ReaderLease.take(resources, context.caller, context.caller_limits) if is_counted else None
    watcher = get_abandonment_watcher(resources)
    watcher.add_reader(turn, is_returning=is_returning)

    def close() -> None:
        watcher.remove_reader(turn, is_broken_off=not log_stream.is_complete, has_seen_end=log_stream.has_sent_end)
        if lease:
            resources.clock.start_thread(lease.release, "release-reader")

    lines = _start_next_at_end(resources, turn, log_stream, _add_end(log_stream.send(entries), render_end))
    stream = _release_at_end(lines, lease) if lease else lines
    return Response(200, stream=stream, headers=headers, on_close=close)


async def _add_end(lines: AsyncIterator[bytes], render_end: Callable[[], bytes]) -> AsyncIterator[bytes]:
    async for line in lines:
        yield line
    if end := render_end():
        yield end


async def _start_next_at_end(
    resources: Resources, turn: Turn, log_stream: LogStream, lines: AsyncIterator[bytes]
) -> AsyncIterator[bytes]:
    """Start the prompt that waits for the turn, after the reader has its end. The sweep does it where nobody reads."""
    async for line in lines:
        yield line
    if log_stream.has_queued_prompts:
        start = partial(start_next_prompt, resources, turn.tenant, turn.conversation)
        await asyncio.get_running_loop().run_in_executor(handler_pool, start)


async def _release_at_end(lines: AsyncIterator[bytes], lease: ReaderLease) -> AsyncIterator[bytes]:
    """Release the lease before the response is over: a function that has responded does not run on."""
    async for line in lines:
        yield line
    await asyncio.get_running_loop().run_in_executor(handler_pool, lease.release)
