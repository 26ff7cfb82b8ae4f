"""Conversations, defaults, the state of a turn and its cancelling; every path nobody else has."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import fermata
from fermata.aws import uploads
from fermata.aws.resources import Resources
from fermata.conversations import conversation_store, message_views
from fermata.credentials import credential_store, scope_defaults
from fermata.domain.conversation import Conversation
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.domain.scopes import SCOPES
from fermata.tools import listing
from fermata.tools.registry import get_tool_namer
from fermata.tools.tool_names import ToolNaming
from fermata.turns.end import end_turn
from fermata.turns.read import turn_status
from fermata.turns.start import conversation_claim
from fermata.usage.audit import audit_from_rollups
from fermata.usage.budgets import budget_limits, budget_status
from fermata.wire.bodies.requests import (
    ConversationChange,
    NewBudgetLimits,
    NewBudgets,
    NewConversation,
    NewDefault,
    NewUpload,
)
from fermata.wire.http.dispatch import RequestContext, make_handler
from fermata.wire.http.messages import HttpRequest, Response, read_integer_parameter
from fermata.wire.http.tool_names_header import select_tool_names
from fermata.wire.operations import surface

CACHEABLE_HEADERS = {"Cache-Control": "public, max-age=3600"}
UNCACHED_HEADERS = {"Cache-Control": "private, no-store"}
DEFAULT_CONVERSATIONS_PER_PAGE, MAX_CONVERSATIONS_PER_PAGE = 200, 500
"""Conversations a page of the list has, and may have."""


def list_conversations(visit: RequestContext) -> Response:
    """The first page has the contract's shape; `nextCursor` is there when there are more."""
    query = visit.request.query
    scope, limit = (
        query.get("scope"),
        read_integer_parameter(
            visit.request, "limit", DEFAULT_CONVERSATIONS_PER_PAGE, maximum=MAX_CONVERSATIONS_PER_PAGE
        ),
    )
    if scope not in SCOPES:
        raise InvalidRequest(f"Name the 'scope' to list: one of {', '.join(SCOPES)}.")
    page = conversation_store.list_conversations(
        visit.resources, visit.caller, scope, cursor=query.get("cursor"), limit=max(1, limit)
    )
    listed = {"conversations": _views(visit, page.conversations)}
    return Response(200, listed | ({"nextCursor": page.next_cursor} if page.next_cursor else {}), UNCACHED_HEADERS)


def create_conversation(visit: RequestContext) -> Response:
    body = visit.parse_body(NewConversation)
    _known_credential(visit, body.credential_id)
    conversation = conversation_store.create_conversation(
        visit.resources, visit.caller, body.scope, body.title, body.credential_id, body.model_id or ""
    )
    return Response(201, {"conversation": conversation_store.to_conversation_view(conversation)})


def show_conversation(visit: RequestContext) -> Response:
    """With its newest messages; `nextCursor` is what `before` asks for the older ones with."""
    before = read_integer_parameter(visit.request, "before", 0) or None
    limit = max(
        1,
        read_integer_parameter(
            visit.request, "limit", message_views.MAX_PAGE_LINES, maximum=message_views.MAX_PAGE_LINES
        ),
    )
    conversation = conversation_store.get_conversation(
        visit.resources, visit.caller, visit.request.path_parameters["id"]
    )
    called = get_tool_namer(conversation.scope, select_tool_names(visit))
    page = message_views.read_message_page(
        visit.resources, conversation, visit.tenant.dialect, called, before=before, limit=limit
    )
    shown = _views(visit, [conversation])[0] | {"messages": page.lines}
    if turn := turn_status.find_active_turn(visit.resources, conversation):
        shown["activeTurn"] = turn
    return Response(
        200, {"conversation": shown} | ({"nextCursor": str(page.before)} if page.before else {}), UNCACHED_HEADERS
    )


def change_conversation(visit: RequestContext) -> Response:
    """A turn that runs goes on with the model it was started with; the next one uses the new."""
    body = visit.parse_body(ConversationChange)
    _known_credential(visit, body.credential_id)
    given = {"title": body.title, "credential_id": body.credential_id, "model_id": body.model_id}
    changed = conversation_store.update_conversation(
        visit.resources, visit.caller, visit.request.path_parameters["id"], **given
    )
    return Response(200, {"conversation": _views(visit, [changed])[0]})


def delete_conversation(visit: RequestContext) -> Response:
    """Nobody will see a turn that still runs in it, so it ends."""
    removed = conversation_store.delete_conversation(visit.resources, visit.caller, visit.request.path_parameters["id"])
    conversation_claim.cancel_active_turn(visit.resources, removed)
    return Response(200, {"ok": True})


def _views(visit: RequestContext, conversations: Sequence[Conversation]) -> list[dict[str, Any]]:
    """A credential that was removed is none, so that whoever goes on picks another."""
    named = {one.credential_id for one in conversations if one.credential_id}
    known = credential_store.find_existing_ids(visit.resources, visit.caller.tenant, named)
    gone = {"credential_id": None}
    return [
        conversation_store.to_conversation_view(one if one.credential_id in known else one.model_copy(update=gone))
        for one in conversations
    ]


def _known_credential(visit: RequestContext, credential_id: str | None) -> None:
    if credential_id and not credential_store.find_existing_ids(visit.resources, visit.caller.tenant, [credential_id]):
        raise InvalidRequest("Credential not found. Pick an existing credential.")


def show_audit(visit: RequestContext) -> Response:
    query = visit.request.query
    with_billable = query.get("billable") == "true"
    tenant = visit.caller.tenant
    found = audit_from_rollups.audit_usage(
        visit.resources, tenant, query.get("since"), query.get("tz"), with_billable=with_billable
    )
    return Response(200, found, UNCACHED_HEADERS)


