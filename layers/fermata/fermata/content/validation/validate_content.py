"""Validate content against the fields of its model: secrets, then form, then what other entries have."""

from collections.abc import Iterator, Mapping
from typing import Any

from fermata.content.fields import MEDIA_TYPES, NUMBER_TYPES, RELATION_TYPES, FieldDefinition, FieldType
from fermata.content.validation.content_problem import ContentProblem, is_valid, limit_problems, name_choices
from fermata.content.validation.relation_shape_checks import check_relation
from fermata.content.validation.secret_words import describe_secret, find_secrets, looks_like_secret
from fermata.content.validation.tenant_patterns import (
    BadPatternError,
    PatternBudget,
    PatternTooCostly,
    contains_match,
)
from fermata.content.validation.unique_values import UniqueValues
from fermata.content.validation.value_format_checks import check_accepted_file, check_number_of_type, check_text_of_type

MAX_NESTED_FIELDS = 10


def validate_content(
    content: Mapping[str, Any],
    fields: Mapping[str, FieldDefinition],
    *,
    entry_id: str = "",
    unique_values: UniqueValues | None = None,
    budget: PatternBudget | None = None,
    is_partial: bool = False,
) -> list[ContentProblem]:
    """Return the problems of an entry's content, in the order of the fields.

    Members without a field are no problem, unless they hold a secret.

    Args:
        content: The whole content: an update is merged with what is stored before.
        fields: The fields of the model.
        entry_id: The id of the entry, which may keep its own unique values.
        unique_values: Those of all entries; None for a model with one entry.
        budget: Of the patterns of the whole document; without it, that of this content.
        is_partial: Whether the content may lack what is required.
    """
    checker = _ContentChecker(budget or PatternBudget(), is_partial=is_partial)

    def iter_problems() -> Iterator[ContentProblem]:
        for name, definition in fields.items():
            value = content.get(name)
            found = list(limit_problems(checker.check_value(value, definition, name, 0)))
            yield from found
            if unique_values and definition.unique and not _is_missing(value) and is_valid(found):
                yield from _check_unique(value, name, entry_id, unique_values)
        for name, value in content.items():
            if name not in fields:
                yield from find_secrets(value, name)

    return list(limit_problems(iter_problems()))


def validate_dictionary(content: Mapping[str, Any]) -> list[ContentProblem]:
    """Return the problems of a dictionary, whose members are texts."""
    return list(limit_problems(_check_texts(content)))


def _check_texts(content: Mapping[str, Any]) -> Iterator[ContentProblem]:
    for key, value in content.items():
        if not isinstance(value, str):
            yield ContentProblem(field=key, kind="type", message=f"{key} has to be a text.")
        elif looks_like_secret(value):
            yield describe_secret(key)


