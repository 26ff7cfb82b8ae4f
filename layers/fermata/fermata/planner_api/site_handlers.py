"""Handle the requests that list sites and sessions, and that say who asks (docs/edit-plans.md)."""

from typing import Any

from fermata.aws import observability
from fermata.conversations.conversation_store import list_conversations
from fermata.planner_api.sessions import (
    PLANNER_SCOPE,
    count_bytes,
    find_session,
    make_site_key,
    read_name,
    read_session_key,
    require_name,
)
from fermata.plans.drafts import publishing, site_registry
from fermata.plans.drafts.draft_store import load_draft
from fermata.wire.bodies.planner_requests import RegisterSiteBody
from fermata.wire.http.messages import Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext

MAX_LISTED_SESSIONS = 100


def show_sites(context: RequestContext) -> Response:
    """Respond with the sites of the workspace that are registered."""
    return Response(200, {"sites": site_registry.list_sites(context.resources, context.caller.tenant)})


def post_site(context: RequestContext) -> Response:
    """Register a site, or change what is registered of it."""
    body = context.parse_body(RegisterSiteBody)
    count_bytes(context, len(context.request.body))
    site = make_site_key(body.site_id)
    stored, is_changed = site_registry.register_site(context.resources, context.caller.tenant, site, _to_settings(body))
    status = "registered" if is_changed else "unchanged"
    return Response(200, {"status": status, "siteId": site, "config": stored, "warnings": []})


def _to_settings(body: RegisterSiteBody) -> dict[str, Any]:
    preview = body.preview_url or (f"http://localhost:{body.port}" if body.port else None)
    known = {"name": body.name, "purpose": body.purpose, "previewUrl": preview, "port": body.port}
    return {**body.config, **{name: value for name, value in known.items() if value is not None}}


def delete_site(context: RequestContext) -> Response:
    """Remove a site and what is published of it."""
    site, caller = make_site_key(require_name(context.path_parameters["siteId"], "siteId")), context.caller
    site_registry.remove_site(context.resources, caller.tenant, site)
    observability.log_audit_event("ai.site.removed", tenant=caller.tenant, user=caller.user, site=site)
    return Response(200, {"ok": True})


def list_sessions(context: RequestContext) -> Response:
    """Respond with the sessions of the caller, those that were used last first."""
    limit = max(1, read_integer_parameter(context.request, "limit", MAX_LISTED_SESSIONS, maximum=MAX_LISTED_SESSIONS))
    page = list_conversations(
        context.resources, context.caller, PLANNER_SCOPE, cursor=context.request.query.get("cursor"), limit=limit
    )
    listed = [
        {"session": key[0], "siteId": key[1], "conversationId": one.id, "updatedAt": one.updated_at}
        for one in page.conversations
        if (key := read_session_key(context.caller, one)) is not None
    ]
    return Response(200, {"sessions": listed} | ({"nextCursor": page.next_cursor} if page.next_cursor else {}))


def show_caller(context: RequestContext) -> Response:
    """Respond with who asks, and what is in the session that the query names."""
    caller, resources = context.caller, context.resources
    session, site = read_name(context, "session"), make_site_key(read_name(context, "siteId"))
    published = publishing.load_published(resources, caller.tenant, site)
    body: dict[str, Any] = {
        "tenant": caller.tenant,
        "user": caller.user,
        "capabilities": sorted(caller.capabilities),
        "siteId": site,
        "publishedPageCount": len(published.slugs),
    }
    if session is None:
        return Response(200, body)
    location = find_session(resources, caller, session, site)
    draft = load_draft(resources, location) if location else None
    slugs, version = (list(draft.draft.slugs), draft.version) if draft else ([], 0)
    return Response(
        200, body | {"session": session, "slugs": slugs, "pageCount": len(slugs), "previewVersion": version}
    )
