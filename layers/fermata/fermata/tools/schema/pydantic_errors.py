"""What is wrong with a JSON value that one of our models could not read, in the words of check.py: for whoever reads
JSON, and no Python.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from fermata.tools.schema.validation import JsonPath, format_json_path

_KINDS = {
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
"""The first word of what pydantic calls a mistake, and which type of JSON it misses."""


def describe_pydantic_errors(error: ValidationError, root: JsonPath = ()) -> list[str]:
    """Each mistake: its path below `root`, and what is expected there."""
    found = error.errors(include_url=False, include_input=False)
    return [_sentence((*root, *mistake["loc"]), mistake["type"], mistake.get("ctx", {})) for mistake in found]


def _sentence(path: JsonPath, kind: str, context: Mapping[str, Any]) -> str:
    where = format_json_path(path) or "the whole value"
    return f"{where}: {_expected(kind, context)}"


def _expected(kind: str, context: Mapping[str, Any]) -> str:
    match kind:
        case "missing":
            return "Expected required property"
        case "literal_error" | "enum":
            return f"Expected {str(context['expected']).replace(chr(39), chr(34))}"
        case "value_error":
            return str(context["error"])
    known = _KINDS.get(kind.partition("_")[0])
    return f"Expected {known}" if known else f"Does not fit ({kind.replace('_', ' ')})"
