"""Schemas and values with the errors that the service finds in them, for the client's own check of inputs."""

from collections.abc import Iterator
from typing import Any

from fermata.agents.registry import get_toolset, list_scopes_with_tools
from fermata.tools.schema.validation import iter_schema_errors

Json = dict[str, Any]
ATOMS: tuple[Any, ...] = ("", "x", 0, -1, 2.5, True, None, [], [1, 1], {}, {"a": 1})
LIMITS: tuple[Json, ...] = (
    {"type": "integer", "minimum": 0, "maximum": 2},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 2},
    {"type": "string", "minLength": 1, "maxLength": 2},
    {"type": "string", "pattern": "^[a-z]+$"},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 1, "uniqueItems": True},
    {"type": "object", "properties": {"b": {"type": "boolean"}}, "required": ["b"], "additionalProperties": False},
    {"type": "object", "patternProperties": {"^(.*)$": {"type": "string"}}},
    {"anyOf": [{"const": "x", "type": "string"}, {"const": 0, "type": "integer"}, {"const": True, "type": "boolean"}]},
    {
        "anyOf": [
            {"type": "object", "properties": {"a": {"const": 1, "type": "integer"}, "c": {"type": "string"}}},
            {"type": "object", "properties": {"a": {"const": 2, "type": "integer"}}, "required": ["a", "d"]},
        ]
    },
    {},
)


def list_schema_cases() -> list[Json]:
    """List schemas and values: every schema of a tool, and every keyword, with values that fit and that do not."""
    return [
        {
            "schema": schema,
            "value": value,
            "errors": [_without_value(error) for error in iter_schema_errors(schema, value)],
        }
        for schema, value in _list_pairs()
    ]


def _list_pairs() -> Iterator[tuple[Json, Any]]:
    for schema in LIMITS:
        for value in (*ATOMS, "abc", "🧀🧀", "a1", 3, 1, [1], ["x"], {"b": True}, {"b": 1, "z": 1}, {"a": 1, "c": 1}):
            yield schema, value
    for scope in list_scopes_with_tools():
        for tool in get_toolset(scope).tools:
            for value in _list_values(tool.input_schema):
                yield tool.input_schema, value


def _list_values(schema: Json) -> Iterator[Any]:
    """Yield values of a tool's input: none of its members, and each member with each atom."""
    yield {}
    yield []
    for name in schema.get("properties", {}):
        for atom in ATOMS:
            yield {name: atom}


def _without_value(error: str) -> str:
    """Leave out the text of the value: Python and JavaScript write it with other spaces."""
    return error.partition(", got ")[0]
