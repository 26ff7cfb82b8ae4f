"""Serve the Conversation API: programs ask the studio's agent with a key, and read its whole answer (decision 0474)."""

from dataclasses import replace
from functools import partial

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.client_protocols.client_turns import make_failure_error, read_started_entries
from fermata.client_protocols.log_response import send_chunks
from fermata.client_protocols.studio_messages import read_conversation_parameter, read_studio_messages
from fermata.client_protocols.studio_turns import (
    StudioMessage,
    find_studio_conversation,
    make_studio_renderer,
    read_project_name,
    start_studio_turn,
)
from fermata.content.content_space import SpaceKey, parse_space_name
from fermata.content.space_access import find_space_for_caller
from fermata.domain.conversation_key import ConversationKeyRules
from fermata.domain.errors import BadGateway, Forbidden, Unauthorized
from fermata.domain.events import ErrorEvent
from fermata.domain.plan_refusals import MODEL_REASON, PlanUpgradeRequired, check_plan_feature
from fermata.domain.workspace_plan import PlanFeature, Subscription
from fermata.limits.monthly_messages import MonthlyMessages
from fermata.wire.auth.authenticate_api_key import record_api_key_use
from fermata.wire.auth.conversation_key_store import authenticate_conversation_key
from fermata.wire.auth.tenant_store import find_tenant
from fermata.wire.bodies.studio_requests import ConversationMessageBody
from fermata.wire.http.json_body import parse_body
from fermata.wire.http.messages import HttpRequest, Response
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.studio_stream import STUDIO_CANCELLED_WORDS, StudioRenderer


def send_conversation_message(resources: Resources, request: HttpRequest) -> Response:
    """Answer a message as a whole, once the turn has ended or a person has to decide about a call."""
    context, rules, space = _open_request(resources, request)
    body = parse_body(request, ConversationMessageBody, ignore_unknown=True)
    message = StudioMessage(
        body.message,
        conversation_id=body.conversation_id or "",
        model_id=rules.model_id,
        ui_context=body.context.to_ui_context() if body.context else {},
        notes=f"## Instructions of this key\n{rules.instructions}" if rules.instructions else "",
    )
    caller = context.caller
    subscription = context.tenant.subscription
    month = MonthlyMessages(resources, caller.tenant, caller.user, subscription, "api", rules.messages_per_month)
    try:
        started = start_studio_turn(context, space, message, month)
    except PlanUpgradeRequired as refused:
        if refused.reason == MODEL_REASON:  # as of a plan without this API: nobody who holds the key can pay
            raise Forbidden(f"Forbidden: {refused.message}", reason=MODEL_REASON) from None
        raise
    renderer = make_studio_renderer(context, started.turn, is_whole=True)
    entries = read_started_entries(resources, started)
    response = send_chunks(context, started.turn, entries, renderer, {}, heartbeat=b"", is_returning=started.is_joined)
    return replace(response, build_whole=partial(_build_whole, renderer))


def show_conversation_history(resources: Resources, request: HttpRequest) -> Response:
    """Show what was said in a conversation of the key."""
    context, _, space = _open_request(resources, request)
    conversation_id = read_conversation_parameter(request)
    return Response(200, read_studio_messages(context, find_studio_conversation(context, space, conversation_id)))


def _open_request(resources: Resources, request: HttpRequest) -> tuple[RequestContext, ConversationKeyRules, SpaceKey]:
    """Return the request of a key with its limits, its rules, and the project of the path, which has to be the key's.

    Raises:
        Unauthorized: The request has no key of this API, or one that is revoked or has expired.
        Forbidden: The key is for another project, or for one of the same name that was there before. Or the plan of the
            workspace has no Conversation API.
        PlanLocked: Nobody pays for the workspace.
        NotFound: The project is gone.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthorized("Unauthorized", reason="missing")
    key = authenticate_conversation_key(resources, token.strip())
    tenant, rules, caller = find_tenant(resources, key.tenant), key.conversation, key.to_caller()
    if tenant is None or rules is None:
        raise Unauthorized("Unauthorized", reason="api_key")
    observability.add_log_keys(tenant=caller.tenant, user=caller.user)
    _check_plan(tenant.subscription, resources.clock.time())
    project = parse_space_name(caller.tenant, read_project_name(request.path_parameters["projectId"]))
    if project.name != rules.project:
        raise Forbidden("Forbidden: this key is for another project.", reason="other_project")
    if key.created_at < find_space_for_caller(resources, caller, rules.project)[1].created_at:
        raise Forbidden("Forbidden: this key is for another project.", reason="other_project")
    record_api_key_use(resources, caller)
    usual = tenant.limits.apply_to(resources.settings.caller_limits).user.prompts_per_minute
    limits = tenant.limits.model_copy(update={"user_prompts_per_minute": min(usual, rules.messages_per_minute)})
    return (
        RequestContext(resources, request, caller, tenant.model_copy(update={"limits": limits})),
        rules,
        project,
    )


def _check_plan(subscription: Subscription, now: float) -> None:
    """Check that the plan has the Conversation API. A key of a plan without is as one of another project (403)."""
    try:
        check_plan_feature(subscription, PlanFeature.CONVERSATION_API, now)
    except PlanUpgradeRequired as refused:
        raise Forbidden(f"Forbidden: {refused.message}", reason="plan_feature") from None


def _build_whole(renderer: StudioRenderer) -> Response:
    """Return the answer, or the error of a turn that has failed. With 202 a person has to decide before it goes on."""
    end = renderer.answer.end
    if isinstance(end, ErrorEvent):
        raise make_failure_error(end)
    if end is not None:
        raise BadGateway(STUDIO_CANCELLED_WORDS)
    return Response(202 if renderer.waits_for_person else 200, renderer.answer.to_wire())
