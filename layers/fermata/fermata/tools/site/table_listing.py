"""Describe a tenant's data tables to the model: as targets of templates, and as sources of loops."""

from collections.abc import Sequence
from typing import Any

from fermata.tools.data_table_models import POST_TYPE_KIND, RELATION_FIELD_TYPE, DataField, DataTable
from fermata.tools.site.loop_sources import LOOP_USAGE, describe_loop_sources, describe_row_fields, format_entry_token

_TOKEN_FORMATS = {"richText": "html", "url": "url", "media": "media"}
"""The format in which a token of a field type is inserted; any other type is plain text."""


def describe_post_types(tables: Sequence[DataTable]) -> dict[str, Any]:
    """Describe the tables that a template can be for: those whose rows have pages."""
    return {"postTypes": [_describe_post_type(table) for table in tables if table.is_routable]}


def _describe_post_type(table: DataTable) -> dict[str, Any]:
    return {"slug": table.slug, "label": table.label, "routeBase": table.route_base.strip(), "kind": table.kind}


def describe_table_loop_sources(tables: Sequence[DataTable]) -> dict[str, Any]:
    """Describe how a loop is written, what it can repeat over, and the tokens of each table's rows."""
    table_ids = frozenset(table.id for table in tables)
    return {
        "usage": LOOP_USAGE,
        "sources": describe_loop_sources((table.id, table.label) for table in tables),
        "dataTables": [_describe_table(table, table_ids) for table in tables],
    }


def _describe_table(table: DataTable, table_ids: frozenset[str]) -> dict[str, Any]:
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
        "fields": _describe_fields(table, table_ids),
    }


def _describe_fields(table: DataTable, table_ids: frozenset[str]) -> list[dict[str, Any]]:
    """Describe the fields of a table, then those that every row has.

    A field that every row has replaces one of the same id, at its position.
    """
    table_fields = [
        _describe_field(field)
        for field in table.fields
        if field.type != RELATION_FIELD_TYPE or field.target_table_id in table_ids
    ]
    return list({field["id"]: field for field in [*table_fields, *describe_row_fields()]}.values())


def _describe_field(field: DataField) -> dict[str, Any]:
    description = {"id": field.id, "label": field.label, "token": format_entry_token(field.id), "type": field.type}
    if field.type in _TOKEN_FORMATS:
        description["format"] = _TOKEN_FORMATS[field.type]
    return description