def show_budgets(visit: RequestContext) -> Response:
    return Response(200, budget_status.load_budget_status(visit.resources, visit.caller.tenant), UNCACHED_HEADERS)


def set_budgets(visit: RequestContext) -> Response:
    body = visit.parse_body(NewBudgets)
    wanted = budget_limits.Budgets(
        tenant=_limits(body.tenant),
        each_user=_limits(body.each_user),
        users={user.user_id: _limits(user) for user in body.users},
    )
    budget_limits.set_budgets(visit.resources, visit.caller, wanted)
    return show_budgets(visit)


def _limits(body: NewBudgetLimits) -> budget_limits.BudgetLimits:
    """Exactly the digits that were sent."""
    daily, monthly = (None if usd is None else Decimal(str(usd)) for usd in (body.daily_usd, body.monthly_usd))
    return budget_limits.BudgetLimits(daily_usd=daily, monthly_usd=monthly)


def create_upload(visit: RequestContext) -> Response:
    """An address in the bucket for what is announced; what is put there is checked when it is used."""
    body = visit.parse_body(NewUpload)
    upload = uploads.announce_upload(visit.resources, body.kind, body.size, body.sha256)
    told = {
        "ref": upload.ref,
        "method": "PUT",
        "url": uploads.presign_upload(visit.resources, visit.caller, upload),
        "headers": upload.client_headers,
        "urlExpiresAt": visit.resources.clock.now_iso(uploads.UPLOAD_URL_SECONDS),
        "refExpiresAt": visit.resources.clock.now_iso(uploads.UPLOAD_TTL_SECONDS),
    }
    return Response(201, told, UNCACHED_HEADERS)


def list_tools(visit: RequestContext) -> Response:
    caller, scope = visit.caller, visit.request.path_parameters["scope"]
    tools = listing.list_tools(scope, caller.capabilities, ToolNaming(select_tool_names(visit)), caller.tenant)
    return Response(200, {"tools": tools}, UNCACHED_HEADERS)


def list_connectors(visit: RequestContext) -> Response:
    """Instatic's admin asks for it unasked. There are no MCP connectors here."""
    return Response(200, {"connectors": []})


def show_turn(visit: RequestContext) -> Response:
    return Response(
        200,
        turn_status.get_turn_status(
            visit.resources, visit.caller, visit.request.path_parameters["bridgeId"], select_tool_names(visit)
        ),
    )


def show_journal(visit: RequestContext) -> Response:
    cursor = visit.request.query.get("cursor", "")
    bridge = visit.request.path_parameters["bridgeId"]
    return Response(
        200,
        turn_status.get_journal_page(visit.resources, visit.caller, bridge, cursor, select_tool_names(visit)),
        UNCACHED_HEADERS,
    )


def cancel_turn(visit: RequestContext) -> Response:
    return Response(200, end_turn.cancel_turn(visit.resources, visit.caller, visit.request.path_parameters["bridgeId"]))


def show_defaults(visit: RequestContext) -> Response:
    return Response(200, {"defaults": scope_defaults.get_defaults_view(visit.resources, visit.caller.tenant)})


def set_default(visit: RequestContext) -> Response:
    body = visit.parse_body(NewDefault)
    scope = visit.request.path_parameters["scope"]
    default = scope_defaults.set_default(visit.resources, visit.caller, scope, body.credential_id, body.model_id)
    return Response(200, {"default": default.to_wire()})


def clear_default(visit: RequestContext) -> Response:
    scope_defaults.clear_default(visit.resources, visit.caller, visit.request.path_parameters["scope"])
    return Response(204)


def require_known_scope(request: HttpRequest) -> None:
    scope_defaults.check_scope(request.path_parameters["scope"])


def require_existing_scope(request: HttpRequest) -> None:
    if request.path_parameters["scope"] not in SCOPES:
        raise NotFound("Not found")


def show_health(resources: Resources) -> Response:
    return Response(200, {"ok": True})


def show_version(resources: Resources) -> Response:
    return Response(200, {"version": fermata.__version__, "stage": resources.settings.fermata_stage})


def show_openapi(resources: Resources) -> Response:
    """Loaded here, so that nobody else pays for it."""
    from fermata.wire.openapi import document

    return Response(200, document.build_openapi_document(), CACHEABLE_HEADERS)


ROUTES = (
    surface.LIST_CONVERSATIONS.to(list_conversations),
    surface.CREATE_CONVERSATION.to(create_conversation),
    surface.SHOW_CONVERSATION.to(show_conversation),
    surface.CHANGE_CONVERSATION.to(change_conversation),
    surface.DELETE_CONVERSATION.to(delete_conversation),
    surface.SHOW_AUDIT.to(show_audit),
    surface.SHOW_BUDGETS.to(show_budgets),
    surface.SET_BUDGETS.to(set_budgets),
    surface.TAKE_UPLOAD.to(create_upload),
    surface.LIST_TOOLS.to(list_tools, first=require_existing_scope),
    surface.LIST_CONNECTORS.to(list_connectors),
    surface.SHOW_DEFAULTS.to(show_defaults),
    surface.SET_DEFAULT.to(set_default, first=require_known_scope),
    surface.CLEAR_DEFAULT.to(clear_default, first=require_known_scope),
    surface.SHOW_TURN.to(show_turn),
    surface.CANCEL_TURN.to(cancel_turn),
    surface.SHOW_JOURNAL.to(show_journal),
    surface.SHOW_HEALTH.to(show_health),
    surface.SHOW_VERSION.to(show_version),
    surface.SHOW_HEALTH_HERE.to(show_health),
    surface.SHOW_VERSION_HERE.to(show_version),
    surface.SHOW_OPENAPI.to(show_openapi),
)
handler = make_handler(ROUTES)
