"""Serve the sessions of the CMS agent's own protocol. A session is a conversation of the scope `cms`."""

from typing import Any

from fermata.agents.registry import get_toolset
from fermata.client_protocols.chat_conversations import find_chat
from fermata.client_protocols.cms_session_log import describe_cms_log
from fermata.content.space_access import find_space_for_caller
from fermata.conversations import conversation_store, message_views
from fermata.conversations.block_store import BlockFetcher
from fermata.conversations.message_cuts import leave_out_cut_messages
from fermata.conversations.message_store import read_newest_messages
from fermata.credentials.scope_defaults import choose_model_of_default
from fermata.domain.conversation import Conversation
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.turns.round.remembered_entities import recall_entities
from fermata.turns.start.conversation_claim import cancel_active_turn
from fermata.wire.bodies.cms_agent_requests import CmsSessionChange, CmsTargetBody, NewCmsSession
from fermata.wire.http.cms_agent_envelope import build_cms_envelope
from fermata.wire.http.json_body import parse_body
from fermata.wire.http.messages import Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext

CMS_SCOPE = "cms"
SESSION_NOT_FOUND = "There is no such session."
SESSIONS_PER_PAGE = 50
MAX_SESSIONS_PER_PAGE = 500
MESSAGES_PER_SESSION_PAGE = 200
MEMORY_MESSAGES = 60
LOGGED_MESSAGES = 200


def list_cms_sessions(context: RequestContext) -> Response:
    """Answer with sessions, those that are archived or the others. A page may have fewer than its limit."""
    archived = context.request.query.get("archived", "false")
    if archived not in ("true", "false"):
        raise InvalidRequest("'archived' must be true or false.")
    is_archived = archived == "true"
    limit = read_integer_parameter(context.request, "limit", SESSIONS_PER_PAGE, maximum=MAX_SESSIONS_PER_PAGE)
    page = conversation_store.list_conversations(
        context.resources,
        context.caller,
        CMS_SCOPE,
        cursor=context.request.query.get("cursor"),
        limit=max(1, limit),
    )
    listed = [describe_cms_session(one) for one in page.conversations if one.archived == is_archived]
    return _answer(context, listed, next_cursor=page.next_cursor)


def create_cms_session(context: RequestContext) -> Response:
    body = parse_body(context.request, NewCmsSession)
    credential_id, model_id = _choose_model(context, body.model_id) if body.model_id else (None, "")
    conversation = conversation_store.create_conversation(
        context.resources,
        context.caller,
        CMS_SCOPE,
        body.title,
        credential_id,
        model_id,
        space=_find_target(context, body.cms_target) or "",
    )
    return _answer(context, describe_cms_session(conversation), status=201)


def show_cms_session(context: RequestContext) -> Response:
    conversation = find_cms_session(context)
    page = message_views.read_message_page(
        context.resources,
        conversation,
        context.tenant.dialect,
        before=_read_position(context),
        limit=MESSAGES_PER_SESSION_PAGE,
    )
    data = describe_cms_session(conversation) | {"messages": list(page.lines)}
    return _answer(context, data, next_cursor=str(page.before) if page.before else None)


def change_cms_session(context: RequestContext) -> Response:
    """Change a session. A turn that runs keeps its model and its space."""
    body = parse_body(context.request, CmsSessionChange)
    conversation = find_cms_session(context)
    credential_id, model_id = _choose_model(context, body.model_id) if body.model_id else (None, None)
    changed = conversation_store.update_conversation(
        context.resources,
        context.caller,
        conversation.id,
        title=body.title,
        credential_id=credential_id,
        model_id=model_id,
        space=_find_target(context, body.cms_target),
        archived=body.archived,
    )
    return _answer(context, describe_cms_session(changed))


def delete_cms_session(context: RequestContext) -> Response:
    """Delete a session, and end the turn that runs in it."""
    named = context.path_parameters["sessionId"]
    found = _find_session(context)
    conversation_id = found.id if found else named  # one that is deleted already is answered likewise
    deleted = conversation_store.delete_conversation(context.resources, context.caller, conversation_id)
    cancel_active_turn(context.resources, deleted)
    return _answer(context, {"id": deleted.id})


def show_cms_memory(context: RequestContext) -> Response:
    """Answer with what the agent is told of the session's earlier turns (decision 0452)."""
    conversation = find_cms_session(context)
    newest = read_newest_messages(context.resources, conversation.tenant, conversation.id, limit=MEMORY_MESSAGES)
    messages = BlockFetcher(context.resources.blobs).fetch_shown_blocks(
        list(leave_out_cut_messages(newest, conversation.cuts))
    )
    entities = recall_entities(get_toolset(CMS_SCOPE), messages)
    return _answer(context, [entity.to_wire() for entity in entities])


def list_cms_logs(context: RequestContext) -> Response:
    """Answer with the prompts of the newest messages, each with the steps of its turn."""
    conversation = find_cms_session(context)
    newest = read_newest_messages(
        context.resources,
        conversation.tenant,
        conversation.id,
        before=_read_position(context),
        limit=LOGGED_MESSAGES,
    )
    messages = list(leave_out_cut_messages(newest, conversation.cuts))[::-1]
    older = str(newest[-1].position) if len(newest) == LOGGED_MESSAGES else None
    return _answer(context, describe_cms_log(messages), next_cursor=older)


def find_cms_session(context: RequestContext) -> Conversation:
    """Return the session that the path names.

    Raises:
        NotFound: The caller has no such session.
    """
    found = _find_session(context)
    if found is None:
        raise NotFound(SESSION_NOT_FOUND)
    return found


def describe_cms_session(conversation: Conversation) -> dict[str, Any]:
    """Return a session as its clients read it."""
    site, _, environment = (conversation.space or "").partition("/")
    return {
        "id": conversation.id,
        "title": conversation.title,
        "modelId": conversation.model_id,
        "cmsTarget": {"siteId": site, "environmentId": environment} if site else None,
        "archived": conversation.archived,
        "createdAt": conversation.created_at,
        "updatedAt": conversation.updated_at,
    }


def _find_session(context: RequestContext) -> Conversation | None:
    """Return the session that the path names; None if there is none, or it is deleted."""
    try:
        return find_chat(context.resources, context.caller, CMS_SCOPE, context.path_parameters["sessionId"])
    except InvalidRequest as error:  # the conversation is one with another agent
        raise NotFound(SESSION_NOT_FOUND) from error


def _choose_model(context: RequestContext, model_id: str) -> tuple[str, str]:
    return choose_model_of_default(context.resources, context.caller.tenant, CMS_SCOPE, model_id)


def _find_target(context: RequestContext, target: CmsTargetBody | None) -> str | None:
    if target is None:
        return None
    return find_space_for_caller(context.resources, context.caller, target.space)[0].name


def _read_position(context: RequestContext) -> int | None:
    return read_integer_parameter(context.request, "cursor", 0) or None


def _answer(context: RequestContext, data: Any, *, status: int = 200, next_cursor: str | None = None) -> Response:
    body = build_cms_envelope(data, context.resources.clock.now_iso(), next_cursor)
    return Response(status, body, {"Cache-Control": "private, no-store"})
