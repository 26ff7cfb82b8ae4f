"""Handle requests on assets: store an uploaded file, and lead to its files."""

from typing import Any

from fermata.aws import uploads
from fermata.content.content_space import SpaceKey
from fermata.content.documents.review_workflow import ReviewRequired
from fermata.content.media.asset_store import (
    ASSET_URL_SECONDS,
    AssetTexts,
    StoredAsset,
    make_asset_key,
    presign_asset_file,
    store_asset,
)
from fermata.content.space_access import is_reviewed
from fermata.content.working_documents import WorkingDocuments
from fermata.content_api.request_parts import count_body, locate_space, make_author, respond_with_version
from fermata.domain.surrogates_and_infinities import to_storable_json
from fermata.wire.bodies.content_requests import NewAsset, NewFile
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext
from fermata.wire.operations.operation import JSON_MEDIA_TYPE


def store_uploaded_asset(context: RequestContext) -> Response:
    """Store an uploaded file: 201 if it is new, 200 if the same upload is an asset already."""
    body, space = context.parse_body(NewAsset), locate_space(context)
    count_body(context)
    documents = open_documents(context, space, body.change_set or "")
    try:
        stored = store_uploaded_file(context, documents, body)
    except ReviewRequired as refusal:
        refusal.details = {"uploadRef": body.upload_ref}  # which can be stored in a change set, without another upload
        raise
    view = view_stored_asset(documents, stored)
    return respond_with_version(201 if stored.is_new else 200, stored.version.version, {"document": view})


def view_stored_asset(documents: WorkingDocuments, stored: StoredAsset) -> dict[str, Any]:
    """Return an asset for the client, with the change set in which it waits. One that was stored before is live."""
    waits = {"changeSet": documents.change_set} if documents.is_changed(stored.version.key) else {}
    return stored.version.to_view() | waits


def store_uploaded_file(context: RequestContext, documents: WorkingDocuments, file: NewFile) -> StoredAsset:
    """Store an uploaded file as an asset.

    Args:
        context: The request.
        documents: Where it is stored.
        file: Which upload it is, and what it is called.

    Raises:
        ApiError: As `fetch_upload` and `store_asset` do.
    """
    upload = uploads.parse_upload_ref(file.upload_ref, "media", "image")
    raw = uploads.fetch_upload(context.resources, context.caller, upload)
    texts = AssetTexts(*(to_storable_json(text) for text in (file.filename, file.alt, file.tags)))
    return store_asset(documents, raw, texts, preset=file.preset)


def open_documents(context: RequestContext, space: SpaceKey, change_set: str) -> WorkingDocuments:
    """Open the documents of a space for the caller: as they are, or as they are in a change set."""
    author = make_author(context)
    return WorkingDocuments(
        context.resources, space, author, is_reviewed=is_reviewed(context.caller), change_set=change_set
    )


def redirect_to_asset_file(context: RequestContext) -> Response:
    """Redirect to an address from which a file can be downloaded for some minutes.

    Whoever asks for JSON is told the address instead: a script of a page can show a file there, and cannot follow.
    """
    space = locate_space(context)
    documents = open_documents(context, space, context.request.query.get("changeSet", ""))
    version = documents.read(make_asset_key(context.path_parameters["asset"]))
    url = presign_asset_file(context.resources, space, version, context.path_parameters["file"])
    headers = {"Cache-Control": "private, no-store", "Vary": "Accept"}
    if context.request.headers.get("accept", "").strip().lower() == JSON_MEDIA_TYPE:
        return Response(200, {"url": url, "expiresInSeconds": ASSET_URL_SECONDS}, headers)
    return Response(302, None, headers | {"Location": url})
