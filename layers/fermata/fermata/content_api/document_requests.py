"""Handle requests on documents and their versions."""

from typing import Any

from fermata.content.content_model import META_MODEL
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import (
    WrittenDocument,
    create_document,
    delete_document,
    update_document,
)
from fermata.content.documents.document import (
    ContentStatus,
    DocumentContent,
    DocumentHead,
    DocumentKey,
    DocumentVersion,
)
from fermata.content.documents.document_history import list_versions, restore_document
from fermata.content.documents.document_rows import head_from_version
from fermata.content.documents.list_documents import MAX_LISTED, DocumentPage, ListFilter, list_documents
from fermata.content.documents.read_document import (
    PROJECT_KEY,
    find_document_by_slug,
    read_document,
    read_document_heads,
    read_document_version,
    read_write_basis,
)
from fermata.content.media.asset_store import ASSET, require_asset_files
from fermata.content.media.project_presets import check_project_settings
from fermata.content.model_store import restore_model
from fermata.content.page_sections import list_section_models
from fermata.content_api.publishing_right import (
    check_may_publish,
    check_may_publish_locales,
    draft_further_locales,
)
from fermata.content_api.request_parts import (
    count_body,
    is_current,
    locate_document,
    locate_space,
    make_author,
    read_options,
    require_right_to_model,
    respond_with_version,
)
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.domain.surrogates_and_infinities import to_storable_json
from fermata.wire.bodies.content_requests import DocumentChange, NewDocument
from fermata.wire.http.messages import Response, read_integer_parameter
from fermata.wire.http.routing import RequestContext

DEFAULT_LISTED = 50
MAX_NAMED = 100


def list_space_documents(context: RequestContext) -> Response:
    """Respond with a page of the documents of a model."""
    space, model = locate_space(context), context.path_parameters["model"]
    basis = read_write_basis(context.resources, space, [model])
    if model != META_MODEL:
        basis.require_model(model)
    page = _read_page(context, model)
    total = basis.models[model].documents if model in basis.models else len(page.documents)
    documents = [head.model_dump(mode="json", by_alias=True, exclude={"documents"}) for head in page.documents]
    body = {"documents": documents, "total": total}
    return Response(200, body | ({"nextCursor": page.after} if page.after else {}))


def _read_page(context: RequestContext, model: str) -> DocumentPage:
    query, space = context.request.query, locate_space(context)
    limit = read_integer_parameter(context.request, "limit", DEFAULT_LISTED, maximum=MAX_LISTED)
    status = query.get("status")
    if status is not None and status not in set(ContentStatus):
        raise InvalidRequest(f"'status' must be one of {', '.join(ContentStatus)}.")
    if slug := query.get("slug"):
        try:
            found = find_document_by_slug(context.resources, space, model, slug)
        except NotFound:
            return DocumentPage(())
        return DocumentPage((head_from_version(found),))
    if "ids" in query:
        return DocumentPage(tuple(_read_named(context, space, model).values()))
    wanted = ContentStatus(status) if status else None
    only = ListFilter(wanted, query.get("category", ""), query.get("missing", ""))
    return list_documents(
        context.resources, space, model, limit=max(1, limit), after=query.get("cursor", ""), only=only
    )


def _read_named(context: RequestContext, space: SpaceKey, model: str) -> dict[DocumentKey, DocumentHead]:
    names = dict.fromkeys(filter(None, context.request.query["ids"].split(",")))
    if len(names) > MAX_NAMED:
        raise InvalidRequest(f"'ids' has at most {MAX_NAMED} ids.")
    return read_document_heads(context.resources, space, [DocumentKey(model, name) for name in names])


def create_content_document(context: RequestContext) -> Response:
    """Create a document."""
    body, space = context.parse_body(NewDocument), locate_space(context)
    count_body(context)
    model = context.path_parameters["model"]
    _refuse_models(context, model)
    check_project_settings(DocumentKey(model, body.id or PROJECT_KEY.id), body.locales)
    check_may_publish(context, space, body.status, None)
    check_may_publish_locales(context, space, body.statuses, None)
    content, options = apply_change(DocumentContent(), body), read_options(context)
    written = create_document(
        context.resources,
        space,
        model,
        make_author(context),
        content,
        effect_key=options.effect_key,
        is_reviewed=options.is_reviewed,
        section_models=list_section_models(content),
        document_id=body.id or "",
    )
    return _respond(201, written)


