"""Summarise in a few lines what the user has open in the content workspace: the part of the prompt that changes."""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from fermata.agents.shorten_prompt_lines import join_first_items, to_single_line
from fermata.tools.content.snapshot import ActiveDocument, Collection, CollectionField, ContentWorkspace, CurrentUser
from fermata.tools.tool_names import ToolNaming

_MAX_COLLECTIONS = 50
_MAX_FIELDS = 60
_MAX_OPTIONS = 12
_MAX_VALUE_CHARS = 120
_MAX_LONG_VALUE_CHARS = 200
_LONG_TEXT_FIELDS = frozenset({"body", "richText", "longText"})
"""Types, or ids, of fields that hold whole texts."""


def situation(snapshot: Any, naming: ToolNaming) -> str:
    """Summarise a snapshot. One that cannot be read counts as empty, so that the turn goes on."""
    try:
        workspace = ContentWorkspace.from_wire(snapshot)
    except ValidationError:
        workspace = ContentWorkspace()
    return "\n".join(_list_lines(workspace))


def _list_lines(workspace: ContentWorkspace) -> Iterable[str]:
    yield f"User: {_format_user(workspace.current_user)}"
    collections = [_format_collection(collection) for collection in workspace.collections]
    yield f"Collections: [{join_first_items(collections, _MAX_COLLECTIONS)}]"
    yield f"Active collection: {_format_active_collection(workspace)}"
    document = workspace.active_document
    yield f"Active document: {_format_document(document) if document else 'none'}"
    if document:
        yield from _list_fields(document)


def _format_user(user: CurrentUser) -> str:
    """Format name and id. The mail address is not sent to the model, because no tool needs it (decision 0100)."""
    name = to_single_line(user.display_name)
    return f"{name} ({to_single_line(user.id)})" if user.id else name


def _format_collection(collection: Collection) -> str:
    label = to_single_line(collection.label or collection.slug or collection.id)
    details = [to_single_line(collection.slug), to_single_line(collection.kind), f"{collection.doc_count} documents"]
    return f'{to_single_line(collection.id)}="{label}" ({", ".join(part for part in details if part)})'


def _format_active_collection(workspace: ContentWorkspace) -> str:
    for collection in workspace.collections:
        if collection.id == workspace.active_table_id:
            return _format_collection(collection)
    return to_single_line(workspace.active_table_id or "") or "none"


def _format_document(document: ActiveDocument) -> str:
    facts = {
        "collection": document.table_id,
        "slug": document.slug,
        "status": document.status,
        "author": document.author_user_id,
        "updated": document.updated_at,
    }
    details = [f"{name} {to_single_line(value)}" for name, value in facts.items() if value]
    return f'{to_single_line(document.id)}="{to_single_line(document.title)}" ({", ".join(details)})'


def _list_fields(document: ActiveDocument) -> Iterable[str]:
    """Yield a line for each field of the schema, and for each other value that the document holds."""
    schema_ids = {field.id for field in document.schema_}
    other_fields = [CollectionField(id=name, type="") for name in document.fields if name not in schema_ids]
    fields = [*document.schema_, *other_fields]
    for field in fields[:_MAX_FIELDS]:
        yield f"- {_format_field(field)}: {_format_value(field, document.fields.get(field.id))}"
    if len(fields) > _MAX_FIELDS:
        yield f"- +{len(fields) - _MAX_FIELDS} more fields"


def _format_field(field: CollectionField) -> str:
    marks = [_format_type(field), "required" if field.required else ""]
    details = ", ".join(mark for mark in marks if mark)
    return to_single_line(field.id) + (f" ({details})" if details else "")


def _format_type(field: CollectionField) -> str:
    choices = [to_single_line(str(option.get("value", option.get("id", "")))) for option in field.options]
    options = f": {join_first_items(choices, _MAX_OPTIONS)}" if choices else ""
    target = f" to {to_single_line(field.target_table_slug)}" if field.target_table_slug else ""
    return f"{to_single_line(field.type)}{target}{options}"


def _format_value(field: CollectionField, value: Any) -> str:
    if value is None or value in ("", [], {}):
        return "(empty)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    is_long = field.type in _LONG_TEXT_FIELDS or field.id in _LONG_TEXT_FIELDS
    return to_single_line(text, _MAX_LONG_VALUE_CHARS if is_long else _MAX_VALUE_CHARS)
