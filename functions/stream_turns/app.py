"""Start turns and stream their logs: an ASGI application behind the Lambda Web Adapter (decision 0011).

Images are served here too, because API Gateway passes bytes through unchanged only where it streams (decision 0063).
"""

import asyncio
from collections.abc import AsyncIterable, Iterable
from dataclasses import replace
from functools import partial

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.requests import Request as AsgiRequest
from starlette.responses import Response as AsgiResponse
from starlette.responses import StreamingResponse
from starlette.routing import Mount, request_response
from starlette.types import Receive, Scope, Send

from fermata.agents.registry import get_tool_namer
from fermata.aws.resources import get_resources, prepare_function
from fermata.client_protocols.client_messages import ClientPrompt, read_native_prompt
from fermata.client_protocols.client_turns import download_prompt_files
from fermata.client_protocols.log_response import get_log_poller, handler_pool, send_log
from fermata.conversations import conversation_store, message_views
from fermata.domain.agent_ids import is_scope
from fermata.domain.errors import InvalidRequest, PathNotFound
from fermata.domain.events import Event
from fermata.domain.page_context import NO_AGENT_CONTEXT
from fermata.turns.prompt_queue.change_queue import build_prompt_view
from fermata.turns.prompt_queue.enqueue_prompt import start_or_enqueue
from fermata.turns.read.follow_log import read_entries_after
from fermata.turns.read.log_stream import LogStream
from fermata.turns.start.commit_start import StartedTurn
from fermata.turns.start.idempotency import find_started_turn
from fermata.turns.start.start_turn import start_turn
from fermata.turns.start.turn_prompt import TurnPrompt
from fermata.turns.turn import Turn, find_turn_for_caller
from fermata.turns.turn_log import LogEntry
from fermata.turns.undo.start_undo import UndoRequest, start_undo
from fermata.wire.bodies.check_instatic_images import check_instatic_images
from fermata.wire.bodies.find_snapshot import find_snapshot
from fermata.wire.bodies.planner_requests import PlannerChatBody
from fermata.wire.bodies.turn_requests import ChatBody, UndoBody
from fermata.wire.http.asgi import request_from_asgi_scope
from fermata.wire.http.disconnects_header import BRIDGE_HEADER, is_cancelled_on_disconnect
from fermata.wire.http.dispatch import build_whole_response, handle_request
from fermata.wire.http.editor_generation import detect_editor_generation
from fermata.wire.http.json_body import MAX_REQUEST_BYTES
from fermata.wire.http.messages import EVENT_STREAM, HttpRequest, Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.http.tool_naming import select_tool_names
from fermata.wire.operations import chat_clients, cms_agent, conversations, mcp, openai, planner, service, studio, turns
from fermata.wire.renderers.ndjson import HEARTBEAT_LINE, NDJSON_CONTENT_TYPE, render_event

MAX_IDEMPOTENCY_KEY_CHARACTERS = 200
MAX_FRAME_NUMBER = 2_000_000_000
PLANNER_HEARTBEAT_SECONDS = 1.0
STREAM_HEADERS = {
    "Content-Type": NDJSON_CONTENT_TYPE,
    "Cache-Control": "private, no-store",
    "X-Accel-Buffering": "no",
}
TEST_MODEL_ANSWER = (
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"This deployment "}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"content":"works."},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":4}}\n\n'
    b"data: [DONE]\n\n"
)
"""The stream of a chat completion (decision 0245)."""
router = Router("stream_turns")


def require_existing_scope(request: HttpRequest) -> None:
    if not is_scope(request.path_parameters["scope"]):
        raise PathNotFound("Not found")


@router.handles(turns.START_TURN, precondition=require_existing_scope)
def post_prompt(context: RequestContext) -> Response:
    body = context.parse_body(ChatBody)
    if context.tenant.dialect == "instatic":
        check_instatic_images(body)
    sent = read_native_prompt(body)
    prompt = _build_prompt(context, body, sent)
    if sent.download:
        known = find_started_turn(context.resources, context.caller, prompt.idempotency_key, prompt.digest)
        if known:
            return _respond_with_started_turn(context, known)
        prompt = download_prompt_files(context.resources, context.caller, sent, prompt)
    start = partial(start_turn, context.resources, context.caller)
    if body.when_busy != "enqueue" or context.tenant.dialect == "instatic":
        return _respond_with_started_turn(context, start(prompt))
    started = start_or_enqueue(context.resources, context.caller, prompt, start)
    if isinstance(started, StartedTurn):
        return _respond_with_started_turn(context, started)
    return Response(202, {"queuedPrompt": build_prompt_view(started)})


