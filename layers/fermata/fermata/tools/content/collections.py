"""The collections of the content workspace, and the fields of one of them."""

from typing import Any

from fermata.tools.content.inputs import GetCollectionSchemaInput
from fermata.tools.content.snapshot import Collection, CollectionField, read_active_document, read_collections
from fermata.tools.host_queries import load_data_tables, missing_host_failure, read_snapshot_tables
from fermata.tools.site.data_tables import RELATION_FIELD_TYPE, DataField, DataTable
from fermata.tools.tool import NoInput, ToolContext, ToolFailure

CONTENT_TABLE_KINDS = ("postType", "page")
"""Kinds of tables whose rows are content; the others belong to other workspaces."""
_CHOICES = ("select", "multiSelect")


def list_collections(given: NoInput, context: ToolContext) -> dict[str, Any]:
    if _only_the_snapshot_knows(context):
        found = read_collections(context.snapshot)
        if not found:
            raise missing_host_failure(context, "The collections")
        return {"collections": [_seen(collection) for collection in found]}
    return {"collections": [_told(table) for table in filter_content_tables(load_data_tables(context))]}


def get_collection_schema(given: GetCollectionSchemaInput, context: ToolContext) -> dict[str, Any]:
    if _only_the_snapshot_knows(context):
        return {"collection": _open_schema(given.table_id, context)}
    table = next((table for table in load_data_tables(context) if table.id == given.table_id), None)
    if table is None:
        raise collection_not_found(given.table_id)
    return {"collection": {**_told(table), "fields": [_field(field) for field in table.fields]}}


def filter_content_tables(tables: tuple[DataTable, ...]) -> list[DataTable]:
    return [table for table in tables if table.kind in CONTENT_TABLE_KINDS]


def collection_not_found(table_id: str) -> ToolFailure:
    return ToolFailure(f"Collection {table_id} not found.")


def _only_the_snapshot_knows(context: ToolContext) -> bool:
    return context.host() is None and not read_snapshot_tables(context.snapshot)


def _open_schema(table_id: str, context: ToolContext) -> dict[str, Any]:
    """The editor shows the fields of the open document's collection only."""
    found = {collection.id: collection for collection in read_collections(context.snapshot)}
    document = read_active_document(context.snapshot)
    if document is not None and document.table_id == table_id:
        collection = found.get(table_id) or Collection(id=table_id)
        ids = {other.slug: other.id for other in found.values()}
        return {**_seen(collection), "fields": [_field(_stored(field, ids)) for field in document.schema_]}
    if found and table_id not in found:
        raise collection_not_found(table_id)
    raise missing_host_failure(context, "The fields of a collection that is not open")


def _told(table: DataTable) -> dict[str, Any]:
    return {
        "id": table.id,
        "slug": table.slug,
        "label": table.label,
        "kind": table.kind,
        "rowCount": table.row_count,
        "primaryFieldId": table.primary_field_id,
    }


def _seen(collection: Collection) -> dict[str, Any]:
    """As the editor lists it; which field names its rows is not said there."""
    return {
        "id": collection.id,
        "slug": collection.slug,
        "label": collection.label or collection.slug,
        "kind": collection.kind,
        "rowCount": collection.doc_count,
        "primaryFieldId": None,
    }


def _field(field: DataField) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": field.id,
        "label": field.label,
        "type": field.type,
        "required": field.required,
        "builtIn": field.built_in,
    }
    if field.type in _CHOICES:
        told["options"] = [_choice(option) for option in field.options]
    if field.type == "media" and field.media_kind is not None:
        told["mediaKind"] = field.media_kind
    if field.type == RELATION_FIELD_TYPE:
        told["targetTableId"] = field.target_table_id
    if field.type in ("media", RELATION_FIELD_TYPE):
        told["allowMultiple"] = bool(field.allow_multiple)
    return told


def _choice(option: dict[str, Any]) -> dict[str, Any]:
    """What is written into the field, which editors call its id, and what people read."""
    value = option.get("value", option.get("id"))
    return {"value": value, "label": option.get("label", value)}


def _stored(field: CollectionField, ids: dict[str, str]) -> DataField:
    """A field of the snapshot, which names a relation's target by its slug."""
    return DataField(
        id=field.id,
        label=field.label,
        type=field.type,
        required=field.required,
        built_in=field.built_in,
        options=field.options,
        target_table_id=ids.get(field.target_table_slug or ""),
        media_kind=field.media_kind,
        allow_multiple=field.allow_multiple,
    )
