"""Handle the requests of the planner's clients that are answered at once (docs/edit-plans.md)."""

from typing import Any

from pydantic import ValidationError

from fermata.aws.clock import iso_from_epoch, new_id
from fermata.domain.errors import InvalidRequest, NotFound, PayloadTooLarge
from fermata.domain.events import CancelledEvent
from fermata.planner_api.chat_store import (
    MAX_CHAT_BYTES,
    ChatRun,
    is_chat_over,
    list_chats,
    load_chat,
    settle_chat,
    store_chat,
)
from fermata.planner_api.sessions import (
    count_bytes,
    make_session_conversation_id,
    open_counted_session,
    open_session,
    read_name,
    read_object,
    read_slug,
)
from fermata.plans.apply_plan import apply_submitted_operations
from fermata.plans.chat_forecast import forecast_chat
from fermata.plans.drafts import draft_history
from fermata.plans.drafts.draft_rows import DraftLocation, measure_pages
from fermata.plans.drafts.draft_store import MadeChange, load_draft
from fermata.plans.drafts.pending_plan import PendingPlan, load_pending_plan
from fermata.plans.drafts.repeated_request import make_request_effect_key
from fermata.plans.edit_plan import InvalidPlan
from fermata.plans.operations import STRUCTURAL_OPERATIONS
from fermata.plans.page_model import Page
from fermata.plans.plan_change import STRUCTURAL_MESSAGE
from fermata.plans.slugs import find_slug_problem
from fermata.turns.end.stop_turn import stop_turn
from fermata.turns.turn import load_turn
from fermata.wire.bodies.planner_requests import (
    BootstrapBody,
    CancelChatBody,
    ChatForecastBody,
    HistoryStepBody,
    OperationsBody,
    PlannerChatBody,
    RestoreBody,
)
from fermata.wire.http.messages import Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.planner_result import build_result

MAX_LISTED_VERSIONS = 100


def start_chat(context: RequestContext) -> Response:
    """Store a chat, which the stream with its id runs."""
    if len(context.request.body) > MAX_CHAT_BYTES:
        raise PayloadTooLarge("Request body too large")
    body = context.parse_body(PlannerChatBody)
    size = len(context.request.body)
    location = open_counted_session(context, body.session, body.site_id, first_bytes=size)
    stored = body.model_dump(mode="json", by_alias=True, exclude_none=True)
    count_bytes(context, size)
    chat = store_chat(context.resources, context.caller, location.conversation, stored, context.request.origin)
    return Response(200, {"streamId": chat.id})


def forecast(context: RequestContext) -> Response:
    """Respond with what a chat will probably do."""
    body = context.parse_body(ChatForecastBody)
    expected = forecast_chat(body.message, body.execution_mode)
    action = {"inferredAction": expected.action} if expected.action else {}
    return Response(
        200, {"likelyDeterministic": expected.is_deterministic, "estimatedLatency": expected.latency, **action}
    )


def cancel_chat(context: RequestContext) -> Response:
    """Cancel a chat: it is not run, or its turn ends."""
    resources, caller = context.resources, context.caller
    body = context.parse_body(CancelChatBody)
    chat = _find_chat(context, body)
    if chat is None:
        return Response(404, {"status": "not_found", "error": "There is no such chat."})
    if is_chat_over(resources, caller, chat):
        return Response(200, {"status": "already_terminal"})
    if chat.state == "pending" and settle_chat(resources, caller, chat, "cancelled"):
        return Response(200, {"status": "cancel_requested"})
    chat = load_chat(resources, caller, chat.id) or chat
    turn = load_turn(resources, caller.tenant, chat.turn) if chat.turn else None
    ended = stop_turn(resources, turn, CancelledEvent()) if turn else "done"
    return Response(200, {"status": "cancel_requested" if ended == "cancelled" else "already_terminal"})


def _find_chat(context: RequestContext, body: CancelChatBody) -> ChatRun | None:
    resources, caller = context.resources, context.caller
    if body.stream_id is not None:
        return load_chat(resources, caller, body.stream_id)
    if body.session is None:
        raise InvalidRequest("streamId or session is required")
    conversation = make_session_conversation_id(caller, body.session, body.site_id)
    chats = [chat for chat in list_chats(resources, caller, conversation) if chat.state in ("pending", "active")]
    return max(chats, key=lambda chat: chat.at, default=None)


def list_pending_plans(context: RequestContext) -> Response:
    """Respond with the plan of a session that waits, in a list."""
    plan = load_pending_plan(context.resources, locate_by_query(context))
    return Response(200, {"plans": [_build_plan_view(plan)] if plan else []})


def _build_plan_view(plan: PendingPlan) -> dict[str, Any]:
    outcome = plan.outcome
    view = {
        "pendingPlanId": plan.id,
        "approvalId": outcome.approval_id,
        "bridgeId": plan.turn,
        "summary": outcome.summary,
        "changes": list(outcome.changes),
        "ops": list(outcome.ops),
        "destructiveReasons": [reason.message for reason in outcome.destructive_reasons],
        "normalizedFrom": [one.to_wire() for one in outcome.normalized_from],
        "requestedAt": plan.at,
        "expiresAt": iso_from_epoch(plan.expires),
    }
    return {name: value for name, value in view.items() if value is not None}


