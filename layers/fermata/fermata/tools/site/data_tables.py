"""The tenant's data tables as the site editor uses them: for templates, and for loops.

Where a tenant's tables come from is not known here. `post_types` and `loop_sources` are what the two tools answer.
"""

from collections.abc import Sequence
from typing import Any

from fermata.tools.site.loop_sources import LOOP_USAGE, describe_loop_sources, describe_row_fields, format_entry_token
from fermata.tools.site.snapshot import LenientModel

POST_TYPE_KIND = "postType"
RELATION_FIELD_TYPE = "relation"
_FORMATS = {"richText": "html", "url": "url", "media": "media"}
"""What a field of this type is bound as. Every other type is plain text."""


class DataField(LenientModel):
    """`type` is the editor's name of it: text, longText, richText, number, date, select, url, media, relation, …"""

    id: str
    label: str = ""
    type: str = "text"
    required: bool = False
    built_in: bool = False
    options: tuple[dict[str, Any], ...] = ()
    media_kind: str | None = None
    allow_multiple: bool | None = None
    target_table_id: str | None = None
    """For relations: whose rows it points to."""


class DataTable(LenientModel):
    """A collection. `kind` is the editor's: `postType` and `page` have a workflow, `data` is plain rows."""

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
        """Each of its rows has a page of its own."""
        return bool(self.route_base.strip())

    @property
    def label(self) -> str:
        return self.plural_label or self.name


def describe_post_types(tables: Sequence[DataTable]) -> dict[str, Any]:
    """The tables a template can be for."""
    return {"postTypes": [_post_type(table) for table in tables if table.is_routable]}


def _post_type(table: DataTable) -> dict[str, Any]:
    return {"slug": table.slug, "label": table.label, "routeBase": table.route_base.strip(), "kind": table.kind}


def describe_table_loop_sources(tables: Sequence[DataTable]) -> dict[str, Any]:
    """How a loop is written, what it can repeat over, and the tokens each table's rows have."""
    known = frozenset(table.id for table in tables)
    return {
        "usage": LOOP_USAGE,
        "sources": describe_loop_sources((table.id, table.label) for table in tables),
        "dataTables": [_table(table, known) for table in tables],
    }


def _table(table: DataTable, known: frozenset[str]) -> dict[str, Any]:
    return {
        "id": table.id,
        "slug": table.slug,
        "name": table.name,
        "kind": table.kind,
        "singularLabel": table.singular_label,
        "pluralLabel": table.plural_label,
        "primaryFieldId": table.primary_field_id,
        "routable": table.is_routable,
        "versioned": table.kind == POST_TYPE_KIND,
        "rowCount": table.row_count,
        "fields": _fields(table, known),
    }


def _fields(table: DataTable, known: frozenset[str]) -> list[dict[str, Any]]:
    """Its own fields, then those every row has; of one id the latter counts, at the place of the former."""
    own = [
        _field(field) for field in table.fields if field.type != RELATION_FIELD_TYPE or field.target_table_id in known
    ]
    return list({field["id"]: field for field in [*own, *describe_row_fields()]}.values())


def _field(field: DataField) -> dict[str, Any]:
    told = {"id": field.id, "label": field.label, "token": format_entry_token(field.id), "type": field.type}
    return {**told, "format": _FORMATS[field.type]} if field.type in _FORMATS else told
