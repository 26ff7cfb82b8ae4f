"""Describe models and documents of the content store in the forms of docs/host.md.

The id of a document is `<model>.<document>`, as that of an entry is for the CMS's tools: neither name has a dot.
"""

from collections.abc import Mapping
from typing import Any

from fermata.content.built_in_models import ASSET_MODEL, PAGE_MODEL
from fermata.content.content_model import DEFINITION_LOCALE, ContentModel, ModelKind
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import (
    ContentStatus,
    DocumentContent,
    DocumentHead,
    DocumentKey,
    DocumentVersion,
)
from fermata.content.documents.read_document import ModelState
from fermata.content.fields import MEDIA_TYPES, NUMBER_TYPES, FieldDefinition, FieldType
from fermata.content.media.asset_store import build_asset_path

ID_SEPARATOR = "."
AUTHOR_FIELD = "author"
_KINDS = {ModelKind.PAGE: "page", ModelKind.COLLECTION: "postType", ModelKind.DOCUMENT: "postType"}
_FIELD_TYPES = {
    FieldType.TEXT: "longText",
    FieldType.MARKDOWN: "richText",
    FieldType.RICHTEXT: "richText",
    FieldType.BOOLEAN: "boolean",
    FieldType.DATE: "date",
    FieldType.DATETIME: "dateTime",
    FieldType.URL: "url",
    FieldType.SELECT: "select",
    FieldType.RELATION: "relation",
    FieldType.RELATIONS: "relation",
    **dict.fromkeys(NUMBER_TYPES, "number"),
    **dict.fromkeys(MEDIA_TYPES, "media"),
}
_STATUSES = {ContentStatus.PUBLISHED: "published", ContentStatus.ARCHIVED: "unpublished"}
_TITLE = {"id": "title", "label": "Title", "type": "text", "required": True, "builtIn": True}
_SLUG = {"id": "slug", "label": "Slug", "type": "text", "required": False, "builtIn": True}


def make_document_id(key: DocumentKey) -> str:
    """Return the id under which a document is known outside of the store."""
    return f"{key.model}{ID_SEPARATOR}{key.id}"


def parse_document_id(document_id: str) -> DocumentKey:
    """Return the document that an id means. A text that is no such id has an empty part, which is no name."""
    model, _, name = document_id.partition(ID_SEPARATOR)
    return DocumentKey(model, name)


def describe_table(state: ModelState) -> dict[str, Any]:
    """Describe a model as a table. Assets are listed as media, and are no content."""
    model = state.model
    kind = "data" if model.id == ASSET_MODEL.id else _KINDS.get(model.kind, "data")
    label = model.title or model.id
    return {
        "id": model.id,
        "slug": model.id,
        "name": label,
        "kind": kind,
        "singularLabel": label,
        "pluralLabel": label,
        "primaryFieldId": "title",
        "routeBase": "/" if model.id == PAGE_MODEL.id else "",
        "rowCount": state.documents,
        "fields": _describe_fields(model),
    }


def _describe_fields(model: ContentModel) -> list[dict[str, Any]]:
    own = [_describe_field(name, definition) for name, definition in model.fields.items()]
    return [field for field in (_TITLE, _SLUG) if field["id"] not in model.fields] + own


def _describe_field(name: str, definition: FieldDefinition) -> dict[str, Any]:
    described: dict[str, Any] = {
        "id": name,
        "label": name,
        "type": _FIELD_TYPES.get(definition.type, "text"),
        "required": definition.required,
        "builtIn": False,
    }
    if definition.type is FieldType.SELECT:
        described["options"] = [{"id": option, "label": option} for option in definition.options or ()]
    if definition.type in (FieldType.IMAGE, FieldType.VIDEO):
        described["mediaKind"] = definition.type.value
    if definition.type in (FieldType.RELATION, FieldType.RELATIONS):
        described["allowMultiple"] = definition.type is FieldType.RELATIONS
        described["targetTableId"] = definition.model[0] if definition.model else None
    return described


def describe_status(status: ContentStatus) -> str:
    """Return how far a document is, in the words of content systems. What is in review is a draft."""
    return _STATUSES.get(status, "draft")


def describe_head(head: DocumentHead, content: DocumentContent | None, locale: str) -> dict[str, Any]:
    """Describe a document as lists show it.

    Args:
        head: The document.
        content: What it says, which names its author; None if that could not be read.
        locale: The language that counts.
    """
    described = {
        "id": make_document_id(DocumentKey(head.model, head.id)),
        "tableId": head.model,
        "title": head.title,
        "slug": head.slug,
        "status": describe_status(head.status),
        "authorUserId": find_author(content, locale) if content else None,
        "createdAt": head.created_at,
        "updatedAt": head.updated_at,
        "publishedAt": head.published_at,
    }
    return {name: value for name, value in described.items() if value not in (None, "")}


def describe_document(head: DocumentHead, version: DocumentVersion, locale: str) -> dict[str, Any]:
    """Describe a document with the values of its fields in one language, and of those that all languages share.

    Args:
        head: The document.
        version: Its newest version.
        locale: The language.
    """
    content = version.content or DocumentContent()
    own = {"title": content.title, "slug": content.slug}
    fields = {**own, **content.get_locale(DEFINITION_LOCALE), **content.get_locale(locale)}
    return {**describe_head(head, content, locale), "fields": fields}


def find_author(content: DocumentContent, locale: str) -> str | None:
    """Return the author that a document names in its field of this name."""
    for part in (content.get_locale(DEFINITION_LOCALE), content.get_locale(locale)):
        author = part.get(AUTHOR_FIELD)
        if isinstance(author, str) and author:
            return author
    return None


def describe_media(space: SpaceKey, version: DocumentVersion) -> dict[str, Any]:
    """Describe an asset as a file of the media library."""
    content = version.content or DocumentContent()
    shared: Mapping[str, Any] = content.get_locale(DEFINITION_LOCALE)
    described = {
        "id": version.id,
        "filename": shared.get("filename") or content.title,
        "publicPath": build_asset_path(space, version.id),
        "mimeType": shared.get("mediaType"),
        "altText": shared.get("alt"),
        "width": shared.get("width"),
        "height": shared.get("height"),
    }
    return {name: value for name, value in described.items() if value is not None}