def _build_prompt(context: RequestContext, body: ChatBody, sent: ClientPrompt) -> TurnPrompt:
    tool_names = select_tool_names(context)
    return TurnPrompt(
        scope=context.path_parameters["scope"],
        conversation_id=body.conversation_id,
        content=sent.content,
        image_paths=sent.image_paths,
        dialect=context.tenant.dialect,
        tool_names=tool_names,
        generation=detect_editor_generation(context, tool_names, has_content=body.content is not None),
        snapshot=find_snapshot(context.resources, context.caller, body),
        revision=body.revision or "",
        has_browser_tools=body.browser_tools,
        agent_context=body.context.to_agent_context() if body.context else NO_AGENT_CONTEXT,
        space=body.space or "",
        idempotency_key=_read_idempotency_key(context.request),
        max_rounds=context.tenant.limits.max_rounds,
        thinking_tokens=context.tenant.limits.thinking_tokens,
        limits=context.caller_limits,
        body_bytes=len(context.request.body),
        authorization=context.authorization,
        interrupts=body.when_busy == "interrupt" and context.tenant.dialect != "instatic",
        is_cancelled_on_disconnect=is_cancelled_on_disconnect(context),
    )


@router.handles(turns.UNDO_TURN)
def undo_turn(context: RequestContext) -> Response:
    body = context.parse_body(UndoBody) if context.request.body.strip() else UndoBody()
    undo_request = UndoRequest(
        bridge_id=context.path_parameters["bridgeId"],
        dialect=context.tenant.dialect,
        tool_names=select_tool_names(context),
        through=body.through or "",
        idempotency_key=_read_idempotency_key(context.request),
        limits=context.caller_limits,
    )
    return _respond_with_started_turn(context, start_undo(context.resources, context.caller, undo_request))


def _respond_with_started_turn(context: RequestContext, started: StartedTurn) -> Response:
    """Stream the turn; or respond with 202 and its bridge to a client that accepts JSON."""
    if "application/json" in context.request.headers.get("accept", ""):
        return Response(202, {"bridgeId": started.turn.id, "seq": started.entry.next_number - 1})
    is_joined = started.is_joined
    response = _stream_turn(context, started.turn, [started.entry], 0, is_returning=is_joined, is_counted=is_joined)
    if not started.turn.is_cancelled_on_disconnect:  # as every undo, which goes on when its client has left
        return response
    return replace(response, headers={**response.headers, BRIDGE_HEADER: started.turn.id})


@router.handles(turns.FOLLOW_TURN)
def follow_turn(context: RequestContext) -> Response:
    bridge_id = context.path_parameters["bridgeId"]
    turn = find_turn_for_caller(context.resources, context.caller, bridge_id)
    after = _parse_event_number(context.request.query.get("after", "0"))
    entries = read_entries_after(context.resources, turn, after)
    is_running = entries[-1].state.phase != "ended"
    return _stream_turn(context, turn, entries, after, is_returning=True, is_counted=is_running)


@router.handles(conversations.SHOW_IMAGE)
def show_image(context: RequestContext) -> Response:
    parameters = context.path_parameters
    conversation = conversation_store.get_conversation(context.resources, context.caller, parameters["id"])
    image, mime_type = message_views.read_message_image(
        context.resources, conversation, parameters["messageId"], parameters["index"]
    )
    return Response(200, raw_body=image, headers={"Content-Type": mime_type, "Cache-Control": "private, no-store"})


@router.handles(service.ASK_TEST_MODEL)
def ask_test_model(context: RequestContext) -> Response:
    return Response(200, raw_body=TEST_MODEL_ANSWER, headers={"Content-Type": "text/event-stream"})


def _read_idempotency_key(request: HttpRequest) -> str:
    key = request.headers.get("idempotency-key", "")
    if len(key) > MAX_IDEMPOTENCY_KEY_CHARACTERS:
        raise InvalidRequest(f"An Idempotency-Key has at most {MAX_IDEMPOTENCY_KEY_CHARACTERS} characters.")
    return key


def _parse_event_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidRequest("'after' must be the number of an event: 0, 1, 2, …")
    return int(text)


