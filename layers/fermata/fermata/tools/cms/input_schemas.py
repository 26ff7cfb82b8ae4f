"""Define the input schemas of the CMS tools, as their clients know them.

Providers refuse alternatives at the top of a schema, so that handlers check that one of two names is there.
"""

from typing import Any

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}
_LOCALE: Schema = {"type": "string", "description": "locale code; the default language of the site without it"}
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


def make_object_schema(properties: Schema, *required: str, **others: Any) -> Schema:
    """Return the schema of an object that has no other members."""
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False, **others}
    return schema | ({"required": list(required)} if required else {})


GET_PAGES_SCHEMA = make_object_schema({"limit": {"type": "integer", "default": 100}, "cursor": _TEXT})
GET_PAGE_SCHEMA = make_object_schema(
    {"slug": _TEXT, "id": _TEXT, "includeContent": _WITH_CONTENT, "localeCode": _LOCALE}
)
CREATE_PAGE_SCHEMA = make_object_schema(
    {
        "name": _TEXT,
        "title": {"type": "string", "description": "alias of name"},
        "slug": _SLUG,
        "indexing": {"type": "boolean", "default": True},
        "meta": _META,
        "sections": {"type": "array", "items": {"type": "object"}},
    },
)
UPDATE_PAGE_SCHEMA = make_object_schema(
    {"id": _TEXT, "name": _TEXT, "slug": _SLUG, "indexing": {"type": "boolean"}, "meta": _META}, "id"
)
DELETE_PAGE_SCHEMA = make_object_schema(
    {"slug": _TEXT, "id": _TEXT, "removeFromNavigation": {"type": "boolean"}, "confirmed": _CONFIRMED}
)
GET_COLLECTION_ENTRIES_SCHEMA = make_object_schema(
    {"collectionId": _TEXT, "includeContent": _WITH_CONTENT, "localeCode": _LOCALE}, "collectionId"
)
GET_ENTRY_CONTENT_SCHEMA = make_object_schema({"entryId": _TEXT, "localeCode": _LOCALE}, "entryId")
CREATE_ENTRY_SCHEMA = make_object_schema(
    {"collectionId": _TEXT, "slug": _SLUG, "title": _TEXT, "content": {"type": "object"}, "localeCode": _LOCALE},
    "collectionId",
    "slug",
    "title",
    "content",
)
UPDATE_ENTRY_SCHEMA = make_object_schema(
    {"entryId": _TEXT, "title": _TEXT, "content": {"type": "object"}, "localeCode": _LOCALE}, "entryId"
)
DELETE_ENTRY_SCHEMA = make_object_schema({"entryId": _TEXT, "confirmed": _CONFIRMED}, "entryId")

