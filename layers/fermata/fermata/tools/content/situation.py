"""A few lines about what the user has open in the content workspace."""

import json
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from fermata.tools.content.snapshot import ActiveDocument, Collection, CurrentUser, SchemaField, Workspace
from fermata.tools.lines import few, one_line
from fermata.tools.names import Names

MOST_COLLECTIONS, MOST_FIELDS, MOST_OPTIONS = 50, 60, 12
LONGEST_TEXT, LONGEST_VALUE = 200, 120
_LONG = frozenset({"body", "richText", "longText"})
"""Types, or ids, of fields that hold whole texts."""


def situation(snapshot: Any, names: Names) -> str:
    """A snapshot that cannot be read is replaced by an empty one; the turn goes on."""
    try:
        workspace = Workspace.read(snapshot)
    except ValidationError:
        workspace = Workspace()
    return "\n".join(_lines(workspace))


def _lines(workspace: Workspace) -> Iterable[str]:
    yield f"User: {_user(workspace.current_user)}"
    shown = [_collection(collection) for collection in workspace.collections]
    yield f"Collections: [{few(shown, MOST_COLLECTIONS)}]"
    yield f"Active collection: {_active(workspace)}"
    document = workspace.active_document
    yield f"Active document: {_document(document) if document else 'none'}"
    if document:
        yield from _fields(document)


def _user(user: CurrentUser) -> str:
    """Name and id are all a tool can need; the address stays here."""
    return f"{one_line(user.display_name)} ({one_line(user.id)})" if user.id else one_line(user.display_name)


def _collection(collection: Collection) -> str:
    label = one_line(collection.label or collection.slug or collection.id)
    about = [one_line(collection.slug), one_line(collection.kind), f"{collection.doc_count} documents"]
    return f'{one_line(collection.id)}="{label}" ({", ".join(part for part in about if part)})'


def _active(workspace: Workspace) -> str:
    found = [one for one in workspace.collections if one.id == workspace.active_table_id]
    return _collection(found[0]) if found else one_line(workspace.active_table_id or "") or "none"


def _document(document: ActiveDocument) -> str:
    facts = {
        "collection": document.table_id,
        "slug": document.slug,
        "status": document.status,
        "author": document.author_user_id,
        "updated": document.updated_at,
    }
    told = [f"{name} {one_line(value)}" for name, value in facts.items() if value]
    return f'{one_line(document.id)}="{one_line(document.title)}" ({", ".join(told)})'


def _fields(document: ActiveDocument) -> Iterable[str]:
    """One line for each field of the schema, and for whatever else the document holds."""
    known = {field.id: field for field in document.schema_}
    others = [SchemaField(id=name, type="") for name in document.fields if name not in known]
    fields = [*document.schema_, *others]
    for field in fields[:MOST_FIELDS]:
        yield f"- {_field(field)}: {_value(field, document.fields.get(field.id))}"
    if len(fields) > MOST_FIELDS:
        yield f"- +{len(fields) - MOST_FIELDS} more fields"


def _field(field: SchemaField) -> str:
    marks = [_type(field), "required" if field.required else ""]
    told = ", ".join(mark for mark in marks if mark)
    return one_line(field.id) + (f" ({told})" if told else "")


def _type(field: SchemaField) -> str:
    choices = [one_line(str(option.get("value", option.get("id", "")))) for option in field.options]
    of = f": {few(choices, MOST_OPTIONS)}" if choices else ""
    to = f" to {one_line(field.target_table_slug)}" if field.target_table_slug else ""
    return f"{one_line(field.type)}{to}{of}"


def _value(field: SchemaField, value: Any) -> str:
    if value is None or value in ("", [], {}):
        return "(empty)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    is_long = field.type in _LONG or field.id in _LONG
    return one_line(text, LONGEST_TEXT if is_long else LONGEST_VALUE)
