"""Handle requests on tokens of sites, the reads that they allow, exports and imports."""

import hashlib
import json
from functools import partial
from typing import Any
from urllib.parse import quote

from fermata.aws.resources import Resources
from fermata.content.content_model import META_MODEL
from fermata.content.content_space import read_space
from fermata.content.documents.document import DOCUMENT_ID, ContentAuthor, DocumentKey
from fermata.content.media.asset_store import get_file_size, presign_asset_file
from fermata.content.publishing.deliver_documents import (
    deliver_asset_of_token,
    deliver_document,
    deliver_list,
    to_delivered_view,
)
from fermata.content.publishing.delivery_token import (
    DeliveryGrant,
    issue_delivery_token,
    list_delivery_tokens,
    open_delivery_token,
    revoke_delivery_token,
)
from fermata.content.publishing.export_space import (
    ExportedPart,
    describe_exported_space,
    export_documents,
    export_html,
)
from fermata.content.publishing.import_documents import import_content
from fermata.content.space_access import is_reviewed
from fermata.content_api.publishing_right import (
    check_may_publish_all,
    check_may_publish_locales,
    draft_further_locales,
)
from fermata.content_api.request_parts import (
    count_body,
    count_content_bytes,
    locate_space,
    require_right_to_model,
)
from fermata.content_api.submission_requests import export_space_submissions
from fermata.domain.caller import Capability
from fermata.domain.errors import Forbidden, InvalidRequest
from fermata.domain.surrogates_and_infinities import to_storable_json
from fermata.limits.delivered_traffic import count_traffic
from fermata.wire.bodies.content_requests import ContentImport, NewDeliveryToken
from fermata.wire.http.messages import HttpRequest, Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext

PUBLISHED_SECONDS = 60
"""How long caches show what is published without asking again."""
DEFAULT_DELIVERED = 20
_DELIVERY_PATH = "/delivery"


def issue_token(context: RequestContext) -> Response:
    """Issue a token."""
    body, space = context.parse_body(NewDeliveryToken), locate_space(context)
    count_body(context)
    if body.mode == "published" and not context.caller.has_capability(Capability.CONTENT):
        raise Forbidden(f"Forbidden: tokens that do not expire need {Capability.CONTENT}.")
    if bool(body.model) != bool(body.document):
        raise InvalidRequest("Name both 'model' and 'document', or neither for the whole space.")
    document = DocumentKey(body.model, body.document) if body.model else None
    text, grant = issue_delivery_token(
        context.resources, space, context.caller.user, body.mode, document=document, seconds=body.expires_in_seconds
    )
    return Response(201, {"token": text, "deliveryToken": grant.to_view()})


def list_issued_tokens(context: RequestContext) -> Response:
    """Respond with the tokens of a space, without their secrets."""
    space = locate_space(context)
    read_space(context.resources, space)
    return Response(200, {"deliveryTokens": [one.to_view() for one in list_delivery_tokens(context.resources, space)]})


def revoke_token(context: RequestContext) -> Response:
    """Revoke a token."""
    revoke_delivery_token(context.resources, locate_space(context), context.path_parameters["tokenId"])
    return Response(200, {"ok": True})


def deliver_by_id(resources: Resources, request: HttpRequest) -> Response:
    """Respond with a document that a token shows."""
    return _deliver(resources, request, "document")


def deliver_by_slug(resources: Resources, request: HttpRequest) -> Response:
    """Respond with the document of a slug that a token shows."""
    return _deliver(resources, request, "slug")


def _deliver(resources: Resources, request: HttpRequest, name: str) -> Response:
    text = request.path_parameters["token"]
    grant = open_delivery_token(resources, text)
    key = DocumentKey(request.path_parameters["model"], request.path_parameters[name])
    version = deliver_document(resources, grant, key, by_slug=name == "slug")
    view = to_delivered_view(version, partial(_build_asset_address, text))
    return _respond(resources, request, grant, {"document": view})


