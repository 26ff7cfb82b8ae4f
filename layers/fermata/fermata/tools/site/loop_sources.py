"""Describe what a loop can repeat over: the editor's three built-in sources (decision 0104)."""

from collections.abc import Iterable
from typing import Any

LOOP_USAGE = {
    "loopElement": '<instatic-loop data-source-id="SOURCE" data-table-id="TABLE, for data.rows only" '
    'data-order-by="ORDER" data-direction="asc or desc" data-limit="NUMBER">one item’s HTML</instatic-loop>',
    "tokenSyntax": "{currentEntry.FIELD} inside the loop, in text and in attributes: one brace on each side.",
    "invalidTokenSyntax": "{{FIELD}}, {{post.FIELD}} and ${FIELD} stay on the page as they are written.",
}

ROWS_SOURCE_ID = "data.rows"

LOOP_SOURCES: tuple[dict[str, Any], ...] = (
    {
        "id": ROWS_SOURCE_ID,
        "label": "Data rows",
        "description": "Published rows of one data table; a table that keeps no versions gives all its rows.",
        "fields": {
            "slug": "Slug",
            "title": "Title",
            "authorName": "Author name",
            "authorRoleName": "Author role",
            "body": ("Body", "html"),
            "featuredMedia": ("Featured media", "media"),
            "firstImage": ("First image of the body", "media"),
            "seoTitle": "SEO title",
            "seoDescription": "SEO description",
            "permalink": ("Permalink", "url"),
            "publishedAt": "Published at",
            "publishedByName": "Published by",
            "publishedByRoleName": "Publisher role",
            "createdAt": "Created at",
            "updatedAt": "Updated at",
        },
        "filters": {"tableId": {"type": "select", "label": "Table", "options": []}},
        "orders": {
            "publishedAt": "Published at",
            "createdAt": "Created at",
            "updatedAt": "Updated at",
            "slug": "Slug",
        },
    },
    {
        "id": "site.pages",
        "label": "Site pages",
        "description": "The pages of the site, for menus and overviews.",
        "fields": {"title": "Title", "slug": "Slug", "permalink": ("Permalink", "url")},
        "filters": {
            "excludeTemplates": {"type": "toggle", "label": "Without templates"},
            "templateOnly": {"type": "toggle", "label": "Templates only"},
        },
        "orders": {"definition": "Order of the site", "title": "Title", "slug": "Slug"},
    },
    {
        "id": "site.media",
        "label": "Media library",
        "description": "Uploaded files, all of them or those of one kind.",
        "fields": {
            "filename": "Filename",
            "path": ("Path", "url"),
            "url": ("URL", "url"),
            "src": ("Source", "media"),
            "mimeType": "MIME type",
            "createdAt": "Uploaded at",
        },
        "filters": {
            "mimePrefix": {
                "type": "select",
                "label": "Kind",
                "options": [
                    {"label": "All", "value": ""},
                    {"label": "Images", "value": "image/"},
                    {"label": "Videos", "value": "video/"},
                    {"label": "Audio", "value": "audio/"},
                ],
            },
        },
        "orders": {"createdAt": "Uploaded at", "filename": "Filename"},
    },
)
"""No source depends on the request or the visitor. A field is its label, or its label and the format of its token."""


def describe_loop_sources(table_ids: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Describe all sources.

    Args:
        table_ids: (id, label) of each table that a loop over rows can choose.
    """
    tables = [{"label": label, "value": table_id} for table_id, label in table_ids]
    return [_describe_source(source, tables) for source in LOOP_SOURCES]


def describe_row_fields() -> list[dict[str, Any]]:
    """Describe the fields that the rows of every table have."""
    (rows,) = [source for source in LOOP_SOURCES if source["id"] == ROWS_SOURCE_ID]
    return _describe_fields(rows["fields"])


def format_entry_token(field_id: str) -> str:
    return f"{{currentEntry.{field_id}}}"


def _describe_source(source: dict[str, Any], tables: list[dict[str, str]]) -> dict[str, Any]:
    filters = source["filters"]
    if source["id"] == ROWS_SOURCE_ID:
        filters = {"tableId": {**filters["tableId"], "options": tables}}
    return {
        **{member: source[member] for member in ("id", "label", "description")},
        "requestDependent": False,
        "perVisitor": False,
        "fields": _describe_fields(source["fields"]),
        "filterSchema": filters,
        "orderByOptions": [{"id": order, "label": label} for order, label in source["orders"].items()],
    }


def _describe_fields(fields: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        _describe_field(field_id, *([value] if isinstance(value, str) else value)) for field_id, value in fields.items()
    ]


def _describe_field(field_id: str, label: str, format_: str = "") -> dict[str, Any]:
    field = {"id": field_id, "label": label, "token": format_entry_token(field_id)}
    return {**field, "format": format_} if format_ else field
