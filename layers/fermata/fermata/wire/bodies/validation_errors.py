"""Format pydantic's validation errors for the caller who sent the body."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pydantic import ValidationError

_MAX_REPORTED_ERRORS = 3
_PROMPT_PART_KINDS = ("text", "image", "audio", "file")
"""Kinds of prompt parts. Pydantic puts the kind into the path of an error, where the body has no member."""
_FORM_NAMES = ("str", "int", "float", "bool")
"""Names of types. Pydantic puts them, as `list[…]`, into the path of a value that may have several forms."""
_SENTENCES = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "string_type": "must be a string",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
}


def format_validation_errors(error: ValidationError) -> str:
    """Format the first errors, one sentence each: the member's path and what it must be, never its value."""
    errors = error.errors(include_url=False, include_context=True, include_input=False)
    rest = f" And {len(errors) - _MAX_REPORTED_ERRORS} more." if len(errors) > _MAX_REPORTED_ERRORS else ""
    return " ".join(_format_error(details) for details in errors[:_MAX_REPORTED_ERRORS]) + rest


def _format_error(details: Mapping[str, Any]) -> str:
    path = _format_path(details["loc"])[:120]
    requirement = _describe_requirement(details["type"], details.get("ctx", {}), details["msg"])
    return f"'{path}' {requirement}." if path else f"{requirement[:1].upper()}{requirement[1:]}."


def _format_path(location: Sequence[str | int]) -> str:
    """Format a location as the path in the body, for example `content.1.mimeType`."""
    is_kind = [isinstance(before, int) and step in _PROMPT_PART_KINDS for before, step in pairwise(("", *location))]
    steps = [str(step) for step, is_skipped in zip(location, is_kind, strict=True) if not is_skipped]
    return ".".join(step for step in steps if step not in _FORM_NAMES and "[" not in step)


def _describe_requirement(kind: str, context: Mapping[str, Any], message: str) -> str:
    match kind:
        case "string_too_short":
            return "must not be empty"
        case "string_too_long":
            return f"may have at most {context['max_length']} characters"
        case "string_pattern_mismatch":
            return f"must match {context['pattern']}"
        case "greater_than_equal":
            return f"must be {context['ge']} at least"
        case "less_than_equal":
            return f"may be {context['le']} at most"
        case "too_short":
            return (
                "must not be empty" if context["min_length"] == 1 else f"has {context['min_length']} entries at least"
            )
        case "too_long":
            return f"may have at most {context['max_length']} entries"
        case "literal_error" | "enum":
            return f"must be {context['expected']}"
        case "union_tag_invalid":
            return f"must have a {context['discriminator']} of {context['expected_tags']}"
        case "union_tag_not_found":
            return f"must have a {context['discriminator']}"
        case "value_error":
            return str(context["error"])
        case _:
            return _SENTENCES.get(kind, message[:1].lower() + message[1:])
