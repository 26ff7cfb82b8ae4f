"""Handle requests on up to 50 assets at once: store uploaded files, delete assets, change their tags.

Each is done by itself, so one that is refused keeps no other from being done, and the same request again does what is
left.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from fermata.aws.resources import Resources
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.documents.read_document import read_write_basis
from fermata.content.media.asset_store import ASSET, MAX_ASSET_TAGS
from fermata.content.working_documents import WorkingDocuments
from fermata.content_api.asset_requests import open_documents, store_uploaded_file, view_stored_asset
from fermata.content_api.request_parts import count_body, count_content_bytes, locate_space
from fermata.domain.errors import ApiError, InvalidRequest, ServiceUnavailable
from fermata.domain.surrogates_and_infinities import to_storable_json
from fermata.wire.bodies.content_requests import AssetChanges, NewAssets, NewFile
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext

BULK_SECONDS = 12
"""After so long, nothing further is begun: the function has 28 seconds, and the largest file takes about ten."""
_BYTES_OF_CHANGE = 2_000
"""What a change of an asset counts as among the bytes that a caller stores in a day, roughly."""
_UNCACHED = {"Cache-Control": "private, no-store"}


def store_uploaded_assets(context: RequestContext) -> Response:
    """Store uploaded files, each of which has a result: 201 if it is new, 200 if it is an asset already."""
    body, space = context.parse_body(NewAssets), locate_space(context)
    count_body(context)
    documents = _open_writable_documents(context, space, body.change_set or "")

    def store(file: NewFile) -> dict[str, Any]:
        stored = store_uploaded_file(context, documents, file)
        return {"status": 201 if stored.is_new else 200, "document": view_stored_asset(documents, stored)}

    has_time = _limit_time(context)
    results = [{"uploadRef": file.upload_ref, **_attempt(partial(store, file), has_time)} for file in body.files]
    return Response(200, {"results": results}, _UNCACHED)


def change_assets(context: RequestContext) -> Response:
    """Delete assets, or change their tags. Each has a result."""
    body, space = context.parse_body(AssetChanges), locate_space(context)
    if body.action != "delete" and not body.tags:
        raise InvalidRequest("'tags' must name at least one tag.")
    ids = list(dict.fromkeys(body.ids))
    count_content_bytes(context, _BYTES_OF_CHANGE * len(ids))
    documents = _open_writable_documents(context, space, body.change_set or "")

    def change(key: DocumentKey) -> dict[str, Any]:
        if body.action == "delete":
            documents.delete(key)
        else:
            documents.update(key, lambda content: _change_tags(content, body))
        return {"status": 200}

    has_time = _limit_time(context)
    results = [{"id": name, **_attempt(partial(change, DocumentKey(ASSET, name)), has_time)} for name in ids]
    return Response(200, {"results": results}, _UNCACHED)


def _open_writable_documents(context: RequestContext, space: SpaceKey, change_set: str) -> WorkingDocuments:
    """Open the documents of a space.

    Raises:
        NotFound: There is no such space.
        ReviewRequired: Changes of the caller wait for a review, and no change set is named.
    """
    documents = open_documents(context, space, change_set)
    documents.require_writable(read_write_basis(context.resources, space, [ASSET]))
    return documents


def _limit_time(context: RequestContext) -> Callable[[], bool]:
    """Return what tells whether something further may be begun."""
    end = _read_clock(context.resources) + BULK_SECONDS
    return lambda: _read_clock(context.resources) < end


def _read_clock(resources: Resources) -> float:
    return resources.clock.time()


def _attempt(act: Callable[[], dict[str, Any]], has_time: Callable[[], bool]) -> dict[str, Any]:
    """Return what became of one of many: what `act` says of it, or why it was refused."""
    try:
        if not has_time():
            raise ServiceUnavailable("The request had no time left for this one. Send it again.")
        return act()
    except ApiError as refused:
        code = {"code": refused.code} if refused.code else {}
        return {"status": refused.status, "error": refused.message, **code}


def _change_tags(content: DocumentContent, body: AssetChanges) -> DocumentContent:
    """Return an asset with its tags changed.

    Raises:
        InvalidRequest: It would have too many.
    """
    own = content.get_locale(DEFINITION_LOCALE).get("tags")
    known = [tag for tag in own if isinstance(tag, str)] if isinstance(own, list) else []
    named: list[str] = to_storable_json(body.tags)
    kept = [tag for tag in known if tag not in named] if body.action == "removeTags" else [*known, *named]
    tags = list(dict.fromkeys(kept))
    if len(tags) > MAX_ASSET_TAGS:
        raise InvalidRequest(f"An asset has at most {MAX_ASSET_TAGS} tags, and this one would have {len(tags)}.")
    return content.with_fields(DEFINITION_LOCALE, {"tags": tags or None})
