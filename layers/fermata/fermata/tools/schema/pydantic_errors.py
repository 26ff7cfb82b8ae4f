"""Describe pydantic validation errors in terms of JSON, with the sentences of validation.py.

The readers are models and developers of editors, who know JSON and not Python.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from fermata.tools.schema.validation import JsonPath, format_json_path

_JSON_TYPES = {
    "model": "object",
    "dict": "object",
    "tuple": "array",
    "list": "array",
    "string": "string",
    "int": "integer",
    "float": "number",
    "finite": "number",
    "bool": "boolean",
}
"""The expected JSON type by the first word of pydantic's error type (`int_parsing`, `string_type`)."""


def describe_pydantic_errors(error: ValidationError, root: JsonPath = ()) -> list[str]:
    """Describe each error by its path and what is expected there.

    Args:
        error: What pydantic raised.
        root: A path that is put before the path of each error.
    """
    errors = error.errors(include_url=False, include_input=False)
    return [_describe_error((*root, *item["loc"]), item["type"], item.get("ctx", {})) for item in errors]


def _describe_error(path: JsonPath, error_type: str, context: Mapping[str, Any]) -> str:
    location = format_json_path(path) or "the whole value"
    return f"{location}: {_describe_expectation(error_type, context)}"


def _describe_expectation(error_type: str, context: Mapping[str, Any]) -> str:
    match error_type:
        case "missing":
            return "Expected required property"
        case "literal_error" | "enum":
            return f"Expected {str(context['expected']).replace(chr(39), chr(34))}"
        case "value_error":
            return str(context["error"])
    json_type = _JSON_TYPES.get(error_type.partition("_")[0])
    return f"Expected {json_type}" if json_type else f"Does not fit ({error_type.replace('_', ' ')})"
