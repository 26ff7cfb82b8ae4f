"""Merge what a repository and a space have each made of the same project: documents by field, settings by member."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fermata.content.change_sets.merge_change_set import MODEL_MEMBERS
from fermata.content.change_sets.merge_contents import Conflicts, FieldConflict, Preference
from fermata.content.change_sets.merge_documents import WHOLE_DOCUMENT, merge_documents
from fermata.content.content_model import DEFINITION_LOCALE, META_MODEL, ContentModel, parse_content_model
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.documents.read_document import PROJECT_KEY
from fermata.content.files.project_files import ContentProject
from fermata.content.files.read_project import VOCABULARY_KEY
from fermata.content.model_changes import model_to_content

_EMPTY_PROJECT = ContentProject(locales=(), config={})


class MergedProject(NamedTuple):
    """What becomes of a project, and which fields nobody has decided."""

    project: ContentProject
    conflicts: Conflicts


def merge_projects(
    base: ContentProject | None, theirs: ContentProject, ours: ContentProject, prefer: Preference | None = None
) -> MergedProject:
    """Merge two projects that have begun with the same one.

    Args:
        base: What both have begun with; None at the first time.
        theirs: That of the repository.
        ours: That of the space.
        prefer: Whose values count where both have changed one field; without it, these are conflicts.
    """
    base, conflicts = base or _EMPTY_PROJECT, Conflicts()
    config, found = _merge_members(base.config, theirs.config, ours.config, prefer)
    if found:
        conflicts[PROJECT_KEY] = found
    context, _ = _merge_members(base.context or {}, theirs.context or {}, ours.context or {}, prefer or "theirs")
    models = _merge_models(base, theirs, ours, prefer, conflicts)
    documents = _merge_all_documents(base, theirs, ours, prefer, conflicts)
    vocabulary = documents.pop(VOCABULARY_KEY, None) or DocumentContent()
    merged = ContentProject(
        locales=_merge_locales(base, theirs, ours),
        config=config,
        context=context if context or theirs.context is not None or ours.context is not None else None,
        models=models,
        documents={key: content for key, content in documents.items() if key.model in models},
        vocabulary=vocabulary,
        empty_files=_merge_lists(base.empty_files, theirs.empty_files, ours.empty_files),
    )
    return MergedProject(merged, conflicts)


def _merge_models(
    base: ContentProject,
    theirs: ContentProject,
    ours: ContentProject,
    prefer: Preference | None,
    conflicts: Conflicts,
) -> dict[str, ContentModel]:
    """Merge models, each field by itself.

    One that a side has deleted is a conflict if the other one has changed or added documents of it.
    """
    merged: dict[str, ContentModel] = {}
    for name in dict.fromkeys([*theirs.models, *ours.models]):
        before, stored, own = (_describe_model(side.models.get(name)) for side in (base, theirs, ours))
        outcome = merge_documents(before, stored, own, prefer, MODEL_MEMBERS)
        if outcome.conflicts:
            conflicts[DocumentKey(META_MODEL, name)] = outcome.conflicts
        elif outcome.content is not None:
            merged[name] = parse_content_model(dict(outcome.content.get_locale(DEFINITION_LOCALE)))
    for side, keeper in (("theirs", theirs), ("ours", ours)):
        changed = {key.model for key, one in keeper.documents.items() if base.documents.get(key) != one}
        for name in changed - merged.keys():
            key = DocumentKey(META_MODEL, name)
            if prefer == side:
                merged[name] = keeper.models[name]
            elif prefer is None and key not in conflicts:
                states = ("in use" if name in one.models else "deleted" for one in (base, theirs, ours))
                conflicts[key] = (FieldConflict(WHOLE_DOCUMENT, *states),)
    return merged


def _describe_model(model: ContentModel | None) -> DocumentContent | None:
    return model_to_content(model) if model else None


def _merge_all_documents(
    base: ContentProject,
    theirs: ContentProject,
    ours: ContentProject,
    prefer: Preference | None,
    conflicts: Conflicts,
) -> dict[DocumentKey, DocumentContent]:
    sides = [{**side.documents, VOCABULARY_KEY: side.vocabulary} for side in (base, theirs, ours)]
    documents: dict[DocumentKey, DocumentContent] = {}
    for key in dict.fromkeys([*sides[1], *sides[2]]):
        before, stored, own = (side.get(key) for side in sides)
        merged = merge_documents(before, stored, own, prefer)
        if merged.conflicts:
            conflicts[key] = merged.conflicts
        elif merged.content is not None:
            documents[key] = merged.content
    return documents


def _merge_members(
    base: Mapping[str, Any], theirs: Mapping[str, Any], ours: Mapping[str, Any], prefer: Preference | None
) -> tuple[dict[str, Any], tuple[FieldConflict, ...]]:
    merged: dict[str, Any] = {}
    conflicts = []
    for name in dict.fromkeys([*theirs, *ours]):
        before, other, own = base.get(name), theirs.get(name), ours.get(name)
        if other != own and before not in (other, own) and prefer is None:
            conflicts.append(FieldConflict(name, before, other, own))
        takes_ours = other == before or (own != before and prefer == "ours")
        value = own if takes_ours else other
        if value is not None:
            merged[name] = value
    return merged, tuple(conflicts)


def _merge_lists(base: tuple[str, ...], theirs: tuple[str, ...], ours: tuple[str, ...]) -> tuple[str, ...]:
    """Return what both have, what one has added, and nothing that one has removed."""
    removed = (set(base) - set(theirs)) | (set(base) - set(ours))
    return tuple(one for one in dict.fromkeys([*theirs, *ours]) if one not in removed)


def _merge_locales(base: ContentProject, theirs: ContentProject, ours: ContentProject) -> tuple[str, ...]:
    default = ours.default_locale if theirs.locales[:1] == base.locales[:1] else theirs.default_locale
    kept = _merge_lists(base.locales, theirs.locales, ours.locales)
    return tuple(dict.fromkeys([default, *kept]))