def post_operations(context: RequestContext) -> Response:
    """Apply operations of a client, all or none."""
    body = context.parse_body(OperationsBody)
    capabilities = read_object(body.site_capabilities, "siteCapabilities")
    is_restricted = isinstance(capabilities, dict) and capabilities.get("allowStructuralEdits") is False
    kinds = [operation.get("op") for operation in body.ops]
    if is_restricted and any(isinstance(kind, str) and kind in STRUCTURAL_OPERATIONS for kind in kinds):
        raise InvalidRequest(STRUCTURAL_MESSAGE)
    location = open_counted_session(context, body.session, body.site_id)
    try:
        outcome = apply_submitted_operations(context.resources, location, body.ops, _read_effect_key(context))
    except InvalidPlan as invalid:
        status = 404 if invalid.category == "not_found" else 400
        return Response(status, {"error": str(invalid), "errorCode": invalid.category})
    return Response(200, build_result(outcome.to_wire(), "") | {"plannerSource": "ops"})


def _read_effect_key(context: RequestContext) -> str:
    """Return what makes a repeated request the same one: the client's Idempotency-Key, or else nothing."""
    key = context.request.headers.get("idempotency-key", "")[:200]
    return make_request_effect_key(key, context.request.path, context.request.body) if key else new_id()


def show_history_status(context: RequestContext) -> Response:
    """Respond with the steps that a page can be undone and redone."""
    stored = load_draft(context.resources, locate_by_query(context))
    return Response(200, draft_history.get_history_status(stored, read_slug(context)))


def show_history_log(context: RequestContext) -> Response:
    """Respond with what the newest versions have changed."""
    limit = max(1, read_integer_parameter(context.request, "limit", MAX_LISTED_VERSIONS, maximum=MAX_LISTED_VERSIONS))
    entries = draft_history.list_history(context.resources, locate_by_query(context), limit)
    return Response(200, {"entries": [entry.to_wire() for entry in entries]})


def undo(context: RequestContext) -> Response:
    """Undo the newest change of a page, or a version on all of its pages."""
    body = context.parse_body(HistoryStepBody)
    location = open_counted_session(context, body.session, body.site_id)
    key = _read_effect_key(context)
    if body.version is not None:
        return _respond_to_change(draft_history.undo_version(context.resources, location, body.version, key))
    return _respond_to_change(draft_history.step_page(context.resources, location, _require_slug(body), "undo", key))


def redo(context: RequestContext) -> Response:
    """Redo the change of a page that was undone last."""
    body = context.parse_body(HistoryStepBody)
    location = open_counted_session(context, body.session, body.site_id)
    key = _read_effect_key(context)
    return _respond_to_change(draft_history.step_page(context.resources, location, _require_slug(body), "redo", key))


def _require_slug(body: HistoryStepBody) -> str:
    if body.slug is None:
        raise InvalidRequest("session and slug are required")
    return body.slug


def restore(context: RequestContext) -> Response:
    """Bring back a version of the draft, by a change that can be undone."""
    body = context.parse_body(RestoreBody)
    location = open_counted_session(context, body.session, body.site_id)
    key = _read_effect_key(context)
    return _respond_to_change(draft_history.restore_version(context.resources, location, body.version, key))


def _respond_to_change(made: MadeChange) -> Response:
    return Response(200, {"status": "applied", "previewVersion": made.version, **made.outcome})


def show_draft_page(context: RequestContext) -> Response:
    """Respond with a page of the draft."""
    draft = load_draft(context.resources, locate_by_query(context)).draft
    page = draft.find_page(read_slug(context))
    if page is None:
        raise NotFound("There is no such page.")
    return Response(200, page.to_wire())


def list_draft_slugs(context: RequestContext) -> Response:
    """Respond with the slugs of the draft's pages, its settings and its version."""
    stored = load_draft(context.resources, locate_by_query(context))
    body = {"slugs": list(stored.draft.slugs), "previewVersion": stored.version}
    return Response(200, body | {"config": stored.draft.config.to_wire()})


def bootstrap_draft(context: RequestContext) -> Response:
    """Begin a draft with the pages of a site."""
    body = context.parse_body(BootstrapBody)
    pages = tuple(page for raw in body.pages if (page := _read_page(raw)))
    if not pages:
        raise InvalidRequest("No valid pages to bootstrap.")
    location = open_counted_session(context, body.session, body.site_id, first_bytes=measure_pages(pages))
    stored = draft_history.import_pages(context.resources, location, pages, overwrite=body.overwrite)
    if stored is None:
        slugs = list(load_draft(context.resources, location).draft.slugs)
        return Response(200, {"status": "skipped", "reason": "already_initialized", "slugs": slugs})
    slugs = list(stored.draft.slugs)
    return Response(200, {"status": "bootstrapped", "count": len(slugs), "slugs": slugs})


def _read_page(raw: dict[str, Any]) -> Page | None:
    try:
        page = Page.from_wire(raw)
    except ValidationError:
        return None
    return None if find_slug_problem(page.slug) else page


def locate_by_query(context: RequestContext) -> DraftLocation:
    """Return the draft that the query of a request names."""
    session = read_name(context, "session")
    if session is None:
        raise InvalidRequest("session is required")
    return open_session(context.resources, context.caller, session, read_name(context, "siteId"))
