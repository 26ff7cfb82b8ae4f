"""Merge what a repository and a space have each made of the same project: documents by field, settings by member."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fermata.content.change_sets.merge_contents import Conflicts, FieldConflict, Preference
from fermata.content.change_sets.merge_documents import merge_documents
from fermata.content.content_model import META_MODEL
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.documents.read_document import PROJECT_KEY
from fermata.content.files.project_files import ContentProject
from fermata.content.files.read_project import VOCABULARY_KEY

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
    models, models_found = _merge_members(base.models, theirs.models, ours.models, prefer)
    for conflict in models_found:
        conflicts[DocumentKey(META_MODEL, conflict.path)] = (conflict,)
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
            conflicts.append(FieldConflict(name, *map(_show, (before, other, own))))
        takes_ours = other == before or (own != before and prefer == "ours")
        value = own if takes_ours else other
        if value is not None:
            merged[name] = value
    return merged, tuple(conflicts)


def _show(value: Any) -> Any:
    return value.to_wire() if hasattr(value, "to_wire") else value


def _merge_lists(base: tuple[str, ...], theirs: tuple[str, ...], ours: tuple[str, ...]) -> tuple[str, ...]:
    """Return what both have, what one has added, and nothing that one has removed."""
    removed = (set(base) - set(theirs)) | (set(base) - set(ours))
    return tuple(one for one in dict.fromkeys([*theirs, *ours]) if one not in removed)


def _merge_locales(base: ContentProject, theirs: ContentProject, ours: ContentProject) -> tuple[str, ...]:
    default = ours.default_locale if theirs.locales[:1] == base.locales[:1] else theirs.default_locale
    kept = _merge_lists(base.locales, theirs.locales, ours.locales)
    return tuple(dict.fromkeys([default, *kept]))
