"""What is wrong with a request body, in words for whoever sent it."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pydantic import ValidationError

_MAX_REPORTED_ERRORS = 3
_PROMPT_PART_KINDS = ("text", "image")
"""Of a part of a prompt. Pydantic puts the kind between the part's place and its member; a body has none there."""
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
    """The first mistakes, one sentence each: the member's path and what it must be, never what it held."""
    found = error.errors(include_url=False, include_context=True, include_input=False)
    more = f" And {len(found) - _MAX_REPORTED_ERRORS} more." if len(found) > _MAX_REPORTED_ERRORS else ""
    return " ".join(_sentence(mistake) for mistake in found[:_MAX_REPORTED_ERRORS]) + more


def _sentence(mistake: Mapping[str, Any]) -> str:
    path = _path(mistake["loc"])[:120]
    said = _said(mistake["type"], mistake.get("ctx", {}), mistake["msg"])
    return f"'{path}' {said}." if path else f"{said[:1].upper()}{said[1:]}."


def _path(steps: Sequence[str | int]) -> str:
    """As it is in the body: `content.1.mimeType`."""
    is_kind = [isinstance(before, int) and step in _PROMPT_PART_KINDS for before, step in pairwise(("", *steps))]
    return ".".join(str(step) for step, skipped in zip(steps, is_kind, strict=True) if not skipped)


def _said(kind: str, context: Mapping[str, Any], message: str) -> str:
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
