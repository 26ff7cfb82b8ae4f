"""Handle the tools that list collections and describe the fields of one collection."""

from typing import Any

from fermata.tools.content.server_tools import GetCollectionSchemaInput
from fermata.tools.content.snapshot import Collection, CollectionField, read_active_document, read_collections
from fermata.tools.data_table_models import RELATION_FIELD_TYPE, DataField, DataTable, EditorField
from fermata.tools.host_queries import load_data_tables, missing_host_failure, read_snapshot_tables
from fermata.tools.tool import NoInput, ToolContext, ToolFailure

CONTENT_TABLE_KINDS = ("postType", "page")
"""Kinds of tables whose rows are content. The other tables belong to other workspaces."""
_CHOICE_FIELD_TYPES = ("select", "multiSelect")


def list_collections(_tool_input: NoInput, context: ToolContext) -> dict[str, Any]:
    if _has_only_editor_collections(context):
        collections = read_collections(context.snapshot)
        if not collections:
            raise missing_host_failure(context, "The collections")
        return {"collections": [_describe_editor_collection(collection) for collection in collections]}
    return {"collections": [_describe_table(table) for table in filter_content_tables(load_data_tables(context))]}


def get_collection_schema(tool_input: GetCollectionSchemaInput, context: ToolContext) -> dict[str, Any]:
    if _has_only_editor_collections(context):
        return {"collection": _describe_open_collection(tool_input.table_id, context)}
    table = next((table for table in load_data_tables(context) if table.id == tool_input.table_id), None)
    if table is None:
        raise collection_not_found(tool_input.table_id)
    return {"collection": {**_describe_table(table), "fields": [_describe_field(field) for field in table.fields]}}


def has_listed_collections(snapshot: Any) -> bool:
    """Return whether a snapshot alone says which collections there are."""
    return bool(read_snapshot_tables(snapshot) or read_collections(snapshot))


def has_described_collection(snapshot: Any) -> bool:
    """Return whether a snapshot alone has the fields of any collection."""
    return bool(read_snapshot_tables(snapshot)) or read_active_document(snapshot) is not None


def filter_content_tables(tables: tuple[DataTable, ...]) -> list[DataTable]:
    return [table for table in tables if table.kind in CONTENT_TABLE_KINDS]


def collection_not_found(table_id: str) -> ToolFailure:
    return ToolFailure(f"Collection {table_id} not found.")


def _has_only_editor_collections(context: ToolContext) -> bool:
    """Return whether neither a content system nor the snapshot has data tables, so that only the editor's list is left.

    The editor lists the collections of its sidebar, and the fields of the open document's collection.
    """
    return context.open_host() is None and not read_snapshot_tables(context.snapshot)


def _describe_open_collection(table_id: str, context: ToolContext) -> dict[str, Any]:
    collections = {collection.id: collection for collection in read_collections(context.snapshot)}
    document = read_active_document(context.snapshot)
    if document is not None and document.table_id == table_id:
        collection = collections.get(table_id) or Collection(id=table_id)
        ids_by_slug = {other.slug: other.id for other in collections.values()}
        fields = [_describe_field(_to_data_field(field, ids_by_slug)) for field in document.schema_]
        return {**_describe_editor_collection(collection), "fields": fields}
    if collections and table_id not in collections:
        raise collection_not_found(table_id)
    raise missing_host_failure(context, "The fields of a collection that is not open")


def _describe_table(table: DataTable) -> dict[str, Any]:
    return {
        "id": table.id,
        "slug": table.slug,
        "label": table.label,
        "kind": table.kind,
        "rowCount": table.row_count,
        "primaryFieldId": table.primary_field_id,
    }


def _describe_editor_collection(collection: Collection) -> dict[str, Any]:
    """Describe a collection as the editor lists it; the editor does not post the primary field."""
    return {
        "id": collection.id,
        "slug": collection.slug,
        "label": collection.label or collection.slug,
        "kind": collection.kind,
        "rowCount": collection.doc_count,
        "primaryFieldId": None,
    }


def _describe_field(field: DataField) -> dict[str, Any]:
    description: dict[str, Any] = {
        "id": field.id,
        "label": field.label,
        "type": field.type,
        "required": field.required,
        "builtIn": field.built_in,
    }
    if field.type in _CHOICE_FIELD_TYPES:
        description["options"] = [_describe_choice(option) for option in field.options]
    if field.type == "media" and field.media_kind is not None:
        description["mediaKind"] = field.media_kind
    if field.type == RELATION_FIELD_TYPE:
        description["targetTableId"] = field.target_table_id
    if field.type in ("media", RELATION_FIELD_TYPE):
        description["allowMultiple"] = bool(field.allow_multiple)
    return description


def _describe_choice(option: dict[str, Any]) -> dict[str, Any]:
    """Describe the value that is written into the field (some editors call it `id`) and the label that people read."""
    value = option.get("value", option.get("id"))
    return {"value": value, "label": option.get("label", value)}


def _to_data_field(field: CollectionField, ids_by_slug: dict[str, str]) -> DataField:
    """Convert a field of the snapshot, where a relation names its target by slug."""
    shared = {name: getattr(field, name) for name in EditorField.model_fields}
    return DataField(**shared, target_table_id=ids_by_slug.get(field.target_table_slug or ""))