def show_document(context: RequestContext) -> Response:
    """Respond with a document, or with nothing if the caller has its newest version."""
    version = read_document(context.resources, locate_space(context), locate_document(context))
    if is_current(context, version.version):
        return respond_with_version(304, version.version, None)
    return _respond(200, WrittenDocument(version))


def change_content_document(context: RequestContext) -> Response:
    """Change a document."""
    body, space, key = context.parse_body(DocumentChange), locate_space(context), locate_document(context)
    _refuse_models(context, key.model)
    check_may_publish(context, space, body.status, key)
    check_may_publish_locales(context, space, body.statuses, key)
    check_project_settings(key, body.locales)
    options = read_options(context)._replace(section_models=list_added_sections(body))

    def change(content: DocumentContent) -> DocumentContent:
        return draft_further_locales(context, space, content, apply_change(content, body), body.statuses or ())

    return _respond(200, update_document(context.resources, space, key, make_author(context), change, options))


def delete_content_document(context: RequestContext) -> Response:
    """Delete a document."""
    space, key = locate_space(context), locate_document(context)
    _refuse_models(context, key.model)
    delete_document(context.resources, space, key, make_author(context), read_options(context))
    return Response(200, {"ok": True})


def list_document_versions(context: RequestContext) -> Response:
    """Respond with the versions of a document."""
    space, key = locate_space(context), locate_document(context)
    limit = max(1, read_integer_parameter(context.request, "limit", DEFAULT_LISTED, maximum=MAX_LISTED))
    before = read_integer_parameter(context.request, "before", 0) or None
    versions = list_versions(context.resources, space, key, limit=limit, before=before)
    body: dict[str, Any] = {"versions": [_to_version_view(one) for one in versions]}
    has_older = len(versions) == limit and versions[-1].version > 1
    return Response(200, body | ({"nextBefore": versions[-1].version} if has_older else {}))


def show_document_version(context: RequestContext) -> Response:
    """Respond with a version of a document."""
    number = _read_version_number(context)
    version = read_document_version(context.resources, locate_space(context), locate_document(context), number)
    return _respond(200, WrittenDocument(version))


def restore_document_version(context: RequestContext) -> Response:
    """Restore a version of a document or a model."""
    space, key, number = locate_space(context), locate_document(context), _read_version_number(context)
    author, options = make_author(context), read_options(context)
    require_right_to_model(context, key.model)
    if key.model != META_MODEL:
        version = read_document_version(context.resources, space, key, number)
        if key.model == ASSET:
            require_asset_files(context.resources, space, version)
        if version.content:
            check_may_publish(context, space, version.content.status, key)
            published = filter(version.content.is_published_in, version.content.locales)
            check_may_publish_locales(context, space, dict.fromkeys(published, ContentStatus.PUBLISHED), key)
        return _respond(200, restore_document(context.resources, space, key, number, author, options))
    return _respond(200, restore_model(context.resources, space, key.id, number, author, options))


def list_added_sections(body: DocumentChange) -> tuple[str, ...]:
    """Return the section models that a change adds to a page."""
    own = body.model_copy(update={"status": None, "statuses": None})
    return list_section_models(apply_change(DocumentContent(), own))


def apply_change(content: DocumentContent, body: DocumentChange) -> DocumentContent:
    """Return what a document says after a change: what is not named stays, and a field that is null goes."""
    own = {"slug": body.slug, "title": to_storable_json(body.title)}
    changed = content.model_copy(update={name: value for name, value in own.items() if value is not None})
    for locale, fields in (body.locales or {}).items():
        changed = changed.with_fields(locale, to_storable_json(fields))
    return changed.with_statuses(body.status, body.statuses or {}).with_settled_status()


def _refuse_models(context: RequestContext, model: str) -> None:
    if model == META_MODEL:
        raise InvalidRequest("Models are changed under 'models'.")
    require_right_to_model(context, model)


def _read_version_number(context: RequestContext) -> int:
    text = context.path_parameters["version"]
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise NotFound("There is no such version.")
    return int(text)


def _to_version_view(version: DocumentVersion) -> dict[str, Any]:
    """Return a version of a list, in which it is not known what it says, but that it says something."""
    return version.to_view() | {"deleted": version.action == "delete"}


def _respond(status: int, written: WrittenDocument) -> Response:
    body: dict[str, Any] = {"document": written.version.to_view()}
    if written.warnings:
        body["warnings"] = [problem.to_wire() for problem in written.warnings]
    return respond_with_version(status, written.version.version, body)
