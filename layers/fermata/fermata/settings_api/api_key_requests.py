"""Handle requests on API keys: those of servers, and those of programs that use the Conversation API."""

from collections.abc import Iterable
from typing import Any

from fermata.aws.clock import iso_from_epoch
from fermata.client_protocols.conversation_keys import build_key_rules, change_key_rules
from fermata.domain.plan_refusals import find_month_end, to_month
from fermata.domain.workspace_plan import PlanMeter
from fermata.limits.month_counts import count_months_of
from fermata.wire.auth import api_key_store, conversation_key_store
from fermata.wire.auth.api_key import ServerApiKey
from fermata.wire.auth.authenticate_api_key import read_api_key_uses
from fermata.wire.bodies.requests import ApiKeyRotation, NewApiKey
from fermata.wire.bodies.studio_requests import ApiKeyChange
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext, Router
from fermata.wire.operations import api_keys

API_KEY_ROUTES = Router("credentials")


@API_KEY_ROUTES.handles(api_keys.LIST_API_KEYS)
def _list_api_keys(context: RequestContext) -> Response:
    tenant = context.caller.tenant
    keys = api_key_store.list_api_keys(context.resources, tenant)
    last_uses = read_api_key_uses(context.resources, tenant) if keys else {}
    messages = _count_messages(context, keys)
    views = [key.to_view(last_uses.get(key.id)) | messages.get(key.id, {}) for key in keys]
    return Response(200, {"apiKeys": views})


def _count_messages(context: RequestContext, keys: Iterable[ServerApiKey]) -> dict[str, dict[str, Any]]:
    """Return what keys of the Conversation API in use have sent of their messages of the month, by the keys' ids."""
    users = {key.user: key.id for key in keys if key.conversation is not None and key.revoked_at is None}
    now = context.resources.clock.time()
    sent = count_months_of(context.resources, context.caller.tenant, users, PlanMeter.API_MESSAGES, to_month(now))
    renews_at = iso_from_epoch(find_month_end(now))
    return {users[user]: {"messagesThisMonth": count, "renewsAt": renews_at} for user, count in sent.items()}


@API_KEY_ROUTES.handles(api_keys.CREATE_API_KEY)
def _create_api_key(context: RequestContext) -> Response:
    body = context.parse_body(NewApiKey)
    resources, caller = context.resources, context.caller
    if body.conversation is not None:
        api_key_store.require_content_manager(caller)
        rules = build_key_rules(resources, caller.tenant, body.conversation)
        expires_in = body.expires_in_seconds
        made = conversation_key_store.create_conversation_key(
            resources, caller, body.label, rules, expires_in_seconds=expires_in
        )
        return _respond_with_key(201, *made)
    key, text = api_key_store.create_api_key(
        resources,
        caller,
        body.label,
        body.capabilities or (),
        scopes=body.scopes,
        expires_in_seconds=body.expires_in_seconds,
    )
    return _respond_with_key(201, key, text)


@API_KEY_ROUTES.handles(api_keys.CHANGE_API_KEY)
def _change_api_key(context: RequestContext) -> Response:
    """Change label and rules of a key of the Conversation API."""
    body = context.parse_body(ApiKeyChange)
    resources, tenant, change = context.resources, context.caller.tenant, body.conversation
    key = conversation_key_store.change_conversation_key(
        resources,
        context.caller,
        context.path_parameters["id"],
        lambda rules: change_key_rules(resources, tenant, rules, change) if change else rules,
        label=body.label,
    )
    return Response(200, {"apiKey": key.to_view(None)})


@API_KEY_ROUTES.handles(api_keys.ROTATE_API_KEY)
def _rotate_api_key(context: RequestContext) -> Response:
    body = context.parse_body(ApiKeyRotation) if context.request.body.strip() else ApiKeyRotation()
    key, text = api_key_store.rotate_api_key(
        context.resources, context.caller, context.path_parameters["id"], overlap_seconds=body.overlap_seconds
    )
    return _respond_with_key(200, key, text)


@API_KEY_ROUTES.handles(api_keys.REVOKE_API_KEY)
def _revoke_api_key(context: RequestContext) -> Response:
    api_key_store.revoke_api_key(context.resources, context.caller.tenant, context.path_parameters["id"])
    return Response(200, {"ok": True})


def _respond_with_key(status: int, key: ServerApiKey, text: str) -> Response:
    """Respond with a key and its text, which is not shown again."""
    return Response(status, {"apiKey": key.to_view(None), "key": text})
