"""Validate values against the JSON Schemas of manifests.

Only `type`, `enum`, `properties`, `required`, `additionalProperties: false` and `items` count; other keywords are for
the model and are ignored (decision 0326). So no schema of a tenant can make validation slow.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

MAX_SCHEMA_DEPTH = 32


class SchemaViolation(NamedTuple):
    """The first error of a value: where it is, such as `$.items[0].id`, and what is wrong."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def find_schema_violation(schema: Mapping[str, Any], value: Any, path: str = "$") -> SchemaViolation | None:
    """Return the first violation, or None for a value that fits.

    Args:
        schema: The JSON Schema of a manifest.
        value: A JSON value.
        path: The path of the value.
    """
    return next(_iter_violations(schema, value, path), None)


def _iter_violations(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[SchemaViolation]:
    expected = schema.get("type")
    types = [expected] if isinstance(expected, str) else expected if isinstance(expected, list) else []
    if types and not any(_has_type(value, name) for name in types):
        yield SchemaViolation(path, f"expected {' or '.join(map(str, types))}, got {_get_type_name(value)}")
        return
    choices = schema.get("enum")
    if isinstance(choices, list) and not any(_is_same(choice, value) for choice in choices):
        yield SchemaViolation(path, "is none of the allowed values")
    if isinstance(value, dict):
        yield from _iter_object_violations(schema, value, path)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, Mapping):
        for index, item in enumerate(value):
            yield from _iter_violations(items, item, f"{path}[{index}]")


def _iter_object_violations(
    schema: Mapping[str, Any], value: Mapping[str, Any], path: str
) -> Iterator[SchemaViolation]:
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in value:
            yield SchemaViolation(f"{path}.{name}", "is required")
    properties = schema.get("properties")
    known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
    for name, member in value.items():
        if isinstance(member_schema := known.get(name), Mapping):
            yield from _iter_violations(member_schema, member, f"{path}.{name}")
        elif name not in known and schema.get("additionalProperties") is False:
            yield SchemaViolation(f"{path}.{name}", "is not allowed")


def _has_type(value: Any, name: Any) -> bool:
    match name:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "integer":
            return _is_number(value) and (isinstance(value, int) or value.is_integer())
        case "number":
            return _is_number(value)
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _get_type_name(value: Any) -> str:
    names = ("null", "boolean", "integer", "number", "string", "array", "object")
    return next(name for name in names if _has_type(value, name))


def _is_same(one: Any, other: Any) -> bool:
    """Compare JSON values: true is not 1, and 1.0 is 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def measure_schema_depth(value: Any, limit: int = MAX_SCHEMA_DEPTH) -> int:
    """Return how deeply a JSON value is nested, at most one more than `limit`."""
    if limit < 0 or not isinstance(value, dict | list):
        return 0
    members: Sequence[Any] = list(value.values()) if isinstance(value, dict) else value
    return 1 + max((measure_schema_depth(member, limit - 1) for member in members), default=0)
