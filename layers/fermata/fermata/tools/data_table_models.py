"""Model a tenant's data tables (collections) and their fields, as content systems and snapshots describe them."""

from typing import Any

from fermata.tools.lenient_models import LenientModel

POST_TYPE_KIND = "postType"
RELATION_FIELD_TYPE = "relation"


class EditorField(LenientModel):
    """A field as editors describe it. `type` is theirs: text, longText, richText, number, select, url, media, …"""

    id: str
    label: str = ""
    type: str = "text"
    required: bool = False
    built_in: bool = False
    options: tuple[dict[str, Any], ...] = ()
    media_kind: str | None = None
    allow_multiple: bool | None = None


class DataField(EditorField):
    """A field of a table."""

    target_table_id: str | None = None
    """The table whose rows a relation points to."""


class DataTable(LenientModel):
    """A table. `kind` is the editor's: rows of `postType` and `page` have a publishing workflow."""

    id: str
    slug: str
    name: str = ""
    kind: str = "data"
    singular_label: str = ""
    plural_label: str = ""
    primary_field_id: str | None = None
    route_base: str = ""
    row_count: int = 0
    fields: tuple[DataField, ...] = ()

    @property
    def is_routable(self) -> bool:
        """Whether each row has a page of its own."""
        return bool(self.route_base.strip())

    @property
    def label(self) -> str:
        """The name to show for the table."""
        return self.plural_label or self.name