def _stream_turn(
    context: RequestContext,
    turn: Turn,
    entries: Iterable[LogEntry],
    after: int,
    *,
    is_returning: bool,
    is_counted: bool,
) -> Response:
    """Stream a turn's log.

    Args:
        is_returning: Whether the turn may have had readers before.
        is_counted: Whether the stream counts as a reader. That with which a turn starts does not (decision 0263).
    """
    to_client_name = get_tool_namer(turn.scope, select_tool_names(context))

    def render(number: int, event: Event) -> bytes:
        return render_event(number, event, turn.dialect, to_client_name)

    resources = context.resources
    log_stream = LogStream(resources, turn, get_log_poller(resources), render, lambda: HEARTBEAT_LINE, after=after)
    return send_log(
        context, turn, entries, log_stream, STREAM_HEADERS, is_returning=is_returning, is_counted=is_counted
    )


@router.handles(planner.CHAT)
def chat_with_planner(context: RequestContext) -> Response:
    from fermata.planner_api import route_chat, sessions  # imported here because few instances serve the planner
    from fermata.wire.renderers.planner_sse import PlannerJsonRenderer

    body = context.parse_body(PlannerChatBody)
    resources, caller, key = context.resources, context.caller, _read_idempotency_key(context.request)
    location = sessions.open_session(resources, caller, body.session, body.site_id)
    answer = route_chat.answer_chat(resources, caller, location, body, key)
    if isinstance(answer, route_chat.ChatAnswer):
        return Response(answer.status, answer.result)
    started = answer or start_turn(
        resources, caller, route_chat.build_prompt(context, location, body, idempotency_key=key)
    )
    renderer = PlannerJsonRenderer(started.turn.model, {"modelKey": body.model_key} if body.model_key else {})
    log_stream = LogStream(resources, started.turn, get_log_poller(resources), renderer.render, lambda: b" ", after=0)
    headers = {**STREAM_HEADERS, "Content-Type": "application/json"}
    return send_log(
        context,
        started.turn,
        [started.entry],
        log_stream,
        headers,
        is_returning=started.is_joined,
        is_counted=started.is_joined,
    )


@router.handles(planner.STREAM_CHAT)
def stream_planner_chat(context: RequestContext) -> Response:
    from fermata.planner_api.chat_streams import (  # imported here because few instances serve the planner
        open_stream,
        read_stream_entries,
    )
    from fermata.wire.renderers.planner_sse import PlannerSseRenderer

    resources, clock = context.resources, context.resources.clock
    after = context.request.query.get("afterSeq")
    seen = None if after is None else read_integer_parameter(context.request, "afterSeq", 0, maximum=MAX_FRAME_NUMBER)
    opened = open_stream(context, context.request.query.get("streamId", ""), seen)
    headers = {**STREAM_HEADERS, "Content-Type": EVENT_STREAM}
    turn = opened.turn
    if turn is None:
        return Response(200, raw_body=opened.answer, headers=headers)
    entries = read_stream_entries(resources, turn, seen or 0)
    renderer = PlannerSseRenderer(turn.model, seen or 0, turn.started_ms)
    log_stream = LogStream(
        resources,
        turn,
        get_log_poller(resources),
        renderer.render,
        lambda: renderer.render_heartbeat(int(clock.time() * 1000)),
        after=0,
        heartbeat_seconds=PLANNER_HEARTBEAT_SECONDS,
        is_silent_without_events=True,
    )
    is_returning = seen is not None
    return send_log(context, turn, entries, log_stream, headers, is_returning=is_returning, is_counted=is_returning)


