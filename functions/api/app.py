"""Serve conversations, defaults, usage, uploads, tools and the state of turns; respond to all unknown paths."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import fermata
from fermata.agents import tool_listing
from fermata.agents.registry import get_tool_namer
from fermata.aws import uploads
from fermata.aws.resources import Resources, prepare_function
from fermata.content.space_access import find_space_for_caller
from fermata.conversations import conversation_store, message_views
from fermata.conversations.conversation_rows import to_conversation_view
from fermata.credentials import scope_defaults
from fermata.credentials.clear_conversation_credentials import clear_conversation_credentials
from fermata.credentials.open_credential import find_existing_ids
from fermata.domain.agent_ids import SCOPES, is_scope
from fermata.domain.conversation import Conversation
from fermata.domain.errors import InvalidRequest, PathNotFound
from fermata.limits.count_use import count_upload
from fermata.tools.tool_names import ToolNaming
from fermata.turns.end import stop_turn
from fermata.turns.read.journal_pages import get_journal_page
from fermata.turns.read.turn_list import MAX_TURNS_PER_PAGE, list_tenant_turns
from fermata.turns.read.turn_report import get_turn_report
from fermata.turns.read.turn_status import find_active_turn, get_turn_status
from fermata.turns.start.conversation_claim import cancel_active_turn
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
from fermata.wire.http.dispatch import make_handler
from fermata.wire.http.editor_generation import select_listed_generation
from fermata.wire.http.messages import HttpRequest, Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.http.tool_naming import select_tool_names
from fermata.wire.operations import (
    cms_agent,
    content,
    content_delivery,
    content_forms,
    content_media,
    content_members,
    conversations,
    defaults,
    editor,
    planner,
    service,
    turns,
    usage,
)

CACHEABLE_HEADERS = {"Cache-Control": "public, max-age=3600"}
UNCACHED_HEADERS = {"Cache-Control": "private, no-store"}
DEFAULT_CONVERSATIONS_PER_PAGE = 200
MAX_CONVERSATIONS_PER_PAGE = 500
DEFAULT_TURNS_PER_PAGE = 25
router = Router("api")
_CMS_SESSIONS = "fermata.client_protocols.cms_agent_sessions"
router.handles_by_path(cms_agent.LIST_CMS_SESSIONS, f"{_CMS_SESSIONS}:list_cms_sessions")
router.handles_by_path(cms_agent.CREATE_CMS_SESSION, f"{_CMS_SESSIONS}:create_cms_session")
router.handles_by_path(cms_agent.SHOW_CMS_SESSION, f"{_CMS_SESSIONS}:show_cms_session")
router.handles_by_path(cms_agent.CHANGE_CMS_SESSION, f"{_CMS_SESSIONS}:change_cms_session")
router.handles_by_path(cms_agent.DELETE_CMS_SESSION, f"{_CMS_SESSIONS}:delete_cms_session")
router.handles_by_path(cms_agent.SHOW_CMS_MEMORY, f"{_CMS_SESSIONS}:show_cms_memory")
router.handles_by_path(cms_agent.LIST_CMS_LOGS, f"{_CMS_SESSIONS}:list_cms_logs")


@router.handles(conversations.LIST_CONVERSATIONS)
def list_conversations(context: RequestContext) -> Response:
    query = context.request.query
    scope = query.get("scope")
    limit = read_integer_parameter(
        context.request, "limit", DEFAULT_CONVERSATIONS_PER_PAGE, maximum=MAX_CONVERSATIONS_PER_PAGE
    )
    if scope is None or not is_scope(scope):
        raise InvalidRequest(f"Name the 'scope' to list: one of {', '.join(SCOPES)}, or agent:<id>.")
    page = conversation_store.list_conversations(
        context.resources, context.caller, scope, cursor=query.get("cursor"), limit=max(1, limit)
    )
    body: dict[str, Any] = {"conversations": _to_views(context, page.conversations)}
    return Response(200, body | ({"nextCursor": page.next_cursor} if page.next_cursor else {}), UNCACHED_HEADERS)


@router.handles(conversations.CREATE_CONVERSATION)
def create_conversation(context: RequestContext) -> Response:
    body = context.parse_body(NewConversation)
    _require_credential(context, body.credential_id)
    conversation = conversation_store.create_conversation(
        context.resources,
        context.caller,
        body.scope,
        body.title,
        body.credential_id,
        body.model_id or "",
        space=_find_space_name(context, body.space),
    )
    return Response(201, {"conversation": to_conversation_view(conversation)})


@router.handles(conversations.SHOW_CONVERSATION)
def show_conversation(context: RequestContext) -> Response:
    """Respond with a conversation and its newest messages; `nextCursor` leads to the older ones."""
    before = read_integer_parameter(context.request, "before", 0) or None
    page_size = message_views.MAX_PAGE_LINES
    limit = max(1, read_integer_parameter(context.request, "limit", page_size, maximum=page_size))
    conversation = conversation_store.get_conversation(context.resources, context.caller, context.path_parameters["id"])
    to_client_name = get_tool_namer(conversation.scope, select_tool_names(context))
    page = message_views.read_message_page(
        context.resources, conversation, context.tenant.dialect, to_client_name, before=before, limit=limit
    )
    view = _to_views(context, [conversation])[0] | {"messages": page.lines}
    if turn := find_active_turn(context.resources, conversation):
        view["activeTurn"] = turn
    body = {"conversation": view} | ({"nextCursor": str(page.before)} if page.before else {})
    return Response(200, body, UNCACHED_HEADERS)


@router.handles(conversations.CHANGE_CONVERSATION)
def change_conversation(context: RequestContext) -> Response:
    """Change a conversation. A running turn continues with its model; the next turn uses the new one."""
    body = context.parse_body(ConversationChange)
    _require_credential(context, body.credential_id)
    conversation = conversation_store.update_conversation(
        context.resources,
        context.caller,
        context.path_parameters["id"],
        title=body.title,
        credential_id=body.credential_id,
        model_id=body.model_id,
        space=_find_space_name(context, body.space) or None,
    )
    return Response(200, {"conversation": _to_views(context, [conversation])[0]})


@router.handles(conversations.DELETE_CONVERSATION)
def delete_conversation(context: RequestContext) -> Response:
    conversation = conversation_store.delete_conversation(
        context.resources, context.caller, context.path_parameters["id"]
    )
    cancel_active_turn(context.resources, conversation)
    return Response(200, {"ok": True})


def _to_views(context: RequestContext, conversations: Sequence[Conversation]) -> list[dict[str, Any]]:
    cleared = clear_conversation_credentials(context.resources, context.caller.tenant, conversations)
    return [to_conversation_view(conversation) for conversation in cleared]


def _find_space_name(context: RequestContext, name: str | None) -> str:
    return find_space_for_caller(context.resources, context.caller, name)[0].name if name else ""


def _require_credential(context: RequestContext, credential_id: str | None) -> None:
    tenant = context.caller.tenant
    if credential_id and not find_existing_ids(context.resources, tenant, [credential_id]):
        raise InvalidRequest("Credential not found. Pick an existing credential.")


@router.handles(usage.SHOW_AUDIT)
def show_audit(context: RequestContext) -> Response:
    query = context.request.query
    audit = audit_from_rollups.audit_usage(
        context.resources,
        context.caller.tenant,
        query.get("since"),
        query.get("tz"),
        with_billable=query.get("billable") == "true",
    )
    return Response(200, audit, UNCACHED_HEADERS)


@router.handles(usage.SHOW_BUDGETS)
def show_budgets(context: RequestContext) -> Response:
    return Response(200, budget_status.load_budget_status(context.resources, context.caller.tenant), UNCACHED_HEADERS)


@router.handles(usage.SET_BUDGETS)
def set_budgets(context: RequestContext) -> Response:
    body = context.parse_body(NewBudgets)
    budgets = budget_limits.Budgets(
        tenant=_to_budget_limits(body.tenant),
        each_user=_to_budget_limits(body.each_user),
        users={user.user_id: _to_budget_limits(user) for user in body.users},
    )
    budget_limits.set_budgets(context.resources, context.caller, budgets)
    return show_budgets(context)


def _to_budget_limits(body: NewBudgetLimits) -> budget_limits.BudgetLimits:
    """Convert the amounts to exactly the digits that were sent."""
    amounts = [None if usd is None else Decimal(str(usd)) for usd in (body.daily_usd, body.monthly_usd)]
    return budget_limits.BudgetLimits(daily_usd=amounts[0], monthly_usd=amounts[1])


@router.handles(editor.TAKE_UPLOAD)
def take_upload(context: RequestContext) -> Response:
    """Presign the URL of an announced upload. Its bytes are checked when a turn uses it (decision 0110)."""
    body = context.parse_body(NewUpload)
    clock = context.resources.clock
    upload = uploads.announce_upload(context.resources, body.kind, body.size, body.sha256)
    count_upload(context.resources, context.caller, context.caller_limits, upload.ref, upload.size)
    view = {
        "ref": upload.ref,
        "method": "PUT",
        "url": uploads.presign_upload(context.resources, context.caller, upload),
        "headers": upload.client_headers,
        "urlExpiresAt": clock.now_iso(uploads.UPLOAD_URL_SECONDS),
        "refExpiresAt": clock.now_iso(uploads.UPLOAD_TTL_SECONDS),
    }
    return Response(201, view, UNCACHED_HEADERS)


@router.handles(editor.LIST_SCOPES)
def list_scopes(context: RequestContext) -> Response:
    return Response(200, {"scopes": [{"name": name} for name in SCOPES]}, UNCACHED_HEADERS)


def require_existing_scope(request: HttpRequest) -> None:
    if request.path_parameters["scope"] not in SCOPES:
        raise PathNotFound("Not found")


@router.handles(editor.LIST_TOOLS, precondition=require_existing_scope)
def list_tools(context: RequestContext) -> Response:
    caller = context.caller
    tool_names = select_tool_names(context)
    generation = select_listed_generation(context, tool_names)
    tools = tool_listing.list_tools(
        context.path_parameters["scope"], caller.capabilities, ToolNaming(tool_names), caller.tenant, generation
    )
    return Response(200, {"tools": tools}, UNCACHED_HEADERS)


@router.handles(turns.SHOW_TURN)
def show_turn(context: RequestContext) -> Response:
    tool_names = select_tool_names(context)
    return Response(
        200, get_turn_status(context.resources, context.caller, context.path_parameters["bridgeId"], tool_names)
    )


@router.handles(turns.LIST_TURNS)
def list_turns(context: RequestContext) -> Response:
    limit = max(1, read_integer_parameter(context.request, "limit", DEFAULT_TURNS_PER_PAGE, maximum=MAX_TURNS_PER_PAGE))
    cursor = context.request.query.get("cursor", "")
    page = list_tenant_turns(context.resources, context.caller, cursor, limit)
    return Response(200, page, UNCACHED_HEADERS)


@router.handles(turns.SHOW_TURN_REPORT)
def show_turn_report(context: RequestContext) -> Response:
    tool_names = select_tool_names(context)
    after = read_integer_parameter(context.request, "after", 0)
    bridge_id = context.path_parameters["bridgeId"]
    report = get_turn_report(context.resources, context.caller, bridge_id, after, tool_names)
    return Response(200, report, UNCACHED_HEADERS)


@router.handles(turns.SHOW_JOURNAL)
def show_journal(context: RequestContext) -> Response:
    cursor = context.request.query.get("cursor", "")
    tool_names = select_tool_names(context)
    page = get_journal_page(context.resources, context.caller, context.path_parameters["bridgeId"], cursor, tool_names)
    return Response(200, page, UNCACHED_HEADERS)


@router.handles(turns.CANCEL_TURN)
def cancel_turn(context: RequestContext) -> Response:
    return Response(200, stop_turn.cancel_turn(context.resources, context.caller, context.path_parameters["bridgeId"]))


@router.handles(defaults.SHOW_DEFAULTS)
def show_defaults(context: RequestContext) -> Response:
    return Response(200, {"defaults": scope_defaults.get_defaults_view(context.resources, context.caller.tenant)})


def require_known_scope(request: HttpRequest) -> None:
    scope_defaults.check_scope(request.path_parameters["scope"])


@router.handles(defaults.SET_DEFAULT, precondition=require_known_scope)
def set_default(context: RequestContext) -> Response:
    body = context.parse_body(NewDefault)
    scope = context.path_parameters["scope"]
    default = scope_defaults.set_default(context.resources, context.caller, scope, body.credential_id, body.model_id)
    return Response(200, {"default": default.to_wire()})


@router.handles(defaults.CLEAR_DEFAULT, precondition=require_known_scope)
def clear_default(context: RequestContext) -> Response:
    scope_defaults.clear_default(context.resources, context.caller, context.path_parameters["scope"])
    return Response(204)


@router.handles_public(service.SHOW_HEALTH)
@router.handles_public(service.SHOW_HEALTH_HERE)
def show_health(resources: Resources) -> Response:
    return Response(200, {"ok": True})


@router.handles_public(service.SHOW_VERSION)
@router.handles_public(service.SHOW_VERSION_HERE)
def show_version(resources: Resources) -> Response:
    return Response(200, {"version": fermata.__version__, "stage": resources.settings.fermata_stage})


@router.handles_public(service.SHOW_OPENAPI)
def show_openapi(resources: Resources) -> Response:
    from fermata.wire.openapi import document  # imported here, because only this request needs all models

    return Response(200, document.get_openapi_document(), CACHEABLE_HEADERS)


for operation, function in planner.PLANNER_HANDLERS:
    router.handles_by_path(operation, f"fermata.planner_api.handlers:{function}")
for operation, function in planner.PUBLISH_HANDLERS:
    router.handles_by_path(operation, f"fermata.planner_api.publish_handlers:{function}")
for operation, function in planner.SITE_HANDLERS:
    router.handles_by_path(operation, f"fermata.planner_api.site_handlers:{function}")
for operation, function in (
    *content.CONTENT_HANDLERS,
    *content_media.CONTENT_MEDIA_HANDLERS,
    *content_delivery.DELIVERY_HANDLERS,
    *content_members.CONTENT_MEMBER_HANDLERS,
    *content_forms.SUBMISSION_HANDLERS,
):
    router.handles_by_path(operation, f"fermata.content_api.{function}")
for public_operation, function in (*content_delivery.PUBLIC_DELIVERY_HANDLERS, *content_forms.PUBLIC_FORM_HANDLERS):
    router.handles_public_by_path(public_operation, f"fermata.content_api.{function}")

handler = make_handler(router)
prepare_function("dynamodb", "s3", "kms", "stepfunctions")