class _ContentChecker:
    """Checks values. The patterns of their fields have one budget together."""

    def __init__(self, budget: PatternBudget, *, is_partial: bool) -> None:
        self._budget = budget
        self._is_partial = is_partial

    def check_value(self, value: Any, definition: FieldDefinition, path: str, depth: int) -> Iterator[ContentProblem]:
        if _is_missing(value):
            if definition.required and not self._is_partial:
                yield ContentProblem(field=path, kind="required", message=f"{path} is required.")
                return
            # An empty text is a value that is missing, where a text may be. Forms send it for what is not filled in.
            if value is None or definition.type in _TEXT_TYPES or (self._is_partial and definition.required):
                return
        if isinstance(value, str) and looks_like_secret(value):
            yield describe_secret(path)
        if definition.type in RELATION_TYPES:
            yield from () if isinstance(value, str) else find_secrets(value, path)
            yield from check_relation(value, definition, path)
        elif not _has_type(value, definition.type):
            message = f"{path} has to be {_NAMES_OF_TYPES[definition.type]}."
            yield ContentProblem(field=path, kind="type", message=message)
        elif isinstance(value, str):
            yield from self._check_text(value, definition, path)
        elif isinstance(value, list | dict):
            yield from self._check_members(value, definition, path, depth)
        elif not isinstance(value, bool):
            yield from check_number_of_type(value, definition.type, path)
            yield from _check_range(value, definition, path, unit="")

    def _check_text(self, text: str, definition: FieldDefinition, path: str) -> Iterator[ContentProblem]:
        yield from check_text_of_type(text, definition.type, path)
        if definition.accept and definition.type in MEDIA_TYPES:
            yield from check_accepted_file(text, definition.accept, path)
        yield from _check_range(len(text), definition, path, unit=" characters")
        if definition.pattern is not None:
            yield from self._check_pattern(text, definition.pattern, path)
        if definition.type is FieldType.SELECT and definition.options and text not in definition.known_options:
            message = f"{path} has to be one of {name_choices(definition.options)}."
            yield ContentProblem(field=path, kind="options", message=message)

    def _check_pattern(self, text: str, pattern: str, path: str) -> Iterator[ContentProblem]:
        try:
            if not contains_match(pattern, text, self._budget):
                message = f"{path} does not match the pattern {pattern}."
                yield ContentProblem(field=path, kind="pattern", message=message)
            return
        except PatternTooCostly:
            message = f"The pattern of {path} may take too long for so much text, so that it was not checked"
        except BadPatternError:
            message = f"The pattern of {path} cannot be used, so that it was not checked"
        yield ContentProblem(field=path, severity="warning", kind="bad_pattern", message=f"{message}: {pattern[:100]}")

    def _check_members(
        self, value: list[Any] | dict[str, Any], definition: FieldDefinition, path: str, depth: int
    ) -> Iterator[ContentProblem]:
        if isinstance(value, list):
            yield from _check_range(len(value), definition, path, unit=" items")
        if depth >= MAX_NESTED_FIELDS:
            message = f"{path} is nested deeper than {MAX_NESTED_FIELDS} levels."
            yield ContentProblem(field=path, kind="depth", message=message)
        elif isinstance(value, list) and definition.items:
            for index, item in enumerate(value):
                yield from self.check_value(item, definition.items, f"{path}[{index}]", depth + 1)
        elif isinstance(value, list):
            yield from find_secrets(value, path)
        else:
            members = definition.fields or {}
            for name in definition.list_members(value):
                yield from self.check_value(value.get(name), members[name], f"{path}.{name}", depth + 1)
            yield from find_secrets({name: one for name, one in value.items() if name not in members}, path)


def _check_range(size: float, definition: FieldDefinition, path: str, unit: str) -> Iterator[ContentProblem]:
    if definition.min is not None and size < definition.min:
        yield ContentProblem(field=path, kind="range", message=f"{path} has to be at least {definition.min:g}{unit}.")
    if definition.max is not None and size > definition.max:
        yield ContentProblem(field=path, kind="range", message=f"{path} may be at most {definition.max:g}{unit}.")


def _check_unique(value: Any, name: str, entry_id: str, unique_values: UniqueValues) -> Iterator[ContentProblem]:
    if owner := unique_values.find_other_owner(name, value, entry_id):
        yield ContentProblem(field=name, kind="unique", message=f"{name} has to be unique. The entry {owner} has it.")


def _is_missing(value: Any) -> bool:
    return value is None or value == ""


def _has_type(value: Any, field_type: FieldType) -> bool:
    if field_type in NUMBER_TYPES:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, _TYPES.get(field_type, str))


_TYPES: dict[FieldType, type] = {FieldType.BOOLEAN: bool, FieldType.ARRAY: list, FieldType.OBJECT: dict}
_TEXT_TYPES = frozenset(FieldType) - NUMBER_TYPES - frozenset(_TYPES) - {FieldType.RELATIONS}
_NAMES_OF_TYPES = (
    dict.fromkeys(FieldType, "a text")
    | dict.fromkeys(NUMBER_TYPES, "a number")
    | {FieldType.BOOLEAN: "true or false", FieldType.ARRAY: "a list", FieldType.OBJECT: "an object"}
)
