"""Read the parts of the content workspace's snapshot that tools need.

The editor posts the snapshot unvalidated; unknown members are ignored.
"""

from typing import Any

from pydantic import Field, ValidationError

from fermata.tools.data_table_models import EditorField
from fermata.tools.lenient_models import LenientModel


class Collection(LenientModel):
    """A collection, as the editor lists it."""

    id: str
    slug: str = ""
    label: str = ""
    kind: str = ""
    doc_count: int = 0


class CollectionField(EditorField):
    """A field of the open document's collection. A relation names its target by slug."""

    target_table_slug: str | None = None


class ActiveDocument(LenientModel):
    """The document that the user has open, with changes that are not saved yet."""

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
    """The user of the editor."""

    id: str = ""
    display_name: str = "Anonymous"
    email: str = ""


class ContentWorkspace(LenientModel):
    """What the content workspace shows now."""

    collections: tuple[Collection, ...] = ()
    active_table_id: str | None = None
    active_document: ActiveDocument | None = None
    current_user: CurrentUser = Field(default_factory=CurrentUser)


class CollectionsPart(LenientModel):
    """The part that `read_collections` needs."""

    collections: tuple[Collection, ...] = ()


class ActiveDocumentPart(LenientModel):
    """The part that `read_active_document` needs."""

    active_document: ActiveDocument | None = None


def read_active_document(snapshot: Any, document_id: str = "") -> ActiveDocument | None:
    """Read the open document.

    Args:
        snapshot: The raw snapshot.
        document_id: Return the open document only if it has this id; an empty text accepts any.

    Returns:
        The document, or None if none is open, it is another one, or the snapshot cannot be read.
    """
    try:
        document = ActiveDocumentPart.from_wire(snapshot).active_document
    except ValidationError:
        return None
    return document if document and document_id in ("", document.id) else None


def read_collections(snapshot: Any) -> tuple[Collection, ...]:
    """Read the collections that the editor lists; none if the snapshot cannot be read."""
    try:
        return CollectionsPart.from_wire(snapshot).collections
    except ValidationError:
        return ()
