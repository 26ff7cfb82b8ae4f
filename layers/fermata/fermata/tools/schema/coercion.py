"""Coerce a model's arguments to a tool's JSON Schema where their meaning is plain, and refuse the rest.

The steps, in this order: arguments that a description of the call wraps are taken out; unknown members are dropped,
unless the schema forbids them; defaults are added; values become the type that the schema asks for ("2" becomes 2, 2.7
the integer 2, 7 the string "7", "true" and 1 become true, a single value a list of one, a list of one object that
object, text of an object or a list what it encodes); the result is validated. Null stays null and is refused unless the
schema allows it, because null is not the same as absent.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from fermata.domain.lenient_json import UnreadableJson, read_plain_json
from fermata.tools.schema.json_schema import ANY_KEY_PATTERN, JsonSchema
from fermata.tools.schema.validation import iter_schema_errors, matches_schema

_NUMBER_TEXT = re.compile(r"\s*[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})(e[+-]?\d{1,3})?\s*", re.IGNORECASE | re.ASCII)
_MAX_REPORTED_ERRORS = 100
"""More than a model corrects in one go; beyond that, one error is usually repeated."""
_MAX_IGNORED_MEMBERS = 10
_MAX_IGNORED_PATH_CHARS = 80
_NOTHING = ("", "null", "none", "undefined")
"""Words for no value (decision 0207)."""
_WRAPPER_NAMES = frozenset({"arguments", "args", "parameters", "input"})
"""Members in which models put all arguments, as if they described the call."""
_DESCRIPTION_NAMES = _WRAPPER_NAMES | {"name", "tool", "function", "type", "id"}


class InvalidToolInput(Exception):
    """The arguments do not fit. The message names each wrong member and the error."""


def coerce_arguments(schema: JsonSchema, arguments: Any) -> dict[str, Any]:
    """Return new arguments that fit the schema; the given ones are not changed.

    Args:
        schema: The schema of a tool input: an object.
        arguments: What the model sent, of any type.

    Raises:
        InvalidToolInput: They do not fit.
    """
    if (_is_nothing(arguments) or arguments == []) and not schema.get("required"):
        arguments = {}  # what models write for a tool that takes nothing
    coerced: dict[str, Any] = _coerce_value(schema, _unwrap_arguments(schema, arguments))
    if errors := list(iter_schema_errors(schema, coerced)):
        raise InvalidToolInput(join_errors(errors))
    return coerced


def list_ignored_members(schema: JsonSchema, arguments: Any) -> tuple[str, ...]:
    """Return the paths of the members that `coerce_arguments` drops although they say something."""
    return tuple(_iter_ignored_members(schema, _unwrap_arguments(schema, arguments), ""))[:_MAX_IGNORED_MEMBERS]


def _iter_ignored_members(schema: JsonSchema, value: Any, path: str) -> Iterator[str]:
    value = _find_object(value)
    properties = schema.get("properties")
    if not isinstance(value, dict) or properties is None or schema.get("additionalProperties") is False:
        return
    for key, member in value.items():
        if key in properties:
            yield from _iter_ignored_members(properties[key], member, f"{path}{key}.")
        elif ANY_KEY_PATTERN not in schema.get("patternProperties", {}) and not _is_nothing(member):
            yield f"{path}{key}"[:_MAX_IGNORED_PATH_CHARS]


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING)


def _unwrap_arguments(schema: JsonSchema, arguments: Any) -> Any:
    """Return the arguments of a model that wrote them as a member of a description of the call."""
    properties = schema.get("properties", {})
    if not isinstance(arguments, dict) or not arguments or not (arguments.keys() <= _DESCRIPTION_NAMES):
        return arguments
    wrapped = [_decode_text(arguments[name], dict) for name in sorted(_WRAPPER_NAMES & arguments.keys())]
    is_description = properties.keys().isdisjoint(arguments) and len(wrapped) == 1 and isinstance(wrapped[0], dict)
    return wrapped[0] if is_description else arguments


def join_errors(errors: Sequence[str]) -> str:
    """Join all errors into one line, so that the model can correct them at once."""
    more = f"; and {len(errors) - _MAX_REPORTED_ERRORS} more" if len(errors) > _MAX_REPORTED_ERRORS else ""
    return "; ".join(errors[:_MAX_REPORTED_ERRORS]) + more


def _coerce_value(schema: JsonSchema, value: Any) -> Any:
    if "anyOf" in schema:
        return _coerce_union(schema["anyOf"], value)
    if "const" in schema:
        return _coerce_constant(schema["const"], value)
    match schema.get("type"):
        case "object":
            value = _find_object(value)
            return _coerce_object(schema, value) if isinstance(value, dict) else value
        case "array":
            return _coerce_array(schema, value)
        case "string":
            return _coerce_string(value)
        case "integer" | "number" as kind:
            return _coerce_number(value, whole=kind == "integer")
        case "boolean":
            return _coerce_boolean(value)
    return value


def _coerce_union(variants: list[JsonSchema], value: Any) -> Any:
    """Prefer a variant that fits unchanged to one that fits after coercion."""
    for variant in variants:
        if matches_schema(variant, value):
            return _coerce_value(variant, value)
    for variant in variants:
        coerced = _coerce_value(variant, value)
        if matches_schema(variant, coerced):
            return coerced
    return value


def _find_object(value: Any) -> Any:
    """Return the object that a text encodes, or the only one of a list."""
    value = _decode_text(value, (dict, list))
    return value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) else value


def _coerce_object(schema: JsonSchema, value: dict[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    coerced = {}
    for key, member in value.items():
        if key in properties:
            coerced[key] = _coerce_value(properties[key], member)
        elif ANY_KEY_PATTERN in patterns:
            coerced[key] = _coerce_value(patterns[ANY_KEY_PATTERN], member)
        elif schema.get("additionalProperties") is False:
            coerced[key] = member
    defaults = {key: sub["default"] for key, sub in properties.items() if "default" in sub and key not in coerced}
    return coerced | defaults


def _decode_text(value: Any, expected_type: type | tuple[type, ...]) -> Any:
    """Return the object or list that a text encodes; models encode members once more (decision 0197)."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        decoded = read_plain_json(value)
    except UnreadableJson:
        return value
    return decoded if isinstance(decoded, expected_type) else value


