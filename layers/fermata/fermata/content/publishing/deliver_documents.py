"""Read documents with a token: what is published, or drafts too, as a site shows them."""

from collections.abc import Callable
from typing import Any

from fermata.aws.resources import Resources
from fermata.content.built_in_models import PAGE_MODEL
from fermata.content.content_model import DEFINITION_LOCALE, META_MODEL
from fermata.content.documents.document import ContentStatus, DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.list_documents import ListFilter, list_documents
from fermata.content.documents.read_document import (
    describe_missing_document,
    find_document_by_slug,
    read_document,
    read_versions_at_once,
)
from fermata.content.media.asset_reference import iter_asset_references, replace_asset_references
from fermata.content.media.asset_store import read_asset
from fermata.content.page_sections import list_page_sections
from fermata.content.publishing.delivery_token import DeliveryGrant
from fermata.content.publishing.published_locales import keep_published_locales
from fermata.domain.errors import NotFound

MAX_DELIVERED = 50
BuildAssetUrl = Callable[[str], str]
"""Returns the address of an asset by its id."""


def deliver_document(
    resources: Resources, grant: DeliveryGrant, key: DocumentKey, *, by_slug: bool = False
) -> DocumentVersion:
    """Return a document if the token shows it, in the languages that it shows.

    Args:
        resources: Of the process.
        grant: What the token shows.
        key: The document, or its model and slug.
        by_slug: Whether it is named by its slug.

    Raises:
        NotFound: There is none, or it is not for this token. Both look the same.
    """
    if key.model == META_MODEL:
        raise NotFound(describe_missing_document(key))
    try:
        version = (
            find_document_by_slug(resources, grant.space, key.model, key.id)
            if by_slug
            else read_document(resources, grant.space, key)
        )
    except NotFound:
        raise NotFound(describe_missing_document(key)) from None
    shown = _show(grant, version)
    if not grant.shows(version.key) or shown is None:
        raise NotFound(describe_missing_document(key))
    return shown


def deliver_list(
    resources: Resources, grant: DeliveryGrant, model: str, *, limit: int, after: str = "", category: str = ""
) -> tuple[list[DocumentVersion], str]:
    """Return a page of the documents of a model that the token shows, and the cursor of the next one.

    Args:
        resources: Of the process.
        grant: What the token shows.
        model: The model.
        limit: The greatest number of documents.
        after: The cursor of the page before.
        category: Only posts of it.

    Raises:
        NotFound: The token is for one document, or the model for none.
    """
    if grant.document is not None or model == META_MODEL:
        raise NotFound("This token shows no lists.")
    status = ContentStatus.PUBLISHED if grant.mode == "published" else None
    page = list_documents(
        resources, grant.space, model, limit=min(limit, MAX_DELIVERED), after=after, only=ListFilter(status, category)
    )
    wanted = [(DocumentKey(head.model, head.id), head.version) for head in page.documents]
    found = read_versions_at_once(resources, grant.space, wanted)
    shown = [_show(grant, found[one]) for one in wanted if one in found]
    return [version for version in shown if version is not None], page.after


def deliver_asset_of_token(resources: Resources, grant: DeliveryGrant, asset_id: str) -> DocumentVersion:
    """Return an image that the token shows: of a token for one document, only what that document refers to.

    Args:
        resources: Of the process.
        grant: What the token shows.
        asset_id: Its id.

    Raises:
        NotFound: There is none, or it is not for this token. Both look the same.
    """
    version = read_asset(resources, grant.space, asset_id)
    is_shown = _show(grant, version) is not None
    if is_shown and not grant.shows(version.key):
        assert grant.document is not None
        shown = without_hidden_sections(deliver_document(resources, grant, grant.document))
        is_shown = version.id in iter_asset_references(shown.locales)
    if not is_shown:
        raise NotFound(describe_missing_document(version.key))
    return version


def _show(grant: DeliveryGrant, version: DocumentVersion) -> DocumentVersion | None:
    """Return a document in the languages that the token shows; None if it shows none of it."""
    if version.content is None or grant.mode == "preview":
        return version if version.content else None
    content = keep_published_locales(version.content)
    return None if content is None else version.model_copy(update={"content": content})


def to_delivered_view(version: DocumentVersion, build_asset_url: BuildAssetUrl) -> dict[str, Any]:
    """Return a document as sites read it: without who has written it, and with addresses of its images.

    Sections that are not published are left out, with their content.
    """
    content = without_hidden_sections(version)
    return {
        "model": version.model,
        "id": version.id,
        "version": version.version,
        "slug": content.slug,
        "title": content.title,
        "status": content.status.value,
        "publishedAt": content.published_at,
        "updatedAt": version.at,
        "locales": replace_asset_references(content.locales, build_asset_url),
    }


def without_hidden_sections(version: DocumentVersion) -> DocumentContent:
    """Return what a document says; of a page without the sections that are not published."""
    content = version.content
    assert content is not None
    if version.model != PAGE_MODEL.id:
        return content
    hidden = {section.id for section in list_page_sections(content) if section.status != "published"}
    if not hidden:
        return content
    shared = dict(content.get_locale(DEFINITION_LOCALE))
    shared["sections"] = [one for one in shared["sections"] if one["id"] not in hidden]
    locales = {
        locale: {name: value for name, value in fields.items() if name not in hidden}
        for locale, fields in content.locales.items()
    }
    return content.model_copy(update={"locales": {**locales, DEFINITION_LOCALE: shared}})
