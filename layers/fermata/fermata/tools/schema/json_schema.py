"""Build the JSON Schema of a pydantic model in the plain style that every provider accepts: one inlined object.

It has no titles, no `$defs` and no null (an optional member is omitted, never null). Unions
of literals are `anyOf` of constants; maps, and models that allow other members, have `patternProperties`.
`additionalProperties` is false for a model that forbids other members, and absent for all others.

The schema is read off the model's fields (decision 0101). `model_json_schema()` says the same, but builds every
validator first, which for a whole toolset takes longer than all other work before the first request of a turn.
"""

from collections.abc import Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

JsonSchema = dict[str, Any]
_EnclosingModels = tuple[type[BaseModel], ...]
"""The models that contain the current one, from the outermost."""

ANY_KEY_PATTERN = "^(.*)$"
_JSON_TYPES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
_ARRAY_TYPES = (list, tuple, set, frozenset, Sequence)
_LIMIT_KEYWORDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "pattern": "pattern",
}
_LENGTH_KEYWORDS = {"min_length": "min", "max_length": "max"}


@cache
def build_json_schema(model: type[BaseModel]) -> JsonSchema:
    """Build the schema of a tool input.

    Returns:
        The same object for every call with this model; it must not be changed.

    Raises:
        TypeError: A field has a type that plain JSON Schema cannot express, or the model contains itself.
    """
    return _build_object(model, ())


def _build_object(model: type[BaseModel], enclosing: _EnclosingModels) -> JsonSchema:
    """Build an object schema. Descriptions come from fields only: a docstring is for readers of the code."""
    if model in enclosing:
        raise TypeError(f"A tool input cannot contain itself: {model.__name__} would never end when inlined.")
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    schema: JsonSchema = {
        "type": "object",
        "properties": {name: _build_member(field, (*enclosing, model)) for name, field in fields.items()},
    }
    if model.model_config.get("extra") == "forbid":
        schema["additionalProperties"] = False
    if model.model_config.get("extra") == "allow":
        schema["patternProperties"] = {ANY_KEY_PATTERN: {}}
    required = [name for name, field in fields.items() if field.is_required()]
    return {**schema, "required": required} if required else schema


def _build_member(field: FieldInfo, enclosing: _EnclosingModels) -> JsonSchema:
    schema = _add_field_info(_build_type(field.annotation, enclosing), field)
    default = None if field.is_required() or field.default_factory else field.default
    if default is None:
        return schema
    return {**schema, "default": list(default) if isinstance(default, tuple) else default}


def _build_type(annotation: Any, enclosing: _EnclosingModels) -> JsonSchema:
    origin, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if origin is Annotated:
        return _build_annotated(arguments, enclosing)
    if origin in (Union, UnionType):
        return _build_union([_build_type(member, enclosing) for member in arguments if member is not NoneType])
    if origin is Literal:
        return _build_union([_build_constant(value) for value in arguments])
    if origin is dict:
        values = _build_type(arguments[1], enclosing) if arguments else {}
        return {"type": "object", "patternProperties": {ANY_KEY_PATTERN: values}}
    if origin in _ARRAY_TYPES:
        return _build_array(origin, arguments, enclosing)
    if annotation is Any:
        return {}
    return _build_class(annotation, enclosing)


def _build_annotated(arguments: tuple[Any, ...], enclosing: _EnclosingModels) -> JsonSchema:
    schema = _build_type(arguments[0], enclosing)
    for metadata in arguments[1:]:
        is_field = isinstance(metadata, FieldInfo)
        schema = _add_field_info(schema, metadata) if is_field else _add_limits(schema, metadata)
    return schema


def _build_array(origin: Any, arguments: tuple[Any, ...], enclosing: _EnclosingModels) -> JsonSchema:
    if origin is tuple and arguments[1:] != (...,):
        raise TypeError("A tool input cannot hold a tuple of fixed places; use a list or an object.")
    schema: JsonSchema = {"type": "array", "items": _build_type(arguments[0], enclosing) if arguments else {}}
    return {**schema, "uniqueItems": True} if origin in (set, frozenset) else schema


def _build_class(annotation: Any, enclosing: _EnclosingModels) -> JsonSchema:
    if annotation in _JSON_TYPES:
        return {"type": _JSON_TYPES[annotation]}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _build_object(annotation, enclosing)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _build_union([_build_constant(member.value) for member in annotation])
    raise TypeError(f"A tool input cannot hold a {annotation}: no plain JSON Schema says what that is.")


def _build_constant(value: Any) -> JsonSchema:
    return {"const": value, "type": _JSON_TYPES[type(value)]}


def _build_union(variants: list[JsonSchema]) -> JsonSchema:
    return variants[0] if len(variants) == 1 else {"anyOf": variants}


def _add_field_info(schema: JsonSchema, field: FieldInfo) -> JsonSchema:
    for metadata in field.metadata:
        schema = _add_limits(schema, metadata)
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    description = {"description": field.description} if field.description else {}
    return {**schema, **extra, **description}


def _add_limits(schema: JsonSchema, metadata: Any) -> JsonSchema:
    """Add the limits of one metadata object of pydantic. What else it holds is for the validator only."""
    unit = "Items" if schema.get("type") == "array" else "Length"
    limits = {keyword: getattr(metadata, name, None) for name, keyword in _LIMIT_KEYWORDS.items()}
    limits |= {keyword + unit: getattr(metadata, name, None) for name, keyword in _LENGTH_KEYWORDS.items()}
    return {**schema, **{keyword: limit for keyword, limit in limits.items() if limit is not None}}