def _coerce_array(schema: JsonSchema, value: Any) -> Any:
    if value is None:
        return None
    value = _decode_text(value, list)
    items = value if isinstance(value, list) else [value]
    return [_coerce_value(schema.get("items", {}), item) for item in items]


def _coerce_constant(constant: Any, value: Any) -> Any:
    """Return the constant for a value with the same text (`"5"` for 5); null and objects are never equal to one."""
    return constant if value is not None and _coerce_string(value) == _coerce_string(constant) else value


def _coerce_string(value: Any) -> Any:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if abs(value) < 10**21 else value
        case float() if math.isfinite(value):
            return str(int(value)) if value.is_integer() and abs(value) < 10**21 else repr(value)
    return value


def _coerce_number(value: Any, *, whole: bool) -> Any:
    number = _parse_number(value)
    if number is None:
        return value
    return int(number) if whole else number


def _parse_number(value: Any) -> int | float | None:
    match value:
        case bool():
            return int(value)
        case int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str() if _NUMBER_TEXT.fullmatch(value):
            return int(value) if value.strip().lstrip("+-").isdigit() else _parse_number(float(value))
    return None


def _coerce_boolean(value: Any) -> Any:
    match value:
        case str() if value.lower() in ("true", "1"):
            return True
        case str() if value.lower() in ("false", "0"):
            return False
        case int() | float() if value in (0, 1):
            return bool(value)
    return value
