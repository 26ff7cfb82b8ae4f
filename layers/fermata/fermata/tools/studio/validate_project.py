"""Validate the models of a project, and the entries that the caller may see, for the tools of the studio."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE, ContentModel, ModelKind
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.validation.content_problem import MAX_CONTENT_PROBLEMS, ContentProblem
from fermata.content.validation.schema_health import check_schema
from fermata.content.validation.tenant_patterns import PatternBudget
from fermata.content.validation.validate_document import validate_document
from fermata.tools.studio.read_tools import iter_relations
from fermata.tools.studio.studio_access import StudioAccess


def validate_schema(_arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Return the health of the models that the caller may see."""
    report = check_schema(access.models, access.models)
    return {**report, "timestamp": access.opened.resources.clock.now_iso()}


def validate_project(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Return the health of models, and what is wrong in their entries: of one model or all, in one language or all."""
    models = access.models
    if wanted := arguments.get("model"):
        models = {wanted: access.require_model(wanted)}
    locale = access.choose_locale(arguments) if arguments.get("locale") else ""
    report = check_schema(models, access.models)
    problems = _ProblemCounter()
    checked, names = 0, _EntryNames(access)
    budget = PatternBudget()  # of all entries together: a project may not take longer than one document
    for model in models.values():
        entries = _keep_locale(model, access, locale)
        checked += len(entries)
        for name, problem in chain(
            _iter_invalid_values(model, entries, access, budget),
            _iter_lost_relations(model, entries, names),
        ):
            problems.add(model, name, problem)
    is_valid = report["valid"] and not problems.totals["error"]
    content = {"checked": checked, **problems.to_view()}
    return {**report, "valid": is_valid, "content": content, "timestamp": access.opened.resources.clock.now_iso()}


class _ProblemCounter:
    """Lists the first problems of each severity, and counts all of them."""

    def __init__(self) -> None:
        self.totals = {"error": 0, "warning": 0}
        self._listed: dict[str, list[dict[str, Any]]] = {"error": [], "warning": []}

    def add(self, model: ContentModel, entry_id: str, problem: ContentProblem) -> None:
        self.totals[problem.severity] += 1
        if len(self._listed[problem.severity]) < MAX_CONTENT_PROBLEMS:
            view = {"model": model.id, "entryId": entry_id, **problem.to_wire()}
            self._listed[problem.severity].append(view)

    def to_view(self) -> dict[str, Any]:
        return {
            "errors": self._listed["error"],
            "totalErrors": self.totals["error"],
            "warnings": self._listed["warning"],
            "totalWarnings": self.totals["warning"],
        }


class _EntryNames:
    """By which names relations point to the entries of each model: ids, and slugs of documents."""

    def __init__(self, access: StudioAccess) -> None:
        self._access = access
        self._names: dict[str, frozenset[str]] = {}

    def has(self, model_id: str, name: str) -> bool:
        """Return whether there is such an entry. Of a model that the caller may not see, any may be there."""
        if model_id not in self._names:
            model = self._access.models.get(model_id)
            if model is None:
                return True
            entries = self._access.list_entries(model)
            slugs = (content.slug for content in entries.values() if content.slug)
            self._names[model_id] = frozenset(chain(entries, slugs))
        return name in self._names[model_id]


def _keep_locale(model: ContentModel, access: StudioAccess, locale: str) -> dict[str, DocumentContent]:
    """Return the entries of a model with what they say in a locale, or in all that the caller may see."""
    entries = access.list_entries(model)
    allowed = access.permissions.allowed_locales
    if not model.i18n or (not locale and allowed is None):
        return entries
    wanted = {locale} if locale else allowed or frozenset()
    kept = {}
    for name in entries:
        content = access.whole.get_content(DocumentKey(model.id, name)) or DocumentContent()
        if wanted & content.locales.keys():  # else it is in other languages only
            said = {one: fields for one, fields in content.locales.items() if one in {*wanted, DEFINITION_LOCALE}}
            kept[name] = content.model_copy(update={"locales": said})
    return kept


def _iter_invalid_values(
    model: ContentModel, entries: dict[str, DocumentContent], access: StudioAccess, budget: PatternBudget
) -> Iterator[tuple[str, ContentProblem]]:
    sections = {one.id: one for one in access.models.values() if one.kind is ModelKind.SECTION}
    for name, content in entries.items():
        for problem in validate_document(content, model, sections, access.whole.record.locales, budget):
            yield name, problem


def _iter_lost_relations(
    model: ContentModel, entries: dict[str, DocumentContent], names: _EntryNames
) -> Iterator[tuple[str, ContentProblem]]:
    """Yield relations to entries that do not exist. They are warnings: the entry may be there tomorrow."""
    for name, content in entries.items():
        for place, fields in content.locales.items():
            for field, target, ref in iter_relations(model, fields):
                if ref and not names.has(target, ref):
                    path = field if place == DEFINITION_LOCALE else f"{place}.{field}"
                    message = f"{path} points to {target}/{ref[:80]}, which does not exist."
                    yield (
                        name,
                        ContentProblem(field=path, severity="warning", kind="relation_target", message=message),
                    )
