"""Validate a whole document against its model: its slug, its locales, and the content of each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fermata.content.built_in_models import ASSET_MODEL
from fermata.content.content_model import DEFINITION_LOCALE, ContentModel, ModelKind
from fermata.content.documents.document import DOCUMENT_SLUG, MAX_DOCUMENT_TITLE_CHARS, SLUG_RULE, DocumentContent
from fermata.content.page_sections import list_page_sections
from fermata.content.validation.alternative_texts import ALT_TEXTS_FIELD, find_alternative_text_problems
from fermata.content.validation.content_problem import ContentProblem, limit_problems
from fermata.content.validation.script_addresses import find_script_links
from fermata.content.validation.secret_words import describe_secret, find_secrets, looks_like_secret
from fermata.content.validation.tenant_patterns import PatternBudget
from fermata.content.validation.validate_content import validate_content, validate_dictionary
from fermata.domain.errors import InvalidRequest

_KINDS_WITH_SLUG = (ModelKind.PAGE, ModelKind.DOCUMENT)


class ContentRefused(InvalidRequest):
    """Content breaks the rules of its model. `details` lists the problems."""

    code = "contentInvalid"

    def __init__(self, problems: Sequence[ContentProblem]) -> None:
        errors = [problem for problem in problems if problem.severity == "error"]
        super().__init__(" ".join(problem.message for problem in errors[:5]))
        self.problems = tuple(problems)
        self.details = {"problems": [problem.to_wire() for problem in limit_problems(problems)]}


def validate_document(
    content: DocumentContent,
    model: ContentModel,
    models: Mapping[str, ContentModel],
    locales: Sequence[str],
    budget: PatternBudget | None = None,
) -> list[ContentProblem]:
    """Return the problems of a document.

    Args:
        content: The whole document.
        model: Its model.
        models: The section models of a page, by id. Sections of others are not checked.
        locales: The locales of its space.
        budget: Of the patterns of several documents; without it, that of this one.
    """
    return list(limit_problems(_iter_problems(content, model, models, locales, budget or PatternBudget())))


def _iter_problems(
    content: DocumentContent,
    model: ContentModel,
    models: Mapping[str, ContentModel],
    locales: Sequence[str],
    budget: PatternBudget,
) -> Iterator[ContentProblem]:
    yield from _check_slug(content, model)
    yield from _check_locales(content, model, locales)
    if model.kind is ModelKind.DICTIONARY:
        for locale, texts in content.locales.items():
            yield from _prefix(validate_dictionary(texts), locale)
    elif model.kind is ModelKind.PAGE:
        yield from validate_content(content.get_locale(DEFINITION_LOCALE), model.fields, budget=budget)
        yield from _check_sections(content, models, budget)
    else:
        yield from _check_fields(content, model, budget)
    if model.id == ASSET_MODEL.id:
        yield from find_alternative_text_problems(content.get_locale(DEFINITION_LOCALE).get(ALT_TEXTS_FIELD))
    yield from find_script_links(content.locales)


def _check_slug(content: DocumentContent, model: ContentModel) -> Iterator[ContentProblem]:
    if content.slug and not DOCUMENT_SLUG.fullmatch(content.slug):
        yield ContentProblem(field="slug", kind="slug", message=SLUG_RULE)
    if not content.slug and model.kind in _KINDS_WITH_SLUG:
        yield ContentProblem(field="slug", kind="required", message="slug is required.")
    if len(content.title) > MAX_DOCUMENT_TITLE_CHARS:
        message = f"title may be at most {MAX_DOCUMENT_TITLE_CHARS} characters."
        yield ContentProblem(field="title", kind="range", message=message)
    if looks_like_secret(content.title):
        yield describe_secret("title")


def _check_locales(content: DocumentContent, model: ContentModel, locales: Sequence[str]) -> Iterator[ContentProblem]:
    known = {DEFINITION_LOCALE, *(locales if model.i18n else ())}
    for locale in content.locales:
        if locale not in known:
            message = f"The locale {locale} is none of {', '.join(sorted(known))}."
            yield ContentProblem(field=locale, kind="locale", message=message)


def _check_fields(content: DocumentContent, model: ContentModel, budget: PatternBudget) -> Iterator[ContentProblem]:
    """Check each locale together with what is the same in all of them."""
    shared = content.get_locale(DEFINITION_LOCALE)
    translated = {name: fields for name, fields in content.locales.items() if name != DEFINITION_LOCALE}
    if not translated:
        yield from validate_content(shared, model.fields, budget=budget)
    for locale, fields in translated.items():
        yield from _prefix(validate_content({**shared, **fields}, model.fields, budget=budget), locale)


def _check_sections(
    content: DocumentContent, models: Mapping[str, ContentModel], budget: PatternBudget
) -> Iterator[ContentProblem]:
    """Check the values that sections have. One that is still empty lacks nothing."""
    sections = {section.id: models.get(section.model) for section in list_page_sections(content)}
    for locale, contents in content.locales.items():
        if locale == DEFINITION_LOCALE:
            continue
        for section_id, fields in contents.items():
            if section_id not in sections:
                message = f"The page has no section {section_id}."
                yield ContentProblem(field=f"{locale}.{section_id}", kind="section", message=message)
            elif (model := sections[section_id]) is None:
                yield from find_secrets(fields, f"{locale}.{section_id}")
            else:
                yield from _check_section(fields, model, f"{locale}.{section_id}", budget)


def _check_section(fields: Any, model: ContentModel, path: str, budget: PatternBudget) -> Iterator[ContentProblem]:
    if not isinstance(fields, dict):
        yield ContentProblem(field=path, kind="type", message=f"{path} has to be an object.")
        return
    yield from _prefix(validate_content(fields, model.fields, budget=budget, is_partial=True), path)


def _prefix(problems: Sequence[ContentProblem], path: str) -> Iterator[ContentProblem]:
    if path == DEFINITION_LOCALE:
        yield from problems
        return
    for problem in problems:
        yield problem.model_copy(update={"field": f"{path}.{problem.field}"})