router.handles_by_path(chat_clients.CHAT_ON_PAGE, "fermata.client_protocols.ui_chat:chat_on_page")
router.handles_by_path(chat_clients.RESUME_ON_PAGE, "fermata.client_protocols.ui_chat:resume_on_page")
router.handles_by_path(chat_clients.CHAT_WITH_AGENT, "fermata.client_protocols.ui_chat:chat_with_agent")
router.handles_by_path(chat_clients.RESUME_CHAT, "fermata.client_protocols.ui_chat:resume_chat")
router.handles_by_path(chat_clients.STOP_CHAT, "fermata.client_protocols.ui_chat:stop_chat")
router.handles_by_path(chat_clients.RUN_AGUI, "fermata.client_protocols.agui_runs:run_agui")
router.handles_by_path(openai.CREATE_CHAT_COMPLETION, "fermata.client_protocols.openai_endpoint:create_chat_completion")
router.handles_by_path(openai.CREATE_RESPONSE, "fermata.client_protocols.openai_endpoint:create_response")
router.handles_by_path(openai.SHOW_RESPONSE, "fermata.client_protocols.openai_stored_responses:show_response")
router.handles_by_path(openai.LIST_INPUT_ITEMS, "fermata.client_protocols.openai_input_items:list_input_items")
router.handles_by_path(openai.DELETE_RESPONSE, "fermata.client_protocols.openai_stored_responses:delete_response")
router.handles_by_path(openai.CANCEL_RESPONSE, "fermata.client_protocols.openai_stored_responses:cancel_response")
router.handles_by_path(cms_agent.STREAM_CMS_ANSWER, "fermata.client_protocols.cms_agent:stream_cms_answer")
router.handles_by_path(cms_agent.FOLLOW_CMS_ANSWER, "fermata.client_protocols.cms_agent:follow_cms_answer")
router.handles_by_path(cms_agent.GENERATE_CMS_ANSWER, "fermata.client_protocols.cms_agent:generate_cms_answer")
router.handles_by_path(studio.CHAT_IN_STUDIO, "fermata.client_protocols.studio_chat:chat_in_studio")
router.handles_by_path(studio.FOLLOW_STUDIO_CHAT, "fermata.client_protocols.studio_chat:follow_studio_chat")
router.handles_by_path(
    studio.LIST_STUDIO_CONVERSATIONS, "fermata.client_protocols.studio_chat:list_studio_conversations"
)
router.handles_by_path(studio.SHOW_STUDIO_MESSAGES, "fermata.client_protocols.studio_chat:show_studio_messages")


router.handles_public_by_path(
    studio.SEND_CONVERSATION_MESSAGE, "fermata.client_protocols.conversation_api:send_conversation_message"
)
router.handles_public_by_path(
    studio.SHOW_CONVERSATION_HISTORY, "fermata.client_protocols.conversation_api:show_conversation_history"
)
router.handles_public_by_path(mcp.EDITOR_BRIDGE, "fermata.client_protocols.editor_stream:open_editor_bridge")
router.handles_public_by_path(mcp.ASK_MCP, "fermata.client_protocols.mcp_endpoint:ask_mcp")
router.handles_public_by_path(mcp.ASK_MCP_OF_WORKSPACE, "fermata.client_protocols.mcp_endpoint:ask_mcp")
router.handles_public_by_path(mcp.ASK_INSTATIC_MCP, "fermata.client_protocols.mcp_endpoint:ask_mcp")
router.handles_public_by_path(
    mcp.SHOW_RESOURCE_METADATA, "fermata.client_protocols.mcp_endpoint:show_resource_metadata"
)


class ClosingStreamingResponse(StreamingResponse):
    """A streaming response that calls `on_close` when it is over, also when the client left before it began."""

    def __init__(self, response: Response) -> None:
        assert response.stream is not None
        super().__init__(response.stream, response.status, dict(response.headers))
        self._on_close = response.on_close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._on_close:
                self._on_close()


async def handle_asgi_request(asgi_request: AsgiRequest) -> AsgiResponse:
    """Handle a request. Handlers are synchronous, so they run in a bounded pool; only streams are asynchronous."""
    try:
        body = await _read_body(asgi_request)
    except ClientDisconnect:
        return AsgiResponse(status_code=499)
    request = request_from_asgi_scope(asgi_request.scope, body)
    response = await asyncio.get_running_loop().run_in_executor(
        handler_pool, handle_request, get_resources(), router.routes, request
    )
    if response.build_whole is not None:
        response = await _read_to_end(request, response)
    if response.stream is not None:
        return ClosingStreamingResponse(response)
    return AsgiResponse(response.to_bytes(), response.status, dict(response.headers))


async def _read_to_end(request: HttpRequest, response: Response) -> Response:
    """Return the response to a stream that its client wants whole, so that its status is known first."""
    assert isinstance(response.stream, AsyncIterable)
    try:
        async for _ in response.stream:
            pass
        whole = await asyncio.get_running_loop().run_in_executor(
            handler_pool, build_whole_response, get_resources(), request, response
        )
    finally:
        if response.on_close:
            response.on_close()
    return whole


async def _read_body(asgi_request: AsgiRequest) -> bytes:
    """Read the body until it is larger than allowed. `handle_request` then refuses it."""
    body = bytearray()
    async for chunk in asgi_request.stream():
        body += chunk
        if len(body) > MAX_REQUEST_BYTES:
            break
    return bytes(body)


# A mount passes every method on, because dispatch responds to wrong methods and OPTIONS itself (decision 0010).
app = Starlette(routes=[Mount("/", request_response(handle_asgi_request))])
prepare_function("dynamodb", "s3", "kms", "stepfunctions")
