"""Starts turns and streams their logs: an ASGI app, behind the Lambda Web Adapter there and in the front door here.

Pictures go out here too, because API Gateway hands bytes on as they are only where it streams (docs/decisions/0063).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.requests import Request as AsgiRequest
from starlette.responses import Response, StreamingResponse
from starlette.routing import Mount, request_response
from starlette.types import Receive, Scope, Send

from fermata.aws.desk import Desk, open_desk
from fermata.conversations import threads, views
from fermata.tools.catalogue import naming
from fermata.turns import ending, reading, starting, undoing
from fermata.turns.joining import Started
from fermata.turns.log import Entry
from fermata.turns.reading import Tails
from fermata.turns.turn import Turn
from fermata.turns.watch import Watch
from fermata.wire import instatic_images, ndjson, surface
from fermata.wire.bodies import ChatBody, UndoBody
from fermata.wire.edge import Visit, serve
from fermata.wire.http import MOST_BYTES, Answer, Request, of_scope
from fermata.wire.naming import tool_names
from fermata.wire.uploaded import snapshot_of
from fermata.words.dialect import Called, Dialect
from fermata.words.errors import Invalid, NotFound
from fermata.words.events import Held
from fermata.words.scopes import SCOPES

HELD_SECONDS = 30
"""How long a reader stays once nothing will come before a person acts."""
MOST_KEY = 200
STREAM_HEADERS = {
    "Content-Type": ndjson.CONTENT_TYPE,
    "Cache-Control": "private, no-store",
    "X-Accel-Buffering": "no",
}
verbs = ThreadPoolExecutor(max_workers=32, thread_name_prefix="verb")


@cache
def tails(desk: Desk) -> Tails:
    return Tails(desk)


@cache
def watch(desk: Desk) -> Watch:
    return Watch(desk)


def known_scope(request: Request) -> None:
    if request.params["scope"] not in SCOPES:
        raise NotFound("Not found")


def chat(visit: Visit) -> Answer:
    """Streams the turn it starts, or answers 202 with its bridge when asked for JSON."""
    body = visit.body(ChatBody)
    if visit.tenant.dialect == "instatic":
        instatic_images.check(body)
    snapshot = snapshot_of(visit.desk, visit.caller, body)
    prompt = starting.Prompt(
        scope=visit.request.params["scope"],
        conversation_id=body.conversation_id,
        content=body.blocks(),
        image_places=body.image_places(),
        dialect=visit.tenant.dialect,
        tool_names=tool_names(visit),
        snapshot=snapshot.value,
        packed=snapshot.packed,
        revision=body.revision or "",
        idempotency_key=_idempotency_key(visit.request),
        max_rounds=visit.tenant.limits.max_rounds,
        thinking_tokens=visit.tenant.limits.thinking_tokens,
    )
    return _begun(visit, starting.start(visit.desk, visit.caller, prompt))


def undo(visit: Visit) -> Answer:
    """The same for what another turn did: it is taken back."""
    body = visit.body(UndoBody) if visit.request.body.strip() else UndoBody()
    wish = undoing.Wish(
        bridge_id=visit.request.params["bridgeId"],
        dialect=visit.tenant.dialect,
        tool_names=tool_names(visit),
        through=body.through or "",
        idempotency_key=_idempotency_key(visit.request),
    )
    return _begun(visit, undoing.undo(visit.desk, visit.caller, wish))


def _begun(visit: Visit, started: Started) -> Answer:
    if "application/json" in visit.request.headers.get("accept", ""):
        return Answer(202, {"bridgeId": started.turn.id, "seq": started.entry.next - 1})
    return _followed(visit, started.turn, [started.entry], 0)


def events(visit: Visit) -> Answer:
    """The turn's events after number `after`, then whatever follows."""
    turn = ending.owned(visit.desk, visit.caller, visit.request.params["bridgeId"])
    after = _number(visit.request.query.get("after", "0"))
    known = reading.catch_up(visit.desk, turn, after)
    return _followed(visit, turn, known, after)


def editor_bridge(visit: Visit) -> Answer:
    """Instatic's editor opens it unasked, for calls from outside. There are none here, so it only stays alive."""
    if visit.tenant.dialect != "instatic":
        raise NotFound("Not found")
    if visit.request.query.get("scope", "site") not in SCOPES:
        raise Invalid(f"'scope' must be one of {', '.join(SCOPES)}.")
    return Answer(200, stream=heartbeats(visit.desk), headers=STREAM_HEADERS)


def picture(visit: Visit) -> Answer:
    params = visit.request.params
    conversation = threads.find(visit.desk, visit.caller, params["id"])
    raw, mime_type = views.image(visit.desk, conversation, params["messageId"], params["index"])
    return Answer(200, raw=raw, headers={"Content-Type": mime_type, "Cache-Control": "private, no-store"})


async def heartbeats(desk: Desk) -> AsyncIterator[bytes]:
    settings = desk.settings
    end = desk.clock.monotonic() + settings.reader_seconds
    while desk.clock.monotonic() < end:
        yield ndjson.HEARTBEAT
        await asyncio.sleep(settings.reader_heartbeat_seconds)


