"""JSON Schema of a pydantic model in the plain style every provider takes: one inlined object.

No titles, no `$defs`, no `additionalProperties`, literal unions as `anyOf` of constants, maps as `patternProperties`,
and no null: an optional member is left out, never sent empty.

It is read off the model's fields. Pydantic would say the same, but builds every validator first, and a whole toolset
of those takes longer than all else that happens before a turn's first request.
"""

from collections.abc import Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

JsonSchema = dict[str, Any]
EnclosingModels = tuple[type[BaseModel], ...]
"""The models around the one that is looked at."""

ANY_KEY_PATTERN = "^(.*)$"
_TYPES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}
_LISTS = (list, tuple, set, frozenset, Sequence)
_LIMITS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "pattern": "pattern",
}
_LENGTHS = {"min_length": "min", "max_length": "max"}


@cache
def build_json_schema(model: type[BaseModel]) -> JsonSchema:
    """The same object at every call: read it, do not write to it."""
    return _object(model, ())


def _object(model: type[BaseModel], inside: EnclosingModels) -> JsonSchema:
    """A model's docstring is for readers of the code; only a member's own description goes to the model."""
    if model in inside:
        raise TypeError(f"A tool input cannot contain itself: {model.__name__} would never end when inlined.")
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    plain: JsonSchema = {
        "type": "object",
        "properties": {name: _member(field, (*inside, model)) for name, field in fields.items()},
    }
    required = [name for name, field in fields.items() if field.is_required()]
    return {**plain, "required": required} if required else plain


def _member(field: FieldInfo, inside: EnclosingModels) -> JsonSchema:
    schema = _noted(_plain(field.annotation, inside), field)
    default = None if field.is_required() or field.default_factory else field.default
    if default is None:
        return schema
    return {**schema, "default": list(default) if isinstance(default, tuple) else default}


def _plain(told: Any, inside: EnclosingModels) -> JsonSchema:
    kind, parts = get_origin(told) or told, get_args(told)
    if kind is Annotated:
        return _annotated(parts, inside)
    if kind in (Union, UnionType):
        return _union([_plain(part, inside) for part in parts if part is not NoneType])
    if kind is Literal:
        return _union([_constant(value) for value in parts])
    if kind is dict:
        return {"type": "object", "patternProperties": {ANY_KEY_PATTERN: _plain(parts[1], inside) if parts else {}}}
    if kind in _LISTS:
        return _list(kind, parts, inside)
    if told is Any:
        return {}
    return _named(told, inside)


def _annotated(parts: tuple[Any, ...], inside: EnclosingModels) -> JsonSchema:
    schema = _plain(parts[0], inside)
    for note in parts[1:]:
        schema = _noted(schema, note) if isinstance(note, FieldInfo) else _limited(schema, note)
    return schema


def _list(kind: Any, parts: tuple[Any, ...], inside: EnclosingModels) -> JsonSchema:
    if kind is tuple and parts[1:] != (...,):
        raise TypeError("A tool input cannot hold a tuple of fixed places; use a list or an object.")
    schema: JsonSchema = {"type": "array", "items": _plain(parts[0], inside) if parts else {}}
    return {**schema, "uniqueItems": True} if kind in (set, frozenset) else schema


def _named(told: Any, inside: EnclosingModels) -> JsonSchema:
    if told in _TYPES:
        return {"type": _TYPES[told]}
    if isinstance(told, type) and issubclass(told, BaseModel):
        return _object(told, inside)
    if isinstance(told, type) and issubclass(told, Enum):
        return _union([_constant(one.value) for one in told])
    raise TypeError(f"A tool input cannot hold a {told}: no plain JSON Schema says what that is.")


def _constant(value: Any) -> JsonSchema:
    return {"const": value, "type": _TYPES[type(value)]}


def _union(variants: list[JsonSchema]) -> JsonSchema:
    return variants[0] if len(variants) == 1 else {"anyOf": variants}


def _noted(schema: JsonSchema, field: FieldInfo) -> JsonSchema:
    for note in field.metadata:
        schema = _limited(schema, note)
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    description = {"description": field.description} if field.description else {}
    return {**schema, **extra, **description}


def _limited(schema: JsonSchema, note: Any) -> JsonSchema:
    """`note` is a limit as pydantic keeps it; whatever it has to say besides is for the validator."""
    unit = "Items" if schema.get("type") == "array" else "Length"
    said = {word: getattr(note, name, None) for name, word in _LIMITS.items()}
    said |= {word + unit: getattr(note, name, None) for name, word in _LENGTHS.items()}
    return {**schema, **{word: limit for word, limit in said.items() if limit is not None}}
