"""Says what is wrong with a JSON value by a plain JSON Schema (`schemas.py`), in words a model can act on."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from fermata.tools.schema.json_schema import ANY_KEY_PATTERN, JsonSchema

JsonPath = tuple[str | int, ...]


def matches_schema(schema: JsonSchema, value: Any) -> bool:
    return next(iter_schema_errors(schema, value), None) is None


def iter_schema_errors(schema: JsonSchema, value: Any, path: JsonPath = ()) -> Iterator[str]:
    if "anyOf" in schema:
        yield from _union_faults(schema["anyOf"], value, path)
    elif "const" in schema:
        if not _same(schema["const"], value):
            yield _fault(path, f"Expected {_short(schema['const'])}", value)
    elif (kind := schema.get("type")) == "object":
        yield from _object_faults(schema, value, path)
    elif kind == "array":
        yield from _array_faults(schema, value, path)
    elif kind == "string":
        yield from _string_faults(schema, value, path)
    elif kind in ("integer", "number"):
        yield from _number_faults(kind, schema, value, path)
    elif kind == "boolean" and type(value) is not bool:
        yield _fault(path, "Expected boolean", value)


def _union_faults(variants: list[JsonSchema], value: Any, path: JsonPath) -> Iterator[str]:
    """Where constants tell which variant is meant, its own faults are what helps."""
    if any(matches_schema(variant, value) for variant in variants):
        return
    meant = [variant for variant in variants if _is_meant(variant, value)]
    if len(meant) == 1:
        yield from iter_schema_errors(meant[0], value, path)
    else:
        yield _fault(path, f"Expected union value (one of {', '.join(map(_told, variants))})", value)


def _is_meant(variant: JsonSchema, value: Any) -> bool:
    constants = {key: sub["const"] for key, sub in variant.get("properties", {}).items() if "const" in sub}
    if not constants or not isinstance(value, dict):
        return False
    return all(key in value and _same(constant, value[key]) for key, constant in constants.items())


def _object_faults(schema: JsonSchema, value: Any, path: JsonPath) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _fault(path, "Expected object", value)
        return
    for key in schema.get("required", ()):
        if key not in value:
            yield _fault((*path, key), "Expected required property")
    known, rest = schema.get("properties", {}), schema.get("patternProperties", {}).get(ANY_KEY_PATTERN, {})
    for key, member in value.items():
        yield from iter_schema_errors(known.get(key, rest), member, (*path, key))


def _array_faults(schema: JsonSchema, value: Any, path: JsonPath) -> Iterator[str]:
    if not isinstance(value, list):
        yield _fault(path, "Expected array", value)
        return
    if len(value) < schema.get("minItems", 0):
        yield _fault(path, f"Expected array length to be greater or equal to {schema['minItems']}")
    if len(value) > schema.get("maxItems", math.inf):
        yield _fault(path, f"Expected array length to be less or equal to {schema['maxItems']}")
    if schema.get("uniqueItems") and len({json.dumps(item, sort_keys=True) for item in value}) < len(value):
        yield _fault(path, "Expected array elements to be unique")
    for place, item in enumerate(value):
        yield from iter_schema_errors(schema.get("items", {}), item, (*path, place))


def _string_faults(schema: JsonSchema, value: Any, path: JsonPath) -> Iterator[str]:
    if not isinstance(value, str):
        yield _fault(path, "Expected string", value)
        return
    if len(value) < schema.get("minLength", 0):
        yield _fault(path, f"Expected string length greater or equal to {schema['minLength']}")
    if len(value) > schema.get("maxLength", math.inf):
        yield _fault(path, f"Expected string length less or equal to {schema['maxLength']}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield _fault(path, f"Expected string to match {schema['pattern']}", value)


def _number_faults(kind: str, schema: JsonSchema, value: Any, path: JsonPath) -> Iterator[str]:
    if type(value) is not int and (kind == "integer" or type(value) is not float or not math.isfinite(value)):
        yield _fault(path, f"Expected {kind}", value)
        return
    if value < schema.get("minimum", -math.inf):
        yield _fault(path, f"Expected {kind} to be greater or equal to {schema['minimum']}", value)
    if value > schema.get("maximum", math.inf):
        yield _fault(path, f"Expected {kind} to be less or equal to {schema['maximum']}", value)
    if value <= schema.get("exclusiveMinimum", -math.inf):
        yield _fault(path, f"Expected {kind} to be greater than {schema['exclusiveMinimum']}", value)
    if value >= schema.get("exclusiveMaximum", math.inf):
        yield _fault(path, f"Expected {kind} to be less than {schema['exclusiveMaximum']}", value)


_NOTHING = object()


def _fault(path: JsonPath, what: str, value: Any = _NOTHING) -> str:
    got = "" if value is _NOTHING else f", got {_short(value)}"
    return f"{format_json_path(path)}: {what}{got}" if path else f"{what}{got}"


def format_json_path(path: JsonPath) -> str:
    """`document.id`, `tables[0].slug`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _told(schema: JsonSchema) -> str:
    """A variant in a few words: its constant, its constant members, or its type."""
    if "const" in schema:
        return _short(schema["const"])
    constants = [f"{key} {_short(sub['const'])}" for key, sub in schema.get("properties", {}).items() if "const" in sub]
    kind = str(schema.get("type", "any value"))
    return f"{kind} with {' and '.join(constants)}" if constants else kind


def _same(constant: Any, value: Any) -> bool:
    """Equal and of one type: true is not 1."""
    return type(constant) is type(value) and bool(constant == value)
