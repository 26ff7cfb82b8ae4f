"""Take a project apart for clients that keep a copy of it: settings, models, and entries by model and language."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE, ContentModel, ModelKind
from fermata.content.documents.document import DocumentContent
from fermata.content.files.entry_meta import format_locale_record, format_own_record
from fermata.content.files.part_tree import PartName, PartTree, make_part_tree
from fermata.content.files.project_files import VOCABULARY_VERSION
from fermata.content.files.read_project import CACHED_SPACE_SECONDS, VOCABULARY_KEY
from fermata.content.validation.schema_health import check_schema
from fermata.tools.studio.content_tools import list_terms
from fermata.tools.studio.studio_access import StudioAccess

MODELS_SECTION, CONTENT_SECTION = "models", "content"
PART_SECTIONS = (
    *("config", "contentContext", "vocabulary", "contentSummary", "schemaHealth"),
    MODELS_SECTION,
    CONTENT_SECTION,
)
"""In the order in which they are sent."""
_TOLD_TO_ALL = ("version", "stack", "workflow", "domains")
"""Settings that the assistant tells somebody, too, who may see a part of the project only."""
_FORM = 1
"""The form of the parts. It is a part of each view, so that another release sends all of them."""


def list_project_parts(access: StudioAccess) -> dict[PartName, Any]:
    """Return what the caller may see of a project, as JSON values.

    Args:
        access: The project, opened for the caller.
    """
    models, whole = access.models, access.whole
    content = {name: part for model in models.values() for name, part in _iter_entry_parts(access, model)}
    vocabulary = whole.get_content(VOCABULARY_KEY)
    terms = list_terms(vocabulary, access.permissions.allowed_locales) if vocabulary else {}
    values: dict[str, Any] = {
        "config": _describe_config(access),
        "contentContext": None if access.permissions.is_restricted else whole.settings.get("context"),
        "vocabulary": {"version": VOCABULARY_VERSION, "terms": terms},
        "contentSummary": _summarize(models, content),
        "schemaHealth": check_schema(models, models),
    }
    return {
        **{(section, "", ""): value for section, value in values.items()},
        **{(MODELS_SECTION, name, ""): model.to_wire() for name, model in models.items()},
        **content,
    }


def read_project_tree(access: StudioAccess) -> PartTree:
    """Return the tree of what the caller may see. As long as the project is as it was, it is not made anew.

    Args:
        access: The project, opened for the caller.
    """
    view = describe_view(access)
    key, cache = ("part tree", access.opened.space, view), access.opened.resources.cache
    known: tuple[str, PartTree] | None = cache.get_value(key)
    if known is not None and known[0] == access.whole.tree:
        return known[1]
    tree = make_part_tree(view, list_project_parts(access))
    cache.put_value(key, CACHED_SPACE_SECONDS, (access.whole.tree, tree))
    return tree


def describe_view(access: StudioAccess) -> str:
    """Return in a text which models and languages the caller may see."""
    permissions = access.permissions
    only = [permissions.allowed_models, permissions.allowed_locales]
    return json.dumps([_FORM, *(None if names is None else sorted(names) for names in only)])


def sort_part_name(name: PartName) -> tuple[int, str, str]:
    """Return the place of a part in the order in which they are sent."""
    section, place, entry = name
    return PART_SECTIONS.index(section), place, entry


def _iter_entry_parts(access: StudioAccess, model: ContentModel) -> Iterator[tuple[PartName, dict[str, Any]]]:
    """Yield the content of each entry in each language, with what is known of it besides."""
    default = access.whole.record.default_locale
    for entry_id, content in access.list_entries(model).items():
        own = format_own_record(content, model, entry_id, default)
        entry = content.slug if model.kind is ModelKind.DOCUMENT and content.slug else entry_id
        for place in _list_places(access, model, content):
            meta = own | (format_locale_record(content, place) or {})
            part = {"kind": model.kind.value, "data": dict(content.get_locale(place)), "meta": meta}
            yield (CONTENT_SECTION, f"{model.id}:{place}", entry), part


def _list_places(access: StudioAccess, model: ContentModel, content: DocumentContent) -> list[str]:
    """Return the languages in which an entry is sent. One without content is sent to who may see all of them."""
    said = {*content.locales, *content.meta}
    allowed = access.permissions.allowed_locales if model.i18n else None
    return sorted(said) or [DEFINITION_LOCALE] if allowed is None else sorted(said & allowed)


def _describe_config(access: StudioAccess) -> dict[str, Any]:
    own, record = dict(access.config), access.whole.record
    if access.permissions.is_restricted:
        own = {name: own[name] for name in _TOLD_TO_ALL if name in own}
    return own | {"locales": {"default": record.default_locale, "supported": list(record.locales)}}


def _summarize(models: Mapping[str, ContentModel], content: Mapping[PartName, Any]) -> dict[str, Any]:
    """Return for each model how many entries it has, and how many in each language."""
    entries: dict[str, set[str]] = defaultdict(set)
    locales: dict[str, dict[str, int]] = defaultdict(dict)
    for _, place, entry in content:
        model, _, locale = place.partition(":")
        entries[model].add(entry)
        locales[model][locale] = locales[model].get(locale, 0) + 1
    return {
        name: {"kind": model.kind.value, "entries": len(entries[name]), "locales": locales[name]}
        for name, model in models.items()
    }
