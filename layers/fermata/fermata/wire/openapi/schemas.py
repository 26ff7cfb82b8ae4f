"""Build the JSON Schemas of request bodies as they are read, and of response bodies and events as they are written."""

from collections.abc import Iterable
from functools import reduce
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from fermata.domain.events import EVENT_CLASSES

JsonObject = dict[str, Any]
OPENAPI_DOCUMENT_SCHEMA: JsonObject = {"type": "object", "required": ["openapi", "info", "paths"]}
_REFERENCE_PREFIX = "#/components/schemas/"
_SEQ_SCHEMA: JsonObject = {
    "type": "integer",
    "minimum": 0,
    "description": "The number of this event; numbers rise, with gaps.",
}


def schema_reference(name: str) -> JsonObject:
    return {"$ref": f"{_REFERENCE_PREFIX}{name}"}


def request_body_schemas(models: Iterable[type[BaseModel]]) -> dict[str, JsonObject]:
    """Return the schemas of request bodies, and of the models they contain, by name."""
    return _generate_schemas(models, "validation")


def response_schemas(models: Iterable[type[BaseModel]]) -> dict[str, JsonObject]:
    """Return the schemas of response bodies, and of the models they contain, by name."""
    return {name: _as_written(schema) for name, schema in _generate_schemas(models, "serialization").items()}


def stream_event_schemas() -> dict[str, JsonObject]:
    """Return the schema `StreamLine` of a line of a turn's stream, and those of the events and what they contain."""
    models = [model for model in EVENT_CLASSES.values() if model.visible_to]
    schemas = {name: _as_written(schema) for name, schema in _generate_schemas(models, "serialization").items()}
    for model in models:
        schemas[model.__name__] = _with_seq(schemas[model.__name__])
        schemas[model.__name__]["required"] += model.members_kept_when_null
    references = {
        event_type: schema_reference(model.__name__) for event_type, model in EVENT_CLASSES.items() if model in models
    }
    line = {
        "description": "One line. Empty lines only keep the connection alive. Skip types you do not know.",
        "oneOf": list(references.values()),
        "discriminator": {
            "propertyName": "type",
            "mapping": {event_type: reference["$ref"] for event_type, reference in references.items()},
        },
    }
    return {"StreamLine": line, **schemas}


def _generate_schemas(
    models: Iterable[type[BaseModel]], mode: Literal["validation", "serialization"]
) -> dict[str, JsonObject]:
    _, schema = models_json_schema([(model, mode) for model in models], ref_template=_REFERENCE_PREFIX + "{model}")
    definitions: dict[str, JsonObject] = schema.get("$defs", {})
    return {name: _without_titles(definition) for name, definition in definitions.items()}


def _without_titles(schema: Any) -> Any:
    """Remove the titles that pydantic makes of names. A property that is named `title` stays."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _without_titles(part) for name, part in value.items()}
        if key == "properties"
        else _without_titles(value)
        for key, value in schema.items()
        if key != "title"
    }


def _as_written(schema: JsonObject) -> JsonObject:
    """Describe a model as it is written: a property whose default is null is left out instead; others are required."""
    properties = schema.get("properties", {})
    optional = {name for name, member in properties.items() if member.get("default", ...) is None}
    written = {
        name: _not_null(member) if name in optional else _without_default(member) for name, member in properties.items()
    }
    required = [name for name in properties if name not in optional]
    return schema | ({"properties": written, "required": required} if properties else {})


def _without_default(member: JsonObject) -> JsonObject:
    return {key: value for key, value in member.items() if key != "default"}


def _not_null(member: JsonObject) -> JsonObject:
    choices = [choice for choice in member.get("anyOf", []) if choice != {"type": "null"}]
    if len(choices) != 1:
        return _without_default(member)
    other_keys = {key: value for key, value in member.items() if key not in ("default", "anyOf")}
    return reduce(lambda left, right: left | right, choices, other_keys)


def _with_seq(schema: JsonObject) -> JsonObject:
    properties = schema["properties"] | {"seq": _SEQ_SCHEMA}
    return schema | {"properties": properties, "required": [*schema["required"], "seq"]}
