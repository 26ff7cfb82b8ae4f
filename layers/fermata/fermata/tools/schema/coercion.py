"""Makes a model's arguments fit a tool's schema where the meaning is plain, and refuses the rest.

In this order: unknown members go, defaults come, scalars become what the schema asks for ("2" is 2, 2.7 is the integer
2, 7 is the string "7", "true" and 1 are true, a lone value is a list of one), and the result is checked. A null
stays a null, so it is refused wherever the schema has no place for it: null is not the same as absent.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

from fermata.tools.schema.json_schema import ANY_KEY_PATTERN, JsonSchema
from fermata.tools.schema.validation import iter_schema_errors, matches_schema

_NUMBER = re.compile(r"\s*[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})(e[+-]?\d{1,3})?\s*", re.IGNORECASE | re.ASCII)
_FAULTS_TOLD = 100
"""All that a model can put right in one go; of more it would repeat one mistake."""


class InvalidToolInput(Exception):
    """The arguments do not fit; the text names the members and what is wrong with each."""


def coerce_arguments(schema: JsonSchema, arguments: Any) -> dict[str, Any]:
    """New arguments that fit `schema`, whose root is an object; the value itself is left alone."""
    prepared: dict[str, Any] = _prepare(schema, arguments)
    if found := list(iter_schema_errors(schema, prepared)):
        raise InvalidToolInput(join_errors(found))
    return prepared


def join_errors(errors: Sequence[str]) -> str:
    """Every mistake in one line, so that all can be put right at once."""
    more = f"; and {len(errors) - _FAULTS_TOLD} more" if len(errors) > _FAULTS_TOLD else ""
    return "; ".join(errors[:_FAULTS_TOLD]) + more


def _prepare(schema: JsonSchema, value: Any) -> Any:
    if "anyOf" in schema:
        return _prepare_union(schema["anyOf"], value)
    if "const" in schema:
        return _to_constant(schema["const"], value)
    match schema.get("type"):
        case "object":
            return _prepare_object(schema, value) if isinstance(value, dict) else value
        case "array":
            return _prepare_array(schema, value)
        case "string":
            return _to_string(value)
        case "integer" | "number" as kind:
            return _to_number(value, whole=kind == "integer")
        case "boolean":
            return _to_boolean(value)
    return value


def _prepare_union(variants: list[JsonSchema], value: Any) -> Any:
    """A variant that fits as it is wins over one that fits after conversion."""
    for variant in variants:
        if matches_schema(variant, value):
            return _prepare(variant, value)
    for variant in variants:
        prepared = _prepare(variant, value)
        if matches_schema(variant, prepared):
            return prepared
    return value


def _prepare_object(schema: JsonSchema, value: dict[str, Any]) -> dict[str, Any]:
    known, rest = schema.get("properties", {}), schema.get("patternProperties", {})
    prepared = {}
    for key, member in value.items():
        if key in known:
            prepared[key] = _prepare(known[key], member)
        elif ANY_KEY_PATTERN in rest:
            prepared[key] = _prepare(rest[ANY_KEY_PATTERN], member)
    defaults = {key: sub["default"] for key, sub in known.items() if "default" in sub and key not in prepared}
    return prepared | defaults


def _prepare_array(schema: JsonSchema, value: Any) -> Any:
    if value is None:
        return None
    items = value if isinstance(value, list) else [value]
    return [_prepare(schema.get("items", {}), item) for item in items]


def _to_constant(constant: Any, value: Any) -> Any:
    """`"5"` and 5 name the same constant; an object or a null never does."""
    return constant if value is not None and _to_string(value) == _to_string(constant) else value


def _to_string(value: Any) -> Any:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if abs(value) < 10**21 else value
        case float() if math.isfinite(value):
            return str(int(value)) if value.is_integer() and abs(value) < 10**21 else repr(value)
    return value


def _to_number(value: Any, *, whole: bool) -> Any:
    number = _number_in(value)
    if number is None:
        return value
    return int(number) if whole else number


def _number_in(value: Any) -> int | float | None:
    match value:
        case bool():
            return int(value)
        case int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str() if _NUMBER.fullmatch(value):
            return int(value) if value.strip().lstrip("+-").isdigit() else _number_in(float(value))
    return None


def _to_boolean(value: Any) -> Any:
    match value:
        case str() if value.lower() in ("true", "1"):
            return True
        case str() if value.lower() in ("false", "0"):
            return False
        case int() | float() if value in (0, 1):
            return bool(value)
    return value
