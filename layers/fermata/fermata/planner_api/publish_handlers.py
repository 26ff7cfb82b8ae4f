"""Handle the requests that publish a draft, and that bring back what was published (docs/edit-plans.md)."""

from fermata.aws import observability
from fermata.domain.errors import NotFound
from fermata.planner_api.handlers import locate_by_query
from fermata.planner_api.sessions import make_site_key, open_counted_session, read_name, read_slug
from fermata.plans.drafts import publishing
from fermata.plans.drafts.draft_history import import_pages
from fermata.plans.drafts.draft_rows import measure_pages
from fermata.wire.bodies.planner_requests import PublishBody, RestoreEditionBody
from fermata.wire.http.messages import Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext


def publish(context: RequestContext) -> Response:
    """Publish the draft of a session."""
    body = context.parse_body(PublishBody)
    location = open_counted_session(context, body.session, body.site_id)
    site = make_site_key(body.site_id)
    entry = publishing.publish_draft(context.resources, location, site)
    observability.log_audit_event(
        "ai.site.published", tenant=context.caller.tenant, user=context.caller.user, site=site, number=entry["number"]
    )
    return Response(200, {"status": "ready", **entry})


def show_publish_difference(context: RequestContext) -> Response:
    """Respond with what publishing would change."""
    site = make_site_key(read_name(context, "siteId"))
    difference = publishing.compare_with_published(context.resources, locate_by_query(context), site)
    return Response(200, {"hasChanges": any(vars(difference).values()), **vars(difference)})


def show_publish_status(context: RequestContext) -> Response:
    """Respond with the edition that is published."""
    entries = publishing.list_publish_log(
        context.resources, context.caller.tenant, make_site_key(read_name(context, "siteId")), 1
    )
    if not entries:
        raise NotFound("Nothing of this site was published yet.")
    return Response(200, {"status": "ready", **entries[0]})


def list_editions(context: RequestContext) -> Response:
    """Respond with the editions that can be brought back, the newest first."""
    limit = max(1, read_integer_parameter(context.request, "limit", 30, maximum=publishing.MAX_PUBLISH_LOG))
    site = make_site_key(read_name(context, "siteId"))
    kept = publishing.load_published(context.resources, context.caller.tenant, site).kept
    return Response(200, {"snapshots": [dict(one) for one in kept[:limit]]})


def show_publish_log(context: RequestContext) -> Response:
    """Respond with the newest editions of a site, and with which of them can be brought back."""
    limit = max(1, read_integer_parameter(context.request, "limit", 30, maximum=publishing.MAX_PUBLISH_LOG))
    site, tenant = make_site_key(read_name(context, "siteId")), context.caller.tenant
    kept = publishing.load_published(context.resources, tenant, site).kept
    entries = publishing.list_publish_log(context.resources, tenant, site, limit)
    return Response(200, {"entries": entries, "restorable": [one["number"] for one in kept]})


def show_published_page(context: RequestContext) -> Response:
    """Respond with a page as it is published."""
    site, slug = make_site_key(read_name(context, "siteId")), read_slug(context)
    published = publishing.load_published(context.resources, context.caller.tenant, site)
    pages = publishing.read_edition(context.resources, published, published.edition)
    page = next((one for one in pages if one.slug == slug), None)
    if page is None:
        raise NotFound("There is no such page.")
    return Response(200, page.to_wire())


def restore_edition(context: RequestContext) -> Response:
    """Make the pages of an edition those of the draft, by changes that can be undone."""
    body = context.parse_body(RestoreEditionBody)
    site = make_site_key(body.site_id)
    pages = publishing.read_kept_edition(context.resources, context.caller.tenant, site, body.number)
    location = open_counted_session(context, body.session, body.site_id, first_bytes=measure_pages(pages))
    stored = import_pages(context.resources, location, pages, overwrite=True)
    assert stored is not None
    return Response(200, {"status": "restored", "previewVersion": stored.version, "slugs": list(stored.draft.slugs)})
