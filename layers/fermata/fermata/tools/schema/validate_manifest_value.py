"""Validate values against the JSON Schemas of manifests.

Only `type`, `enum`, `properties`, `required`, `additionalProperties: false` and `items` count; other keywords are for
the model and are ignored (decision 0326). So no schema of a tenant can make validation slow.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

MAX_SCHEMA_DEPTH = 32
MAX_TYPES = 16
"""Of a schema's `type`. JSON has seven; what follows these is not looked at."""


class SchemaViolation(NamedTuple):
    """The first error of a value: where it is, such as `$.items[0].id`, and what is wrong."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def find_schema_violation(schema: Mapping[str, Any], value: Any) -> SchemaViolation | None:
    """Return the first violation, or None for a value that fits.

    Args:
        schema: The JSON Schema of a manifest.
        value: A JSON value.
    """
    return next(_Validation().iter_violations(schema, value, None), None)


class _Place(NamedTuple):
    """Where a value is: a member or an item of another one. It is a text only if it is named."""

    parent: "_Place | None"
    segment: str | int

    def __str__(self) -> str:
        segments, place = [], self
        while True:
            segments.append(f"[{place.segment}]" if isinstance(place.segment, int) else f".{place.segment}")
            if place.parent is None:
                return "$" + "".join(reversed(segments))
            place = place.parent


def _report(place: "_Place | None", message: str) -> SchemaViolation:
    return SchemaViolation("$" if place is None else str(place), message)


class _Validation:
    """One validation. It reads each `enum` once, however many items are compared with it."""

    def __init__(self) -> None:
        self._choices: dict[int, frozenset[Any]] = {}

    def iter_violations(self, schema: Mapping[str, Any], value: Any, place: _Place | None) -> Iterator[SchemaViolation]:
        expected = schema.get("type")
        types = [expected] if isinstance(expected, str) else expected if isinstance(expected, list) else []
        if types and not _has_one_type(value, types[:MAX_TYPES]):
            yield _report(place, f"expected {_join_types(types)}, got {_get_type_name(value)}")
            return
        choices = schema.get("enum")
        if isinstance(choices, list) and _freeze(value) not in self._read_choices(choices):
            yield _report(place, "is none of the allowed values")
        if isinstance(value, dict):
            yield from self._iter_object_violations(schema, value, place)
        items = schema.get("items")
        if isinstance(value, list) and isinstance(items, Mapping):
            for index, item in enumerate(value):
                yield from self.iter_violations(items, item, _Place(place, index))

    def _read_choices(self, choices: list[Any]) -> frozenset[Any]:
        """Return the choices of a list of the schema, which lives as long as the validation."""
        if id(choices) not in self._choices:
            self._choices[id(choices)] = frozenset(map(_freeze, choices))
        return self._choices[id(choices)]

    def _iter_object_violations(
        self, schema: Mapping[str, Any], value: Mapping[str, Any], place: _Place | None
    ) -> Iterator[SchemaViolation]:
        required = schema.get("required")
        for name in required if isinstance(required, list) else ():
            if isinstance(name, str) and name not in value:
                yield _report(_Place(place, name), "is required")
        properties = schema.get("properties")
        known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        for name, member in value.items():
            if isinstance(member_schema := known.get(name), Mapping):
                yield from self.iter_violations(member_schema, member, _Place(place, name))
            elif name not in known and schema.get("additionalProperties") is False:
                yield _report(_Place(place, name), "is not allowed")


def _has_one_type(value: Any, types: Sequence[Any]) -> bool:
    return any(_has_type(value, name) for name in types)


def _join_types(types: Sequence[Any]) -> str:
    return " or ".join(map(str, types[:MAX_TYPES]))


def _freeze(value: Any) -> Any:
    """Return what is equal for equal JSON values, and can be a member of a set: true is not 1, and 1.0 is 1."""
    if isinstance(value, dict):
        return "object", frozenset((name, _freeze(member)) for name, member in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_freeze, value))
    return isinstance(value, bool), value


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


def measure_schema_depth(value: Any, limit: int = MAX_SCHEMA_DEPTH) -> int:
    """Return how deeply a JSON value is nested, at most one more than `limit`."""
    if limit < 0 or not isinstance(value, dict | list):
        return 0
    members: Sequence[Any] = list(value.values()) if isinstance(value, dict) else value
    return 1 + max((measure_schema_depth(member, limit - 1) for member in members), default=0)
