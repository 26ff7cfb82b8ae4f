"""Check what a visitor has sent against the form: known fields, types, rules of the model, sizes."""

import re
from collections.abc import Mapping
from typing import Any

from fermata.content.fields import NUMBER_TYPES, FieldDefinition, FieldType
from fermata.content.validation.content_problem import ContentProblem
from fermata.content.validation.validate_content import validate_content
from fermata.content.validation.validate_document import ContentRefused

MAX_SUBMITTED_CHARS = 10_000
"""Of one text."""
MAX_SUBMITTED_ITEMS = 100
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
_WEB_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_TRUE, _FALSE = ("true", "on", "yes", "1"), ("false", "off", "no", "0", "")
_SEMANTIC_KINDS = frozenset({"email", "url", "phone", "color"})


def check_submission(
    values: Mapping[str, Any], fields: Mapping[str, FieldDefinition], *, is_form_encoded: bool = False
) -> dict[str, Any]:
    """Return what is stored of a submission.

    Args:
        values: What was sent, without the honeypot.
        fields: Those of the form.
        is_form_encoded: Whether all values are texts, as an HTML form without a script sends them.

    Raises:
        ContentRefused: A field is unknown, missing, too large, or not as the model asks. `problems` lists them.
    """
    unknown = [name for name in values if name not in fields]
    problems = [
        ContentProblem(field=name[:64], kind="type", message=f"The form has no field {name[:64]}.")
        for name in unknown[:20]
    ]
    known = {name: values[name] for name in fields if name in values}
    if is_form_encoded:
        known = {name: _read_text(value, fields[name]) for name, value in known.items()}
    problems += [problem for name, value in known.items() for problem in _check_size(value, name)]
    if not problems:
        problems = [_make_strict(problem) for problem in validate_content(known, fields)]
        refused = {problem.field for problem in problems}
        problems += [
            problem
            for name, value in known.items()
            if name not in refused
            for problem in _check_address(value, fields[name], name)
        ]
    if any(problem.severity == "error" for problem in problems):
        raise ContentRefused(problems)
    return {name: value for name, value in known.items() if value is not None and value != ""}


def _read_text(value: Any, field: FieldDefinition) -> Any:
    """Return what the text of an HTML form says, or the text where it says nothing of its type."""
    if field.type is FieldType.ARRAY:
        items = value if isinstance(value, list) else [value]
        return [_read_text(item, field.items) for item in items] if field.items else items
    text = value.strip() if isinstance(value, str) else value
    if not isinstance(text, str):
        return value
    if field.type is FieldType.BOOLEAN and text.lower() in (*_TRUE, *_FALSE):
        return text.lower() in _TRUE
    if field.type in NUMBER_TYPES and _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return None if text == "" else value


def _check_size(value: Any, name: str) -> list[ContentProblem]:
    """Return what is too large. Nothing of a form is nested deeper than a list of texts."""
    items = value if isinstance(value, list) else [value]
    if len(items) > MAX_SUBMITTED_ITEMS:
        return [ContentProblem(field=name, kind="count", message=f"{name} has more than {MAX_SUBMITTED_ITEMS} items.")]
    if any(isinstance(item, list | dict) for item in items):
        return [ContentProblem(field=name, kind="type", message=f"{name} may not be nested.")]
    if any(isinstance(item, str) and len(item) > MAX_SUBMITTED_CHARS for item in items):
        message = f"{name} may be at most {MAX_SUBMITTED_CHARS:,} characters."
        return [ContentProblem(field=name, kind="size", message=message)]
    return []


def _make_strict(problem: ContentProblem) -> ContentProblem:
    """Return a problem as an error where it is one of a stranger's values, and only a hint about an editor's."""
    if problem.kind in _SEMANTIC_KINDS:
        return problem.model_copy(update={"severity": "error"})
    return problem


def _check_address(value: Any, field: FieldDefinition, name: str) -> list[ContentProblem]:
    """Return addresses that lead elsewhere than to the web: pages make links of them."""
    kind = field.items.type if field.type is FieldType.ARRAY and field.items else field.type
    items = value if isinstance(value, list) else [value]
    if kind is FieldType.URL and any(isinstance(one, str) and one and not _WEB_ADDRESS.fullmatch(one) for one in items):
        message = f"{name} has to be an address that begins with https:// or http://."
        return [ContentProblem(field=name, kind="url", message=message)]
    return []
