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
from starlette.responses import Response as AsgiResponse
from starlette.responses import StreamingResponse
from starlette.routing import Mount, request_response
from starlette.types import Receive, Scope, Send

from fermata.aws.resources import Resources, get_resources
from fermata.conversations import conversation_store, message_views
from fermata.domain.dialect import Dialect, ToolNameMapper
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.domain.events import HeldEvent
from fermata.domain.scopes import SCOPES
from fermata.tools.registry import get_tool_namer
from fermata.turns.end import end_turn
from fermata.turns.read import follow_log
from fermata.turns.read.abandonment import AbandonmentWatcher
from fermata.turns.read.follow_log import LogPoller
from fermata.turns.start.idempotency import StartedTurn
from fermata.turns.start.start_turn import TurnPrompt, start_turn
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry
from fermata.turns.undo import start_undo
from fermata.wire.bodies import instatic_images
from fermata.wire.bodies.requests import ChatBody, UndoBody
from fermata.wire.bodies.snapshots import resolve_snapshot
from fermata.wire.http.dispatch import RequestContext, handle_request
from fermata.wire.http.messages import MAX_REQUEST_BYTES, HttpRequest, Response, request_from_asgi_scope
from fermata.wire.http.tool_names_header import select_tool_names
from fermata.wire.operations import surface
from fermata.wire.renderers import ndjson

HOLD_GRACE_SECONDS = 30
"""How long a reader stays once nothing will come before a person acts."""
MAX_IDEMPOTENCY_KEY_CHARACTERS = 200
STREAM_HEADERS = {
    "Content-Type": ndjson.NDJSON_CONTENT_TYPE,
    "Cache-Control": "private, no-store",
    "X-Accel-Buffering": "no",
}
handler_pool = ThreadPoolExecutor(max_workers=32, thread_name_prefix="verb")


@cache
def tails(resources: Resources) -> LogPoller:
    return LogPoller(resources)


@cache
def watch(resources: Resources) -> AbandonmentWatcher:
    return AbandonmentWatcher(resources)


def require_known_scope(request: HttpRequest) -> None:
    if request.path_parameters["scope"] not in SCOPES:
        raise NotFound("Not found")


def post_prompt(visit: RequestContext) -> Response:
    """Streams the turn it starts, or answers 202 with its bridge when asked for JSON."""
    body = visit.parse_body(ChatBody)
    if visit.tenant.dialect == "instatic":
        instatic_images.check_instatic_images(body)
    snapshot = resolve_snapshot(visit.resources, visit.caller, body)
    prompt = TurnPrompt(
        scope=visit.request.path_parameters["scope"],
        conversation_id=body.conversation_id,
        content=body.to_blocks(),
        image_places=body.image_places(),
        dialect=visit.tenant.dialect,
        tool_names=select_tool_names(visit),
        snapshot=snapshot.value,
        packed=snapshot.packed,
        revision=body.revision or "",
        idempotency_key=_idempotency_key(visit.request),
        max_rounds=visit.tenant.limits.max_rounds,
        thinking_tokens=visit.tenant.limits.thinking_tokens,
    )
    return _begun(visit, start_turn(visit.resources, visit.caller, prompt))


def undo_turn(visit: RequestContext) -> Response:
    """The same for what another turn did: it is taken back."""
    body = visit.parse_body(UndoBody) if visit.request.body.strip() else UndoBody()
    wish = start_undo.UndoRequest(
        bridge_id=visit.request.path_parameters["bridgeId"],
        dialect=visit.tenant.dialect,
        tool_names=select_tool_names(visit),
        through=body.through or "",
        idempotency_key=_idempotency_key(visit.request),
    )
    return _begun(visit, start_undo.start_undo(visit.resources, visit.caller, wish))


def _begun(visit: RequestContext, started: StartedTurn) -> Response:
    if "application/json" in visit.request.headers.get("accept", ""):
        return Response(202, {"bridgeId": started.turn.id, "seq": started.entry.next_number - 1})
    return _followed(visit, started.turn, [started.entry], 0)


def follow_turn(visit: RequestContext) -> Response:
    """The turn's events after number `after`, then whatever follows."""
    turn = end_turn.find_turn_for_caller(visit.resources, visit.caller, visit.request.path_parameters["bridgeId"])
    after = _number(visit.request.query.get("after", "0"))
    known = follow_log.read_entries_after(visit.resources, turn, after)
    return _followed(visit, turn, known, after)


def open_editor_bridge(visit: RequestContext) -> Response:
    """Instatic's editor opens it unasked, for calls from outside. There are none here, so it only stays alive."""
    if visit.tenant.dialect != "instatic":
        raise NotFound("Not found")
    if visit.request.query.get("scope", "site") not in SCOPES:
        raise InvalidRequest(f"'scope' must be one of {', '.join(SCOPES)}.")
    return Response(200, stream=stream_heartbeats(visit.resources), headers=STREAM_HEADERS)


def show_image(visit: RequestContext) -> Response:
    params = visit.request.path_parameters
    conversation = conversation_store.get_conversation(visit.resources, visit.caller, params["id"])
    raw, mime_type = message_views.read_message_image(
        visit.resources, conversation, params["messageId"], params["index"]
    )
    return Response(200, raw_body=raw, headers={"Content-Type": mime_type, "Cache-Control": "private, no-store"})


async def stream_heartbeats(resources: Resources) -> AsyncIterator[bytes]:
    settings = resources.settings
    end = resources.clock.monotonic() + settings.reader_seconds
    while resources.clock.monotonic() < end:
        yield ndjson.HEARTBEAT_LINE
        await asyncio.sleep(settings.reader_heartbeat_seconds)


