"""Judge the definitions of models: what is wrong in them, and how healthy they are."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from fermata.content.content_model import ContentModel, ModelKind
from fermata.content.fields import MEDIA_TYPES, NUMBER_TYPES, RELATION_TYPES, FieldDefinition, FieldType
from fermata.content.validation.tenant_patterns import BadPatternError, contains_match

Severity = Literal["critical", "error", "warning"]
_COSTS: dict[Severity, int] = {"critical": 20, "error": 10, "warning": 3}
_SIZED_TYPES = NUMBER_TYPES | {
    FieldType.STRING, FieldType.TEXT, FieldType.MARKDOWN, FieldType.RICHTEXT, FieldType.CODE, FieldType.ARRAY,
    FieldType.RELATIONS,
}  # fmt: skip
MAX_ADVISED_DEPTH = 2
MAX_ADVISED_FIELDS = 50
MAX_LISTED_WARNINGS = 1_000


class SchemaWarning(NamedTuple):
    """What is wrong in a model.

    Attributes:
        field: The path of the field; empty for the model itself.
    """

    model: str
    field: str
    kind: str
    severity: Severity
    message: str


def check_schema(models: Mapping[str, ContentModel], known: Mapping[str, ContentModel]) -> dict[str, Any]:
    """Return the health of models: the warnings, and a score from 0 to 100.

    Args:
        models: The models that are judged.
        known: All models that relations may point to.
    """
    warnings = [warning for model in models.values() for warning in iter_schema_warnings(model, known)]
    broken = {warning.model for warning in warnings if warning.severity != "warning"}
    score = 100 - sum(_COSTS[warning.severity] for warning in warnings)
    return {
        "valid": not broken,
        "warnings": [warning._asdict() for warning in _select_worst(warnings)],
        "healthScore": max(0, score),
        "modelCount": len(models),
        "validModels": len(models) - len(broken),
    }


def _select_worst(warnings: list[SchemaWarning]) -> list[SchemaWarning]:
    """Return as many warnings as somebody reads, in their order; of more, those that matter least are left out."""
    if len(warnings) <= MAX_LISTED_WARNINGS:
        return warnings
    places = sorted(range(len(warnings)), key=lambda place: -_COSTS[warnings[place].severity])
    return [warnings[place] for place in sorted(places[:MAX_LISTED_WARNINGS])]


def iter_schema_warnings(model: ContentModel, known: Mapping[str, ContentModel]) -> Iterator[SchemaWarning]:
    """Yield what is wrong in a model.

    Args:
        model: The model.
        known: All models that relations may point to.
    """
    extra = model.model_extra or {}

    def warn(kind: str, severity: Severity, message: str, field: str = "") -> SchemaWarning:
        return SchemaWarning(model.id, field, kind, severity, message)

    if not model.title:
        yield warn("missing_name", "warning", "It has no name for people.")
    if not model.description:
        yield warn("missing_description", "warning", "It has no description.")
    if model.kind is ModelKind.DICTIONARY and model.fields:
        yield warn("dictionary_fields", "error", "A dictionary has texts by keys, and no fields.")
    if model.kind is not ModelKind.DICTIONARY and not model.fields:
        yield warn("no_fields", "critical", "It has no fields.")
    if len(model.fields) > MAX_ADVISED_FIELDS:
        yield warn("many_fields", "warning", f"It has more than {MAX_ADVISED_FIELDS} fields. Split it.")
    title = extra.get("title_field")
    if title and model.kind is not ModelKind.DICTIONARY and title not in model.fields:
        yield warn("title_field", "error", f"Its title_field {title} is none of its fields.")
    if model.kind is ModelKind.DOCUMENT and "slug" not in model.fields:
        yield warn("document_slug", "warning", "A document should have a field slug.")
    if model.kind is ModelKind.DOCUMENT and "body" in model.fields:
        yield warn("document_body", "warning", "The text of a document is its body, which needs no field.")
    if model.kind is ModelKind.COLLECTION and model.fields and not any(one.required for one in model.fields.values()):
        yield warn("no_required", "warning", "None of its fields is required.")
    for name, definition in model.fields.items():
        yield from (
            SchemaWarning(model.id, path, kind, severity, message)
            for path, kind, severity, message in _iter_field_warnings(name, definition, model, known, 1)
        )


_FieldWarning = tuple[str, str, Severity, str]


def _iter_field_warnings(
    path: str, field: FieldDefinition, model: ContentModel, known: Mapping[str, ContentModel], depth: int
) -> Iterator[_FieldWarning]:
    yield from _check_limits(path, field)
    yield from _check_targets(path, field, model, known)
    yield from _check_options(path, field)
    if field.type is FieldType.ARRAY and field.items is None:
        yield path, "array_items", "error", "An array says what its items are."
    if field.type is FieldType.OBJECT and not field.fields:
        yield path, "object_fields", "error", "An object says what its fields are."
    if field.items is not None and field.type is not FieldType.ARRAY:
        yield path, "items_ignored", "warning", "Only an array has items."
    if field.fields and field.type is not FieldType.OBJECT:
        yield path, "fields_ignored", "warning", "Only an object has fields."
    if depth > MAX_ADVISED_DEPTH and field.type is FieldType.OBJECT:
        yield path, "deep_nesting", "warning", f"It is nested deeper than {MAX_ADVISED_DEPTH} levels."
    for name, member in (field.fields or {}).items():
        yield from _iter_field_warnings(f"{path}.{name}", member, model, known, depth + 1)
    if field.items is not None:
        yield from _iter_field_warnings(f"{path}[]", field.items, model, known, depth + 1)


def _check_limits(path: str, field: FieldDefinition) -> Iterator[_FieldWarning]:
    if field.min is not None and field.max is not None and field.min > field.max:
        yield path, "min_over_max", "error", "Its min is greater than its max."
    if (field.min is not None or field.max is not None) and field.type not in _SIZED_TYPES:
        yield path, "limits_ignored", "warning", f"A {field.type.value} has no min and no max."
    if field.pattern is not None:
        try:
            contains_match(field.pattern, "")
        except BadPatternError:
            yield path, "bad_pattern", "error", "Its pattern cannot be used."
    if (field.accept is not None or field.max_size is not None) and field.type not in MEDIA_TYPES:
        yield path, "accept_ignored", "warning", "Only media have accept and maxSize."
    if field.unique and field.type in (FieldType.BOOLEAN, FieldType.ARRAY, FieldType.OBJECT):
        yield path, "unique_type", "warning", f"A {field.type.value} can hardly be unique."
    if field.required and field.default is not None:
        yield path, "required_default", "warning", "A required field needs no default."


def _check_targets(
    path: str, field: FieldDefinition, model: ContentModel, known: Mapping[str, ContentModel]
) -> Iterator[_FieldWarning]:
    if field.type not in RELATION_TYPES:
        if field.model:
            yield path, "model_ignored", "warning", "Only relations have a model."
        return
    if not field.model:
        yield path, "relation_model", "critical", "A relation says to which model it points."
    for target in field.model:
        if target not in known:
            yield path, "relation_target", "critical", f"There is no model {target}."
        elif known[target].kind in (ModelKind.SINGLETON, ModelKind.DICTIONARY):
            yield path, "relation_kind", "error", f"{target} has no entries to point to."
        elif target == model.id and field.required:
            yield path, "relation_self", "warning", "The first entry cannot point to another one."


def _check_options(path: str, field: FieldDefinition) -> Iterator[_FieldWarning]:
    if field.type is not FieldType.SELECT:
        if field.options:
            yield path, "options_ignored", "warning", "Only a select has options."
        return
    if not field.options:
        yield path, "select_options", "error", "A select has options."
    elif len(set(field.options)) < len(field.options):
        yield path, "options_repeated", "warning", "An option is there twice."
    if field.default is not None and field.options and field.default not in field.options:
        yield path, "default_option", "error", "Its default is none of its options."
