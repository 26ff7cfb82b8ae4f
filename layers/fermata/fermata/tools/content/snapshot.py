"""The parts of the content workspace's snapshot that we read. Nothing has checked it; everything else passes unseen."""

from typing import Any

from pydantic import Field, ValidationError

from fermata.tools.site.snapshot import LenientModel


class Collection(LenientModel):
    id: str
    slug: str = ""
    label: str = ""
    kind: str = ""
    doc_count: int = 0


class CollectionField(LenientModel):
    id: str
    label: str = ""
    type: str = "text"
    required: bool = False
    built_in: bool = False
    options: tuple[dict[str, Any], ...] = ()
    target_table_slug: str | None = None
    media_kind: str | None = None
    allow_multiple: bool | None = None


class ActiveDocument(LenientModel):
    """What the user has open, with changes that are not saved yet."""

    id: str
    table_id: str
    title: str = ""
    slug: str = ""
    status: str | None = None
    fields: dict[str, Any] = Field(default_factory=dict)
    schema_: tuple[CollectionField, ...] = Field(default=(), alias="schema")
    author_user_id: str | None = None
    updated_at: str | None = None


class CurrentUser(LenientModel):
    id: str = ""
    display_name: str = "Anonymous"
    email: str = ""


class ContentWorkspace(LenientModel):
    """What the content workspace shows right now."""

    collections: tuple[Collection, ...] = ()
    active_table_id: str | None = None
    active_document: ActiveDocument | None = None
    current_user: CurrentUser = Field(default_factory=CurrentUser)


class CollectionsPart(LenientModel):
    collections: tuple[Collection, ...] = ()


class ActiveDocumentPart(LenientModel):
    active_document: ActiveDocument | None = None


def read_active_document(snapshot: Any, document_id: str = "") -> ActiveDocument | None:
    """The document the user has open, if it is the one asked for; None also where the snapshot cannot be read."""
    try:
        found = ActiveDocumentPart.from_wire(snapshot).active_document
    except ValidationError:
        return None
    return found if found and document_id in ("", found.id) else None


def read_collections(snapshot: Any) -> tuple[Collection, ...]:
    try:
        return CollectionsPart.from_wire(snapshot).collections
    except ValidationError:
        return ()
