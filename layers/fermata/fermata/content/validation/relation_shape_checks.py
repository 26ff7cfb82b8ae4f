"""Check the form of relations: an id, or a model and an id where several models may be meant."""

from collections.abc import Iterator
from typing import Any

from fermata.content.fields import FieldDefinition, FieldType
from fermata.content.validation.content_problem import ContentProblem, name_choices


def check_relation(value: Any, definition: FieldDefinition, path: str) -> Iterator[ContentProblem]:
    """Yield what is wrong with the value of a `relation` or `relations` field. Whether entries exist is not checked."""
    if definition.type is FieldType.RELATION:
        yield from _check_target(value, definition, path)
    elif not isinstance(value, list):
        yield ContentProblem(field=path, kind="array", message=f"{path} has to be a list of ids.")
    else:
        yield from _check_count(len(value), definition, path)
        for index, target in enumerate(value):
            yield from _check_target(target, definition, f"{path}[{index}]")


def _check_count(count: int, definition: FieldDefinition, path: str) -> Iterator[ContentProblem]:
    """Yield a problem if a list has fewer or more items than its field allows."""
    if definition.min is not None and count < definition.min:
        yield ContentProblem(field=path, kind="count", message=f"{path} needs at least {definition.min:g} items.")
    if definition.max is not None and count > definition.max:
        yield ContentProblem(field=path, kind="count", message=f"{path} may have at most {definition.max:g} items.")


def _check_target(value: Any, definition: FieldDefinition, path: str) -> Iterator[ContentProblem]:
    models = definition.model
    if len(models) <= 1:
        if not isinstance(value, str):
            yield ContentProblem(field=path, kind="relation_shape", message=f"{path} has to be the id of an entry.")
    elif (
        not isinstance(value, dict) or not isinstance(value.get("model"), str) or not isinstance(value.get("ref"), str)
    ):
        message = f'{path} has to be {{"model": …, "ref": …}}, because it may point to {name_choices(models)}.'
        yield ContentProblem(field=path, kind="relation_shape", message=message)
    elif value["model"] not in definition.known_targets:
        message = f"{path} points to the model {value['model'][:80]}. It has to be one of {name_choices(models)}."
        yield ContentProblem(field=path, kind="relation_target", message=message)