def deliver_page_of_list(resources: Resources, request: HttpRequest) -> Response:
    """Respond with a page of the documents of a model that a token shows."""
    text = request.path_parameters["token"]
    grant = open_delivery_token(resources, text)
    limit = max(1, read_integer_parameter(request, "limit", DEFAULT_DELIVERED, maximum=50))
    versions, after = deliver_list(
        resources, grant, request.path_parameters["model"],
        limit=limit, after=request.query.get("cursor", ""), category=request.query.get("category", ""),
    )  # fmt: skip
    views = [to_delivered_view(version, partial(_build_asset_address, text)) for version in versions]
    return _respond(resources, request, grant, {"documents": views} | ({"nextCursor": after} if after else {}))


def deliver_asset(resources: Resources, request: HttpRequest) -> Response:
    """Redirect to a file of an asset."""
    grant = open_delivery_token(resources, request.path_parameters["token"])
    version = deliver_asset_of_token(resources, grant, request.path_parameters["asset"])
    name = request.path_parameters["file"]
    url = presign_asset_file(resources, grant.space, version, name)
    count_traffic(resources, grant.space.tenant, get_file_size(version, name))
    cached = f"public, max-age={PUBLISHED_SECONDS}" if grant.mode == "published" else "private, no-store"
    return Response(302, None, {"Location": url, "Cache-Control": cached})


def _build_asset_address(token: str, asset_id: str) -> str:
    return f"{_DELIVERY_PATH}/{quote(token)}/assets/{asset_id}/large"


def _respond(resources: Resources, request: HttpRequest, grant: DeliveryGrant, body: Any) -> Response:
    """Respond with a body that has an ETag, or with nothing to whoever has it."""
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    etag = f'"{hashlib.sha256(text).hexdigest()[:32]}"'
    cached = "private, no-store"
    if grant.mode == "published":
        cached = f"public, max-age={PUBLISHED_SECONDS}, stale-while-revalidate=600"
    headers = {"ETag": etag, "Cache-Control": cached}
    known = {one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")}
    if known & {etag, "*"}:
        return Response(304, None, headers)
    count_traffic(resources, grant.space.tenant, len(text))
    return Response(200, body, headers)


def export_content(context: RequestContext) -> Response:
    """Respond with a part of a space: documents as JSON, pages as HTML, or submissions of forms."""
    space, query = locate_space(context), context.request.query
    form, cursor = query.get("format", "json"), query.get("cursor", "")
    if form not in ("json", "html", "submissions"):
        raise InvalidRequest("'format' must be json, html or submissions.")
    head = describe_exported_space(context.resources, space)
    if form == "submissions":
        part = ExportedPart(*export_space_submissions(context, space, cursor))
        body: dict[str, Any] = {"submissions": part.items}
    elif form == "html":
        part = export_html(context.resources, space, cursor)
        body = {"pages": part.items}
    else:
        part = export_documents(context.resources, space, cursor)
        body = {"documents": part.items} | ({} if cursor else head)
    return Response(200, body | ({"nextCursor": part.cursor} if part.cursor else {}))


def import_into_space(context: RequestContext) -> Response:
    """Import models and documents."""
    body, space = context.parse_body(ContentImport), locate_space(context)
    if body.models:
        require_right_to_model(context, META_MODEL)
    read_space(context.resources, space)
    for document in body.documents:
        require_right_to_model(context, document.model)
    keys = [DocumentKey(one.model, one.id) for one in body.documents if one.status == "published"]
    # One of another form is refused by itself.
    check_may_publish_all(context, space, {key for key in keys if all(map(DOCUMENT_ID.fullmatch, key))})
    for one in body.documents:
        named = DocumentKey(one.model, one.id)
        check_may_publish_locales(
            context, space, one.statuses, named if all(map(DOCUMENT_ID.fullmatch, named)) else None
        )
    items = import_content(
        context.resources,
        space,
        ContentAuthor(context.caller.user, "import"),
        [to_storable_json(model) for model in body.models],
        [to_storable_json(document.model_dump(mode="json")) for document in body.documents],
        count_bytes=partial(count_content_bytes, context),
        is_reviewed=is_reviewed(context.caller),
        settle_statuses=partial(draft_further_locales, context, space),
    )
    return Response(200, {"items": [item.to_view() for item in items]})
