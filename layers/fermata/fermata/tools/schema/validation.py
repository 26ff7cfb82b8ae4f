"""Validate a JSON value against a plain JSON Schema (json_schema.py), with errors that a model can act on."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from fermata.tools.schema.json_schema import ANY_KEY_PATTERN, JsonSchema

JsonPath = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""


def matches_schema(schema: JsonSchema, value: Any) -> bool:
    return next(iter_schema_errors(schema, value), None) is None


def iter_schema_errors(schema: JsonSchema, value: Any, path: JsonPath = ()) -> Iterator[str]:
    """Yield a sentence for each error of a value and of its members.

    Args:
        schema: A schema that uses the keywords of json_schema.py only.
        value: The value.
        path: The path of the value, which the sentences begin with.
    """
    if "anyOf" in schema:
        yield from _iter_union_errors(schema["anyOf"], value, path)
    elif "const" in schema:
        if not _is_same_constant(schema["const"], value):
            yield _format_error(path, f"Expected {_shorten(schema['const'])}", value)
    elif (kind := schema.get("type")) == "object":
        yield from _iter_object_errors(schema, value, path)
    elif kind == "array":
        yield from _iter_array_errors(schema, value, path)
    elif kind == "string":
        yield from _iter_string_errors(schema, value, path)
    elif kind in ("integer", "number"):
        yield from _iter_number_errors(kind, schema, value, path)
    elif kind == "boolean" and type(value) is not bool:
        yield _format_error(path, "Expected boolean", value)


def _iter_union_errors(variants: list[JsonSchema], value: Any, path: JsonPath) -> Iterator[str]:
    """Yield the errors of the intended variant, if the value's constants show which one is intended."""
    if any(matches_schema(variant, value) for variant in variants):
        return
    intended = [variant for variant in variants if _is_intended(variant, value)]
    if len(intended) == 1:
        yield from iter_schema_errors(intended[0], value, path)
    else:
        descriptions = ", ".join(map(_describe_variant, variants))
        yield _format_error(path, f"Expected union value (one of {descriptions})", value)


def _is_intended(variant: JsonSchema, value: Any) -> bool:
    constants = {key: sub["const"] for key, sub in variant.get("properties", {}).items() if "const" in sub}
    if not constants or not isinstance(value, dict):
        return False
    return all(key in value and _is_same_constant(constant, value[key]) for key, constant in constants.items())


def _iter_object_errors(schema: JsonSchema, value: Any, path: JsonPath) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _format_error(path, "Expected object", value)
        return
    for key in schema.get("required", ()):
        if key not in value:
            yield _format_error((*path, key), "Expected required property")
    properties = schema.get("properties", {})
    other_members = schema.get("patternProperties", {}).get(ANY_KEY_PATTERN, {})
    for key, member in value.items():
        if schema.get("additionalProperties") is False and key not in properties:
            yield _format_error((*path, key), f"Unexpected property (expected are {', '.join(properties)})")
        yield from iter_schema_errors(properties.get(key, other_members), member, (*path, key))


def _iter_array_errors(schema: JsonSchema, value: Any, path: JsonPath) -> Iterator[str]:
    if not isinstance(value, list):
        yield _format_error(path, "Expected array", value)
        return
    if len(value) < schema.get("minItems", 0):
        yield _format_error(path, f"Expected array length to be greater or equal to {schema['minItems']}")
    if len(value) > schema.get("maxItems", math.inf):
        yield _format_error(path, f"Expected array length to be less or equal to {schema['maxItems']}")
    if schema.get("uniqueItems") and len({json.dumps(item, sort_keys=True) for item in value}) < len(value):
        yield _format_error(path, "Expected array elements to be unique")
    for index, item in enumerate(value):
        yield from iter_schema_errors(schema.get("items", {}), item, (*path, index))


def _iter_string_errors(schema: JsonSchema, value: Any, path: JsonPath) -> Iterator[str]:
    if not isinstance(value, str):
        yield _format_error(path, "Expected string", value)
        return
    if len(value) < schema.get("minLength", 0):
        yield _format_error(path, f"Expected string length greater or equal to {schema['minLength']}")
    if len(value) > schema.get("maxLength", math.inf):
        yield _format_error(path, f"Expected string length less or equal to {schema['maxLength']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield _format_error(path, f"Expected string to match {schema['pattern']}", value)


def _iter_number_errors(kind: str, schema: JsonSchema, value: Any, path: JsonPath) -> Iterator[str]:
    if type(value) is not int and (kind == "integer" or type(value) is not float or not math.isfinite(value)):
        yield _format_error(path, f"Expected {kind}", value)
        return
    if value < schema.get("minimum", -math.inf):
        yield _format_error(path, f"Expected {kind} to be greater or equal to {schema['minimum']}", value)
    if value > schema.get("maximum", math.inf):
        yield _format_error(path, f"Expected {kind} to be less or equal to {schema['maximum']}", value)
    if value <= schema.get("exclusiveMinimum", -math.inf):
        yield _format_error(path, f"Expected {kind} to be greater than {schema['exclusiveMinimum']}", value)
    if value >= schema.get("exclusiveMaximum", math.inf):
        yield _format_error(path, f"Expected {kind} to be less than {schema['exclusiveMaximum']}", value)


_NO_VALUE = object()


def _format_error(path: JsonPath, sentence: str, value: Any = _NO_VALUE) -> str:
    actual = "" if value is _NO_VALUE else f", got {_shorten(value)}"
    return f"{format_json_path(path)}: {sentence}{actual}" if path else f"{sentence}{actual}"


def format_json_path(path: JsonPath) -> str:
    """Format a path as in `document.id` and `tables[0].slug`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _shorten(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _describe_variant(schema: JsonSchema) -> str:
    """Describe a variant by its constant, its constant members, or its type."""
    if "const" in schema:
        return _shorten(schema["const"])
    constants = [
        f"{key} {_shorten(sub['const'])}" for key, sub in schema.get("properties", {}).items() if "const" in sub
    ]
    kind = str(schema.get("type", "any value"))
    return f"{kind} with {' and '.join(constants)}" if constants else kind


def _is_same_constant(constant: Any, value: Any) -> bool:
    """Compare value and type, because True == 1 in Python."""
    return type(constant) is type(value) and bool(constant == value)
