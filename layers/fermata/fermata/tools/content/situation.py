"""A few lines about what the user has open in the content workspace."""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from fermata.tools.content.snapshot import ActiveDocument, Collection, CollectionField, ContentWorkspace, CurrentUser
from fermata.tools.prompt_text import join_first_items, to_single_line
from fermata.tools.tool_names import ToolNaming

_MAX_COLLECTIONS, _MAX_FIELDS, _MAX_OPTIONS = 50, 60, 12
_MAX_LONG_VALUE_CHARS, _MAX_VALUE_CHARS = 200, 120
_LONG = frozenset({"body", "richText", "longText"})
"""Types, or ids, of fields that hold whole texts."""


def situation(snapshot: Any, naming: ToolNaming) -> str:
    """A snapshot that cannot be read is replaced by an empty one; the turn goes on."""
    try:
        workspace = ContentWorkspace.from_wire(snapshot)
    except ValidationError:
        workspace = ContentWorkspace()
    return "\n".join(_lines(workspace))


def _lines(workspace: ContentWorkspace) -> Iterable[str]:
    yield f"User: {_user(workspace.current_user)}"
    shown = [_collection(collection) for collection in workspace.collections]
    yield f"Collections: [{join_first_items(shown, _MAX_COLLECTIONS)}]"
    yield f"Active collection: {_active(workspace)}"
    document = workspace.active_document
    yield f"Active document: {_document(document) if document else 'none'}"
    if document:
        yield from _fields(document)


def _user(user: CurrentUser) -> str:
    """Name and id are all a tool can need; the address stays here."""
    return (
        f"{to_single_line(user.display_name)} ({to_single_line(user.id)})"
        if user.id
        else to_single_line(user.display_name)
    )


def _collection(collection: Collection) -> str:
    label = to_single_line(collection.label or collection.slug or collection.id)
    about = [to_single_line(collection.slug), to_single_line(collection.kind), f"{collection.doc_count} documents"]
    return f'{to_single_line(collection.id)}="{label}" ({", ".join(part for part in about if part)})'


def _active(workspace: ContentWorkspace) -> str:
    found = [one for one in workspace.collections if one.id == workspace.active_table_id]
    return _collection(found[0]) if found else to_single_line(workspace.active_table_id or "") or "none"


def _document(document: ActiveDocument) -> str:
    facts = {
        "collection": document.table_id,
        "slug": document.slug,
        "status": document.status,
        "author": document.author_user_id,
        "updated": document.updated_at,
    }
    told = [f"{name} {to_single_line(value)}" for name, value in facts.items() if value]
    return f'{to_single_line(document.id)}="{to_single_line(document.title)}" ({", ".join(told)})'


def _fields(document: ActiveDocument) -> Iterable[str]:
    """One line for each field of the schema, and for whatever else the document holds."""
    known = {field.id: field for field in document.schema_}
    others = [CollectionField(id=name, type="") for name in document.fields if name not in known]
    fields = [*document.schema_, *others]
    for field in fields[:_MAX_FIELDS]:
        yield f"- {_field(field)}: {_value(field, document.fields.get(field.id))}"
    if len(fields) > _MAX_FIELDS:
        yield f"- +{len(fields) - _MAX_FIELDS} more fields"


def _field(field: CollectionField) -> str:
    marks = [_type(field), "required" if field.required else ""]
    told = ", ".join(mark for mark in marks if mark)
    return to_single_line(field.id) + (f" ({told})" if told else "")


def _type(field: CollectionField) -> str:
    choices = [to_single_line(str(option.get("value", option.get("id", "")))) for option in field.options]
    of = f": {join_first_items(choices, _MAX_OPTIONS)}" if choices else ""
    to = f" to {to_single_line(field.target_table_slug)}" if field.target_table_slug else ""
    return f"{to_single_line(field.type)}{to}{of}"


def _value(field: CollectionField, value: Any) -> str:
    if value is None or value in ("", [], {}):
        return "(empty)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    is_long = field.type in _LONG or field.id in _LONG
    return to_single_line(text, _MAX_LONG_VALUE_CHARS if is_long else _MAX_VALUE_CHARS)