def _idempotency_key(request: HttpRequest) -> str:
    key = request.headers.get("idempotency-key", "")
    if len(key) > MAX_IDEMPOTENCY_KEY_CHARACTERS:
        raise InvalidRequest(f"An Idempotency-Key has at most {MAX_IDEMPOTENCY_KEY_CHARACTERS} characters.")
    return key


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidRequest("'after' must be the number of an event: 0, 1, 2, …")
    return int(text)


def _followed(visit: RequestContext, turn: Turn, known: Iterable[LogEntry], after: int) -> Response:
    """The stream, and a note of whether it came to its end or was cut off."""
    resources, ended = visit.resources, list[bool]()
    reader = Reader(resources, turn.dialect, get_tool_namer(turn.scope, select_tool_names(visit)), after)
    watch(resources).add_reader(turn)
    return Response(
        200,
        stream=stream_entries(resources, turn, known, reader, lambda: ended.append(True)),
        headers=STREAM_HEADERS,
        on_close=lambda: watch(resources).remove_reader(turn, is_broken_off=not ended),
    )


async def stream_entries(
    resources: Resources, turn: Turn, known: Iterable[LogEntry], reader: "Reader", on_end: Callable[[], object]
) -> AsyncIterator[bytes]:
    """Lines until a terminal event, this reader's own deadline, or a while into a hold."""
    last = None
    for last in known:
        yield reader.lines(last)
    if last is not None and last.state.phase != "ended":
        async with _new_entries(resources, turn, last.next_number) as queue:
            async for chunk in reader.listen(queue, last):
                yield chunk
    on_end()


@asynccontextmanager
async def _new_entries(
    resources: Resources, turn: Turn, number: int
) -> AsyncIterator["asyncio.Queue[LogEntry | None]"]:
    queue: asyncio.Queue[LogEntry | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def deliver(entry: LogEntry | None) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, entry)

    follower = tails(resources).follow(turn, number, deliver)
    try:
        yield queue
    finally:
        tails(resources).unfollow(follower)


class Reader:
    """One response: what tools are called in it, what it has sent, and how long it still lasts."""

    def __init__(self, resources: Resources, dialect: Dialect, called: ToolNameMapper, after: int) -> None:
        self.settings, self.clock, self.dialect, self.called = resources.settings, resources.clock, dialect, called
        self.sent = after
        self.deadline = self.clock.monotonic() + self.settings.reader_seconds

    def lines(self, entry: LogEntry) -> bytes:
        numbered = [
            (number, event) for number, event in enumerate(entry.events, entry.first_number) if number > self.sent
        ]
        self.sent = max(self.sent, entry.next_number - 1)
        told = (ndjson.render_event(number, event, self.dialect, self.called) for number, event in numbered)
        return b"".join(told) or ndjson.HEARTBEAT_LINE

    async def listen(self, queue: "asyncio.Queue[LogEntry | None]", last: LogEntry) -> AsyncIterator[bytes]:
        since = self.clock.monotonic()
        while (now := self.clock.monotonic()) < self.deadline:
            if last.state.until and now - since > HOLD_GRACE_SECONDS:
                yield self._held(last)
                return
            try:
                patience = min(self.settings.reader_heartbeat_seconds, self.deadline - now)
                entry = await asyncio.wait_for(queue.get(), patience)
            except TimeoutError:
                yield ndjson.HEARTBEAT_LINE
                continue
            if entry is None:
                return
            last, since = entry, self.clock.monotonic()
            yield self.lines(entry)
            if entry.state.phase == "ended":
                return

    def _held(self, last: LogEntry) -> bytes:
        held = HeldEvent(until=self.clock.now_iso(last.state.until - self.clock.time()), retry_after=HOLD_GRACE_SECONDS)
        return ndjson.render_event(self.sent, held, self.dialect)


ROUTES = (
    surface.START_TURN.to(post_prompt, first=require_known_scope),
    surface.FOLLOW_TURN.to(follow_turn),
    surface.UNDO_TURN.to(undo_turn),
    surface.SHOW_IMAGE.to(show_image),
    surface.EDITOR_BRIDGE.to(open_editor_bridge),
)


class ClosingStreamingResponse(StreamingResponse):
    """Tells when it is over, also when the client went away before it began."""

    def __init__(self, answer: Response) -> None:
        assert answer.stream is not None
        super().__init__(answer.stream, answer.status, dict(answer.headers))
        self._closed = answer.on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._closed:
                self._closed()


async def endpoint(asked: AsgiRequest) -> AsgiResponse:
    """Verbs are synchronous; they run in a bounded pool, and only the streaming is not."""
    try:
        body = await _body(asked)
    except ClientDisconnect:
        return AsgiResponse(status_code=499)
    request = request_from_asgi_scope(asked.scope, body)
    answer = await asyncio.get_running_loop().run_in_executor(
        handler_pool, handle_request, get_resources(), ROUTES, request
    )
    if answer.stream is not None:
        return ClosingStreamingResponse(answer)
    return AsgiResponse(answer.to_bytes(), answer.status, dict(answer.headers))


async def _body(asked: AsgiRequest) -> bytes:
    """One byte more than is taken is enough to know that it is too much."""
    body = bytearray()
    async for chunk in asked.stream():
        body += chunk
        if len(body) > MAX_REQUEST_BYTES:
            break
    return bytes(body)


# Mounted rather than routed: every method comes to the edge, which knows what each path allows.
app = Starlette(routes=[Mount("/", request_response(endpoint))])
