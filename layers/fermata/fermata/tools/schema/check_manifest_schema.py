"""Check that a schema which somebody else has written is a JSON Schema, in the keywords that have to be right.

A provider refuses the whole request if the schema of one of its tools is none, so that no prompt of a workspace would
be answered any more. Keywords that are not looked at here are of no harm, or differ from provider to provider.
"""

from collections.abc import Iterator, Mapping
from typing import Any

SCHEMA_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_LISTS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf")


def find_schema_problem(schema: Mapping[str, Any]) -> str:
    """Return what is wrong with a schema, with its place, such as `$.items.type`; empty for one that is right.

    Args:
        schema: A JSON value, which is not nested too deeply (`measure_schema_depth`).
    """
    return next(_iter_problems(schema, "$"), "")


def _iter_problems(schema: Any, path: str) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        yield f"{path} has to be a schema"
        return
    yield from _iter_keyword_problems(schema, path)
    yield from _iter_member_problems(schema, path)


def _iter_keyword_problems(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    types = schema.get("type", "object")
    named = types if isinstance(types, list) else [types]
    if not named or not all(isinstance(name, str) and name in SCHEMA_TYPES for name in named):
        yield f"{path}.type has to be one or several of {', '.join(SCHEMA_TYPES)}"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        yield f"{path}.required has to be a list of names"
    choices = schema.get("enum", [None])
    if not isinstance(choices, list) or not choices:
        yield f"{path}.enum has to be a list of at least one value"


def _iter_member_problems(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        yield f"{path}.properties has to be an object"
        return
    for name, member in properties.items():
        yield from _iter_problems(member, f"{path}.properties.{name}")
    yield from _iter_problems(schema.get("additionalProperties", True), f"{path}.additionalProperties")
    items = schema.get("items", True)
    for place, item in enumerate(items if isinstance(items, list) else [items]):
        yield from _iter_problems(item, f"{path}.items[{place}]" if isinstance(items, list) else f"{path}.items")
    for keyword in _LISTS_OF_SCHEMAS:
        yield from _iter_choice_problems(schema.get(keyword, [True]), f"{path}.{keyword}")


def _iter_choice_problems(choices: Any, path: str) -> Iterator[str]:
    if not isinstance(choices, list) or not choices:
        yield f"{path} has to be a list of at least one schema"
        return
    for place, choice in enumerate(choices):
        yield from _iter_problems(choice, f"{path}[{place}]")