def _idempotency_key(request: Request) -> str:
    key = request.headers.get("idempotency-key", "")
    if len(key) > MOST_KEY:
        raise Invalid(f"An Idempotency-Key has at most {MOST_KEY} characters.")
    return key


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise Invalid("'after' must be the number of an event: 0, 1, 2, …")
    return int(text)


def _followed(visit: Visit, turn: Turn, known: Iterable[Entry], after: int) -> Answer:
    """The stream, and a note of whether it came to its end or was cut off."""
    desk, ended = visit.desk, list[bool]()
    reader = Reader(desk, turn.dialect, naming(turn.scope, tool_names(visit)), after)
    watch(desk).arrive(turn)
    return Answer(
        200,
        stream=follow(desk, turn, known, reader, lambda: ended.append(True)),
        headers=STREAM_HEADERS,
        closed=lambda: watch(desk).leave(turn, cut=not ended),
    )


async def follow(
    desk: Desk, turn: Turn, known: Iterable[Entry], reader: "Reader", on_end: Callable[[], object]
) -> AsyncIterator[bytes]:
    """Lines until a terminal event, this reader's own deadline, or a while into a hold."""
    last = None
    for last in known:
        yield reader.lines(last)
    if last is not None and last.standing.phase != "ended":
        async with _new_entries(desk, turn, last.next) as queue:
            async for chunk in reader.listen(queue, last):
                yield chunk
    on_end()


@asynccontextmanager
async def _new_entries(desk: Desk, turn: Turn, number: int) -> AsyncIterator["asyncio.Queue[Entry | None]"]:
    queue: asyncio.Queue[Entry | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def deliver(entry: Entry | None) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, entry)

    follower = tails(desk).follow(turn, number, deliver)
    try:
        yield queue
    finally:
        tails(desk).leave(follower)


class Reader:
    """One response: what tools are called in it, what it has sent, and how long it still lasts."""

    def __init__(self, desk: Desk, dialect: Dialect, called: Called, after: int) -> None:
        self.settings, self.clock, self.dialect, self.called = desk.settings, desk.clock, dialect, called
        self.sent = after
        self.deadline = self.clock.monotonic() + self.settings.reader_seconds

    def lines(self, entry: Entry) -> bytes:
        numbered = [(number, event) for number, event in enumerate(entry.events, entry.first) if number > self.sent]
        self.sent = max(self.sent, entry.next - 1)
        told = (ndjson.lines(number, event, self.dialect, self.called) for number, event in numbered)
        return b"".join(told) or ndjson.HEARTBEAT

    async def listen(self, queue: "asyncio.Queue[Entry | None]", last: Entry) -> AsyncIterator[bytes]:
        since = self.clock.monotonic()
        while (now := self.clock.monotonic()) < self.deadline:
            if last.standing.until and now - since > HELD_SECONDS:
                yield self._held(last)
                return
            try:
                patience = min(self.settings.reader_heartbeat_seconds, self.deadline - now)
                entry = await asyncio.wait_for(queue.get(), patience)
            except TimeoutError:
                yield ndjson.HEARTBEAT
                continue
            if entry is None:
                return
            last, since = entry, self.clock.monotonic()
            yield self.lines(entry)
            if entry.standing.phase == "ended":
                return

    def _held(self, last: Entry) -> bytes:
        held = Held(until=self.clock.instant(last.standing.until - self.clock.time()), retry_after=HELD_SECONDS)
        return ndjson.lines(self.sent, held, self.dialect)


ROUTES = (
    surface.START_TURN.to(chat, first=known_scope),
    surface.FOLLOW_TURN.to(events),
    surface.UNDO_TURN.to(undo),
    surface.SHOW_IMAGE.to(picture),
    surface.EDITOR_BRIDGE.to(editor_bridge),
)


class Live(StreamingResponse):
    """Tells when it is over, also when the client went away before it began."""

    def __init__(self, answer: Answer) -> None:
        assert answer.stream is not None
        super().__init__(answer.stream, answer.status, dict(answer.headers))
        self._closed = answer.closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._closed:
                self._closed()


async def endpoint(asked: AsgiRequest) -> Response:
    """Verbs are synchronous; they run in a bounded pool, and only the streaming is not."""
    try:
        body = await _body(asked)
    except ClientDisconnect:
        return Response(status_code=499)
    request = of_scope(asked.scope, body)
    answer = await asyncio.get_running_loop().run_in_executor(verbs, serve, open_desk(), ROUTES, request)
    if answer.stream is not None:
        return Live(answer)
    return Response(answer.content(), answer.status, dict(answer.headers))


async def _body(asked: AsgiRequest) -> bytes:
    """One byte more than is taken is enough to know that it is too much."""
    body = bytearray()
    async for chunk in asked.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            break
    return bytes(body)


# Mounted rather than routed: every method comes to the edge, which knows what each path allows.
app = Starlette(routes=[Mount("/", request_response(endpoint))])
