"""Sample answers of a small content system, and the workspace snapshot of one of its users."""

from typing import Any

TITLE = {"id": "title", "label": "Title", "type": "text", "required": True, "builtIn": True}
POSTS: dict[str, Any] = {
    "id": "t-posts",
    "slug": "posts",
    "name": "Post",
    "kind": "postType",
    "singularLabel": "Post",
    "pluralLabel": "Posts",
    "primaryFieldId": "title",
    "routeBase": "/blog",
    "rowCount": 3,
    "fields": [
        TITLE,
        {"id": "mood", "label": "Mood", "type": "select", "options": [{"id": "calm", "label": "Calm"}]},
        {"id": "cover", "label": "Cover", "type": "media", "mediaKind": "image"},
        {"id": "author", "label": "By", "type": "relation", "targetTableId": "t-people", "allowMultiple": True},
    ],
    "createdAt": "whatever else a system says of its tables is passed over",
}
PAGES = {"id": "t-pages", "slug": "pages", "name": "Page", "kind": "page", "rowCount": 1, "primaryFieldId": None}
PEOPLE = {"id": "t-people", "slug": "people", "name": "People", "kind": "data", "rowCount": 8, "fields": [TITLE]}
TABLES = {"tables": [POSTS, PAGES, PEOPLE]}

RYE: dict[str, Any] = {
    "id": "d-rye",
    "tableId": "t-posts",
    "title": "Rye",
    "slug": "rye",
    "status": "published",
    "authorUserId": "u-ada",
    "createdAt": "2026-01-01T08:00:00Z",
    "updatedAt": "2026-01-02T08:00:00Z",
    "publishedAt": "2026-01-02T08:00:00Z",
    "fields": {"title": "Rye", "body": "Dark and sour."},
    "deletedAt": None,
}
SPELT = {"id": "d-spelt", "tableId": "t-posts", "slug": "spelt", "status": "draft", "title": None}
LOST = {"id": "d-baker", "tableId": "t-people", "slug": "the-baker", "status": "draft"}

OPEN: dict[str, Any] = {
    "id": "d-rye",
    "tableId": "t-posts",
    "title": "Rye bread",
    "slug": "rye",
    "status": "draft",
    "fields": {"title": "Rye bread", "body": "Darker still."},
    "schema": [
        TITLE,
        {"id": "mood", "label": "Mood", "type": "select", "options": [{"value": "calm", "label": "Calm"}]},
        {"id": "author", "label": "By", "type": "relation", "targetTableSlug": "people"},
    ],
    "authorUserId": None,
    "updatedAt": "2026-01-02T08:00:00Z",
}
WORKSPACE: dict[str, Any] = {
    "collections": [
        {"id": "t-posts", "slug": "posts", "label": "Posts", "kind": "postType", "docCount": 3},
        {"id": "t-people", "slug": "people", "label": "", "kind": "data", "docCount": 8},
    ],
    "activeTableId": "t-posts",
    "activeDocument": OPEN,
    "currentUser": {"id": "u-ada", "displayName": "Ada", "email": "ada@bakery.example"},
}
