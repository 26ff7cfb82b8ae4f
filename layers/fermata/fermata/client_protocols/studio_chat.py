"""Serve the studio's own clients: its chat, a chat whose stream broke, and what was said before (decision 0474)."""

from dataclasses import replace
from typing import Any

from fermata.client_protocols.client_turns import find_client_turn, read_started_entries
from fermata.client_protocols.log_response import send_chunks
from fermata.client_protocols.studio_messages import read_conversation_parameter, read_studio_messages
from fermata.client_protocols.studio_turns import (
    STUDIO_SCOPE,
    StudioMessage,
    find_studio_conversation,
    find_studio_project,
    make_studio_renderer,
    start_studio_turn,
)
from fermata.content.content_space import SpaceKey
from fermata.conversations import conversation_store
from fermata.domain.conversation import Conversation
from fermata.domain.errors import NotFound
from fermata.domain.use_limits import DEFAULT_USER_LIMITS
from fermata.limits.monthly_messages import MonthlyMessages
from fermata.turns.turn import Turn
from fermata.turns.turn_log import LogEntry, read_end_type, read_whole_log
from fermata.wire.bodies.studio_requests import StudioChatBody
from fermata.wire.http.disconnects_header import BRIDGE_HEADER
from fermata.wire.http.json_body import parse_body
from fermata.wire.http.messages import EVENT_STREAM, EVENT_STREAM_HEARTBEAT, Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext

STUDIO_MESSAGES_PER_MINUTE = 10
"""Of one user, unless the workspace has a limit of its own."""
CONVERSATIONS_PER_PAGE, MAX_CONVERSATIONS_PER_PAGE = 50, 200
NO_WORKSPACE = "There is no such workspace."
_STREAM_HEADERS = {"Content-Type": EVENT_STREAM, "Cache-Control": "private, no-store", "X-Accel-Buffering": "no"}


def chat_in_studio(context: RequestContext) -> Response:
    """Answer a message with a stream of events."""
    body = parse_body(context.request, StudioChatBody, ignore_unknown=True)
    project = _open_project(context)
    message = StudioMessage(
        body.message,
        conversation_id=body.conversation_id or "",
        model_id=body.model or "",
        ui_context=body.context.to_ui_context() if body.context else {},
    )
    caller = context.caller
    month = MonthlyMessages(context.resources, caller.tenant, caller.user, context.tenant.subscription)
    started = start_studio_turn(_limit_messages(context), project, message, month)
    entries = read_started_entries(context.resources, started)
    return _send(context, started.turn, entries, is_returning=started.is_joined)


def follow_studio_chat(context: RequestContext) -> Response:
    """Send the events of the turn that runs in a conversation, from its beginning; 204 if none runs."""
    conversation = _find_conversation(context, read_conversation_parameter(context.request))
    turn = find_client_turn(context.resources, context.caller, conversation)
    if turn is None or read_end_type(context.resources, turn):
        return Response(204)
    return _send(context, turn, read_whole_log(context.resources, turn.pk), is_returning=True)


def list_studio_conversations(context: RequestContext) -> Response:
    """List the caller's conversations about a project, the latest use first."""
    project = _open_project(context)
    limit = read_integer_parameter(context.request, "limit", CONVERSATIONS_PER_PAGE, maximum=MAX_CONVERSATIONS_PER_PAGE)
    page = conversation_store.list_conversations(
        context.resources,
        context.caller,
        STUDIO_SCOPE,
        cursor=context.request.query.get("cursor"),
        limit=max(1, limit),
    )
    found = [_describe(one) for one in page.conversations if one.space in ("", project.name)]
    return Response(200, {"conversations": found, "nextCursor": page.next_cursor})


def show_studio_messages(context: RequestContext) -> Response:
    """Show what was said in a conversation."""
    conversation = _find_conversation(context, context.path_parameters["conversationId"])
    return Response(200, read_studio_messages(context, conversation))


def _open_project(context: RequestContext) -> SpaceKey:
    """Return the project of the path. The workspace of the path has to be the caller's."""
    if context.path_parameters["workspaceId"] != context.caller.tenant:
        raise NotFound(NO_WORKSPACE)
    return find_studio_project(context, context.path_parameters["projectId"])


def _find_conversation(context: RequestContext, conversation_id: str) -> Conversation:
    return find_studio_conversation(context, _open_project(context), conversation_id)


def _limit_messages(context: RequestContext) -> RequestContext:
    """Return the request with the studio's limit of messages a minute, unless somebody has chosen another one."""
    usual = context.resources.settings.caller_limits.user.prompts_per_minute
    limits = context.tenant.limits
    if limits.user_prompts_per_minute is not None or usual != DEFAULT_USER_LIMITS.prompts_per_minute:
        return context
    own = limits.model_copy(update={"user_prompts_per_minute": STUDIO_MESSAGES_PER_MINUTE})
    return replace(context, tenant=context.tenant.model_copy(update={"limits": own}))


def _send(context: RequestContext, turn: Turn, entries: list[LogEntry], *, is_returning: bool) -> Response:
    renderer = make_studio_renderer(context, turn)
    return send_chunks(
        context,
        turn,
        entries,
        renderer,
        _STREAM_HEADERS | {BRIDGE_HEADER: turn.id},
        heartbeat=EVENT_STREAM_HEARTBEAT,
        is_returning=is_returning,
        render_end=renderer.render_end,
    )


def _describe(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "title": conversation.title,
        "createdAt": conversation.created_at,
        "updatedAt": conversation.updated_at,
    }
