"""Define the input schemas of the CMS tools for pages and entries, as their clients know them."""

from typing import Any

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}
_LOCALE: Schema = {"type": "string", "description": "locale code", "default": "en"}
_SLUG: Schema = {
    "type": "string",
    "description": "lower-case letters, digits, hyphen, 2 to 64",
    "pattern": "^[a-z0-9-]{2,64}$",
}
_CONFIRMED: Schema = {"type": "boolean", "description": "must be true for the action to happen", "default": False}
_WITH_CONTENT: Schema = {"type": "boolean", "default": False}
_META: Schema = {
    "type": "object",
    "description": "page metadata",
    "properties": {"title": _TEXT, "description": _TEXT},
    "additionalProperties": False,
}
_ID_OR_SLUG: Schema = {"anyOf": [{"required": ["slug"]}, {"required": ["id"]}]}


def _object(properties: Schema, *required: str, **others: Any) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False, **others}
    return schema | ({"required": list(required)} if required else {})


GET_PAGES_SCHEMA = _object({"limit": {"type": "integer", "default": 100}, "cursor": _TEXT})
GET_PAGE_SCHEMA = _object(
    {"slug": _TEXT, "id": _TEXT, "includeContent": _WITH_CONTENT, "localeCode": _LOCALE}, **_ID_OR_SLUG
)
CREATE_PAGE_SCHEMA = _object(
    {
        "name": _TEXT,
        "title": {"type": "string", "description": "alias of name"},
        "slug": _SLUG,
        "indexing": {"type": "boolean", "default": True},
        "meta": _META,
        "sections": {"type": "array", "items": {"type": "object"}},
    },
    "name",
)
UPDATE_PAGE_SCHEMA = _object(
    {"id": _TEXT, "name": _TEXT, "slug": _SLUG, "indexing": {"type": "boolean"}, "meta": _META}, "id"
)
DELETE_PAGE_SCHEMA = _object(
    {"slug": _TEXT, "id": _TEXT, "removeFromNavigation": {"type": "boolean"}, "confirmed": _CONFIRMED}, **_ID_OR_SLUG
)
GET_COLLECTION_ENTRIES_SCHEMA = _object(
    {"collectionId": _TEXT, "includeContent": _WITH_CONTENT, "localeCode": _LOCALE}, "collectionId"
)
GET_ENTRY_CONTENT_SCHEMA = _object({"entryId": _TEXT, "localeCode": _LOCALE}, "entryId")
CREATE_ENTRY_SCHEMA = _object(
    {"collectionId": _TEXT, "slug": _SLUG, "title": _TEXT, "content": {"type": "object"}, "localeCode": _LOCALE},
    "collectionId",
    "slug",
    "title",
    "content",
)
UPDATE_ENTRY_SCHEMA = _object(
    {"entryId": _TEXT, "title": _TEXT, "content": {"type": "object"}, "localeCode": _LOCALE}, "entryId"
)
DELETE_ENTRY_SCHEMA = _object({"entryId": _TEXT, "confirmed": _CONFIRMED}, "entryId")