_STATUS: Schema = {"type": "string", "enum": ["published", "unpublished"], "default": "published"}
NO_INPUT_SCHEMA = make_object_schema({})
CREATE_PAGE_WITH_CONTENT_SCHEMA = make_object_schema(
    {
        "name": _TEXT,
        "title": {"type": "string", "description": "alias of name"},
        "slug": _SLUG,
        "sections": {
            "type": "array",
            "maxItems": 30,
            "description": "default one hero section",
            "items": {
                "type": "object",
                "properties": {"sectionKey": _TEXT, "definitionId": _TEXT, "content": {"type": "object"}},
            },
        },
        "indexing": {"type": "boolean", "default": True},
        "meta": _META,
        "localeCode": _LOCALE,
    },
)
GET_PAGE_SECTIONS_SCHEMA = make_object_schema(
    {"pageId": _TEXT, "includeContent": _WITH_CONTENT, "localeCode": _LOCALE}, "pageId"
)
GET_SECTION_CONTENT_SCHEMA = make_object_schema({"pageSectionId": _TEXT, "localeCode": _LOCALE}, "pageSectionId")
GET_SECTION_DEF_SCHEMA = make_object_schema({"id": _TEXT, "key": _TEXT})
ADD_PAGE_SECTION_SCHEMA = make_object_schema(
    {"pageId": _TEXT, "sectionDefId": _TEXT, "sortOrder": {"type": "integer", "minimum": 0}, "status": _STATUS},
    "pageId",
    "sectionDefId",
)
SYNC_SECTION_CONTENT_SCHEMA = make_object_schema(
    {
        "pageSectionId": _TEXT,
        "localeCode": _LOCALE,
        "content": {"type": "object", "description": "fields to set", "minProperties": 1},
    },
    "pageSectionId",
    "content",
)
DELETE_PAGE_SECTION_SCHEMA = make_object_schema({"pageSectionId": _TEXT, "confirmed": _CONFIRMED}, "pageSectionId")
DELETE_PAGE_SECTIONS_SCHEMA = make_object_schema(
    {
        "pageSectionIds": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 50},
        "pageId": _TEXT,
        "confirmed": _CONFIRMED,
    },
    "pageSectionIds",
)
_COVER: Schema = {
    "type": "object",
    "description": "image reference",
    "properties": {"url": _TEXT, "alt": _TEXT},
    "required": ["url", "alt"],
}
_POST_CONTENT: Schema = {
    "body": {"type": "string", "description": "markdown"},
    "cover": _COVER,
    "tags": {"type": "array", "items": _TEXT},
}
_POST_FACTS: Schema = {"author": _TEXT, "excerpt": _TEXT, "featuredImage": _TEXT, "category": _TEXT}
GET_POSTS_SCHEMA = make_object_schema(
    {
        "collectionSlug": _TEXT,
        "status": {"type": "string", "enum": ["draft", "published", "archived", "all"], "default": "published"},
        "category": _TEXT,
        "localeCode": _LOCALE,
    },
    "collectionSlug",
)
GET_POST_SCHEMA = make_object_schema({"postSlug": _TEXT, "localeCode": _LOCALE}, "postSlug")
CREATE_POST_SCHEMA = make_object_schema(
    {
        "collectionSlug": _TEXT,
        "slug": _SLUG,
        "title": _TEXT,
        "content": {"type": "object", "properties": _POST_CONTENT, "required": ["body"]},
        **_POST_FACTS,
        "localeCode": _LOCALE,
    },
    "collectionSlug",
    "slug",
    "title",
    "content",
)
UPDATE_POST_SCHEMA = make_object_schema(
    {
        "postSlug": _TEXT,
        "updates": {
            "type": "object",
            "minProperties": 1,
            "properties": {
                "title": _TEXT,
                **_POST_FACTS,
                "content": {"type": "object", "properties": _POST_CONTENT},
            },
        },
        "localeCode": _LOCALE,
    },
    "postSlug",
    "updates",
)
CHANGE_POST_STATUS_SCHEMA = make_object_schema({"postSlug": _TEXT, "confirmed": _CONFIRMED}, "postSlug")
_LOCATION: Schema = {"type": "string", "enum": ["header", "footer", "both"]}
ADD_NAVIGATION_ITEM_SCHEMA = make_object_schema(
    {
        "label": _TEXT,
        "href": {"type": "string", "description": "page links: /pages/<slug>?locale=en"},
        "location": _LOCATION,
    },
    "label",
    "href",
    "location",
)
UPDATE_NAVIGATION_ITEM_SCHEMA = make_object_schema(
    {
        "label": {"type": "string", "description": "current label"},
        "newLabel": _TEXT,
        "newHref": _TEXT,
        "newLocation": _LOCATION,
        "visible": {"type": "boolean"},
    },
    "label",
)
TOGGLE_NAVIGATION_ITEM_SCHEMA = make_object_schema({"label": _TEXT}, "label")
REMOVE_NAVIGATION_ITEM_SCHEMA = make_object_schema({"label": _TEXT, "confirmed": _CONFIRMED}, "label")
UPDATE_SITE_SETTINGS_SCHEMA = make_object_schema(
    {"settings": {"type": "object", "description": "keys to set; null removes", "minProperties": 1}}, "settings"
)
GET_SITE_SETTING_SCHEMA = make_object_schema({"key": _TEXT}, "key")
ANALYZE_TASK_SCHEMA = make_object_schema({"userRequest": _TEXT, "context": {"type": "object"}}, "userRequest")
