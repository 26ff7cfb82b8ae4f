"""Validate content against the fields of its model: secrets, then form, then what other entries have."""

from collections.abc import Iterator, Mapping
from typing import Any

from fermata.content.fields import MEDIA_TYPES, NUMBER_TYPES, RELATION_TYPES, FieldDefinition, FieldType
from fermata.content.validation.content_problem import ContentProblem, is_valid
from fermata.content.validation.relation_shape_checks import check_relation
from fermata.content.validation.secret_words import looks_like_secret
from fermata.content.validation.tenant_patterns import BadPatternError, contains_match
from fermata.content.validation.unique_values import UniqueValues
from fermata.content.validation.value_format_checks import check_accepted_file, check_number_of_type, check_text_of_type

MAX_NESTED_FIELDS = 10


def validate_content(
    content: Mapping[str, Any],
    fields: Mapping[str, FieldDefinition],
    *,
    entry_id: str = "",
    unique_values: UniqueValues | None = None,
) -> list[ContentProblem]:
    """Return the problems of an entry's content, in the order of the fields. Members without a field are no problem.

    Args:
        content: The whole content: an update is merged with what is stored before.
        fields: The fields of the model.
        entry_id: The id of the entry, which may keep its own unique values.
        unique_values: Those of all entries; None for a model with one entry.
    """
    problems: list[ContentProblem] = []
    for name, definition in fields.items():
        value = content.get(name)
        found = list(_check_value(value, definition, name, depth=0))
        if unique_values and definition.unique and not _is_missing(value) and is_valid(found):
            found += _check_unique(value, name, entry_id, unique_values)
        problems += found
    return problems


def validate_dictionary(content: Mapping[str, Any]) -> list[ContentProblem]:
    """Return the problems of a dictionary, whose members are texts."""
    problems = []
    for key, value in content.items():
        if not isinstance(value, str):
            problems.append(ContentProblem(field=key, kind="type", message=f"{key} has to be a text."))
        elif looks_like_secret(value):
            problems.append(_describe_secret(key))
    return problems


def _check_value(value: Any, definition: FieldDefinition, path: str, depth: int) -> Iterator[ContentProblem]:
    if _is_missing(value):
        if definition.required:
            yield ContentProblem(field=path, kind="required", message=f"{path} is required.")
            return
        if value is None:
            return
    if isinstance(value, str) and looks_like_secret(value):
        yield _describe_secret(path)
    if definition.type in RELATION_TYPES:
        yield from check_relation(value, definition, path)
    elif not _has_type(value, definition.type):
        yield ContentProblem(field=path, kind="type", message=f"{path} has to be {_NAMES_OF_TYPES[definition.type]}.")
    elif isinstance(value, str):
        yield from _check_text(value, definition, path)
    elif isinstance(value, list | dict):
        yield from _check_members(value, definition, path, depth)
    elif not isinstance(value, bool):
        yield from check_number_of_type(value, definition.type, path)
        yield from _check_range(value, definition, path, unit="")


def _check_text(text: str, definition: FieldDefinition, path: str) -> Iterator[ContentProblem]:
    yield from check_text_of_type(text, definition.type, path)
    if definition.accept and definition.type in MEDIA_TYPES:
        yield from check_accepted_file(text, definition.accept, path)
    yield from _check_range(len(text), definition, path, unit=" characters")
    if definition.pattern is not None:
        yield from _check_pattern(text, definition.pattern, path)
    if definition.type is FieldType.SELECT and definition.options and text not in definition.options:
        message = f"{path} has to be one of {', '.join(definition.options)}."
        yield ContentProblem(field=path, kind="options", message=message)


def _check_range(size: float, definition: FieldDefinition, path: str, unit: str) -> Iterator[ContentProblem]:
    if definition.min is not None and size < definition.min:
        yield ContentProblem(field=path, kind="range", message=f"{path} has to be at least {definition.min:g}{unit}.")
    if definition.max is not None and size > definition.max:
        yield ContentProblem(field=path, kind="range", message=f"{path} may be at most {definition.max:g}{unit}.")


def _check_pattern(text: str, pattern: str, path: str) -> Iterator[ContentProblem]:
    try:
        if not contains_match(pattern, text):
            yield ContentProblem(field=path, kind="pattern", message=f"{path} does not match the pattern {pattern}.")
    except BadPatternError:
        message = f"The pattern of {path} cannot be used, so that it was not checked: {pattern[:100]}"
        yield ContentProblem(field=path, severity="warning", kind="bad_pattern", message=message)


def _check_members(
    value: list[Any] | dict[str, Any], definition: FieldDefinition, path: str, depth: int
) -> Iterator[ContentProblem]:
    if isinstance(value, list):
        yield from _check_range(len(value), definition, path, unit=" items")
    if depth >= MAX_NESTED_FIELDS:
        yield ContentProblem(
            field=path, kind="depth", message=f"{path} is nested deeper than {MAX_NESTED_FIELDS} levels."
        )
    elif isinstance(value, list) and definition.items:
        for index, item in enumerate(value):
            yield from _check_value(item, definition.items, f"{path}[{index}]", depth + 1)
    elif isinstance(value, dict):
        for name, member in (definition.fields or {}).items():
            yield from _check_value(value.get(name), member, f"{path}.{name}", depth + 1)


def _check_unique(value: Any, name: str, entry_id: str, unique_values: UniqueValues) -> Iterator[ContentProblem]:
    if owner := unique_values.find_other_owner(name, value, entry_id):
        yield ContentProblem(field=name, kind="unique", message=f"{name} has to be unique. The entry {owner} has it.")


def _describe_secret(path: str) -> ContentProblem:
    message = f"{path} looks like it holds a secret, and content is published. Remove it."
    return ContentProblem(field=path, kind="secret", message=message)


def _is_missing(value: Any) -> bool:
    return value is None or value == ""


def _has_type(value: Any, field_type: FieldType) -> bool:
    if field_type in NUMBER_TYPES:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, _TYPES.get(field_type, str))


_TYPES: dict[FieldType, type] = {FieldType.BOOLEAN: bool, FieldType.ARRAY: list, FieldType.OBJECT: dict}
_NAMES_OF_TYPES = (
    dict.fromkeys(FieldType, "a text")
    | dict.fromkeys(NUMBER_TYPES, "a number")
    | {FieldType.BOOLEAN: "true or false", FieldType.ARRAY: "a list", FieldType.OBJECT: "an object"}
)
