"""Export a space in parts: its models and documents as JSON, or what is published as HTML pages."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from fermata.aws.resources import Resources
from fermata.content.built_in_models import PAGE_MODEL, POST_MODEL
from fermata.content.content_space import SpaceKey, read_space
from fermata.content.documents.document import DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.list_documents import list_documents
from fermata.content.documents.read_document import read_newest_version
from fermata.content.media.asset_reference import iter_asset_references, replace_asset_references
from fermata.content.media.asset_store import build_asset_path
from fermata.content.model_store import list_content_models
from fermata.content.publishing.deliver_documents import without_hidden_sections
from fermata.content.publishing.published_locales import keep_published_locales
from fermata.content.publishing.render_html import render_document_html
from fermata.domain.errors import InvalidRequest

EXPORT_VERSION = 1
EXPORTED_AT_ONCE = 25
MAX_EXPORTED_BYTES = 3_000_000
"""Of the documents of one part, apart from the last one, which may be as large as a document may be."""
_CURSOR_SEPARATOR = "."
_HTML_MODELS = (PAGE_MODEL.id, POST_MODEL.id)


class ExportedPart(NamedTuple):
    """A part of an export, and where the next one begins; empty behind the last."""

    items: list[dict[str, Any]]
    cursor: str


def describe_exported_space(resources: Resources, space: SpaceKey) -> dict[str, Any]:
    """Return what an export has besides documents: how the space is set up, and its models.

    Raises:
        NotFound: There is no such space.
    """
    record = read_space(resources, space)
    models = [state.model.to_wire() for state in list_content_models(resources, space)]
    return {"version": EXPORT_VERSION, "space": record.to_view(space), "models": models}


def export_documents(resources: Resources, space: SpaceKey, cursor: str = "") -> ExportedPart:
    """Return the next documents of a space, as an import takes them.

    Args:
        resources: Of the process.
        space: The space.
        cursor: That of the part before.

    Raises:
        InvalidRequest: The cursor is none.
    """
    models = [state.model.id for state in list_content_models(resources, space)]
    versions, following = _read_part(resources, space, models, cursor)
    return ExportedPart([_to_exported(version) for version in versions], following)


def export_html(resources: Resources, space: SpaceKey, cursor: str = "") -> ExportedPart:
    """Return the next published pages and posts as HTML, in each language in which they are published.

    Args:
        resources: Of the process.
        space: The space.
        cursor: That of the part before.

    Raises:
        InvalidRequest: The cursor is none.
    """
    record = read_space(resources, space)
    versions, following = _read_part(resources, space, _HTML_MODELS, cursor)
    items = [
        item
        for version in versions
        if version.content and (published := keep_published_locales(version.content))
        for item in _render(space, version, published, record.locales)
    ]
    return ExportedPart(items, following)


def _render(
    space: SpaceKey, version: DocumentVersion, published: DocumentContent, locales: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    content = version.content
    assert content is not None
    shown = without_hidden_sections(version.model_copy(update={"content": published}))
    images = frozenset(build_asset_path(space, one) for one in iter_asset_references(shown.locales))
    addressed = replace_asset_references(shown.locales, lambda asset_id: build_asset_path(space, asset_id))
    page = version.model_copy(update={"content": shown.model_copy(update={"locales": addressed})})
    for place, locale in enumerate(locales):
        if locale not in shown.locales and (place or locale in content.locales):
            continue
        folder = "" if place == 0 else f"{locale}/"
        kind = "" if version.model == PAGE_MODEL.id else f"{version.model}/"
        yield {
            "path": f"{folder}{kind}{content.slug or version.id}.html",
            "html": render_document_html(page, locale, images),
        }


def _read_part(
    resources: Resources, space: SpaceKey, models: tuple[str, ...] | list[str], cursor: str
) -> tuple[list[DocumentVersion], str]:
    model, _, after = cursor.partition(_CURSOR_SEPARATOR) if cursor else (models[0], "", "")
    if model not in models:
        raise InvalidRequest("'cursor' must be that of the response before. Begin again without one.")
    page = list_documents(resources, space, model, limit=EXPORTED_AT_ONCE, after=after)
    versions: list[DocumentVersion] = []
    size = 0
    for head in page.documents:
        version = read_newest_version(resources, space, DocumentKey(model, head.id))
        if version is not None and version.content is not None:
            versions.append(version)
            size += len(version.model_dump_json())
        if size > MAX_EXPORTED_BYTES and head is not page.documents[-1]:
            return versions, f"{model}{_CURSOR_SEPARATOR}{head.id}"
    if page.after:
        return versions, f"{model}{_CURSOR_SEPARATOR}{page.after}"
    following = models[list(models).index(model) + 1 :]
    return versions, following[0] if following else ""


def _to_exported(version: DocumentVersion) -> dict[str, Any]:
    content = version.content
    assert content is not None
    own = {locale: content.get_status(locale) for locale in content.locales}
    statuses = {locale: status.value for locale, status in own.items() if status is not content.status}
    return {
        "model": version.model,
        "id": version.id,
        "slug": content.slug,
        "title": content.title,
        "status": content.status.value,
        "locales": content.locales,
    } | ({"statuses": statuses} if statuses else {})
