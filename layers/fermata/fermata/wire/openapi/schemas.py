"""JSON Schemas of everything that crosses the wire: bodies as they are read, answers and events as they are written."""

from collections.abc import Iterable
from functools import reduce
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from fermata.domain.events import EVENT_CLASSES
from fermata.wire.bodies import responses

JsonObject = dict[str, Any]
REF = "#/components/schemas/"
SEQ: JsonObject = {"type": "integer", "minimum": 0, "description": "The number of this event; numbers rise, with gaps."}
OPENAPI_DOCUMENT_SCHEMA: JsonObject = {"type": "object", "required": ["openapi", "info", "paths"]}


def schema_reference(name: str) -> JsonObject:
    return {"$ref": f"{REF}{name}"}


def request_body_schemas(models: Iterable[type[BaseModel]]) -> dict[str, JsonObject]:
    return _defined(models, REF + "{model}", "validation")


def response_schemas(names: Iterable[str]) -> dict[str, JsonObject]:
    """Schemas of classes in wire/bodies/responses.py, and of those they are made of."""
    models = [getattr(responses, name) for name in names]
    return {name: _as_written(schema) for name, schema in _defined(models, REF + "{model}", "serialization").items()}


def stream_event_schemas() -> dict[str, JsonObject]:
    """`StreamLine` is one line of a turn's stream; each event has a schema of its own, and so has what it carries."""
    models = [model for model in EVENT_CLASSES.values() if model.visible_to]
    found = _defined(models, REF + "{model}", "serialization")
    numbered = {model.__name__ for model in models}
    parts = {name: _as_written(schema) for name, schema in found.items() if name not in numbered}
    shown = {name: _numbered(_as_written(found[name])) for name in found if name in numbered}
    for model in models:
        shown[model.__name__]["required"] += model.always_written
    kinds = {schema["properties"]["type"]["const"]: f"{REF}{name}" for name, schema in shown.items()}
    line = {
        "description": "One line. Empty lines only keep the connection alive. Skip types you do not know.",
        "oneOf": [{"$ref": target} for target in kinds.values()],
        "discriminator": {"propertyName": "type", "mapping": kinds},
    }
    return {"StreamLine": line, **shown, **parts}


def _defined(models: Iterable[type[BaseModel]], template: str, mode: Any) -> dict[str, JsonObject]:
    _, whole = models_json_schema([(model, mode) for model in models], ref_template=template)
    defined: dict[str, JsonObject] = whole.get("$defs", {})
    return {name: _untitled(schema) for name, schema in defined.items()}


def _untitled(schema: Any) -> Any:
    """Without the titles pydantic makes of names; a member that is called `title` stays."""
    if isinstance(schema, list):
        return [_untitled(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _untitled(part) for name, part in value.items()} if key == "properties" else _untitled(value)
        for key, value in schema.items()
        if key != "title"
    }


def _as_written(schema: JsonObject) -> JsonObject:
    """What has a default is always written, unless that is null: then it is left out, and null is never seen."""
    members = schema.get("properties", {})
    absent = {name for name, member in members.items() if member.get("default", ...) is None}
    written = {name: _not_null(member) if name in absent else _plain(member) for name, member in members.items()}
    required = [name for name, member in members.items() if name not in absent]
    return schema | ({"properties": written, "required": required} if members else {})


def _plain(member: JsonObject) -> JsonObject:
    return {key: value for key, value in member.items() if key != "default"}


def _not_null(member: JsonObject) -> JsonObject:
    kinds = [kind for kind in member.get("anyOf", []) if kind != {"type": "null"}]
    rest = {key: value for key, value in member.items() if key not in ("default", "anyOf")}
    return reduce(lambda left, right: left | right, kinds, rest) if len(kinds) == 1 else _plain(member)


def _numbered(schema: JsonObject) -> JsonObject:
    properties = schema["properties"] | {"seq": SEQ}
    return schema | {"properties": properties, "required": [*schema["required"], "seq"]}
