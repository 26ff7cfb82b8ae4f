"""Read models, content, relations, branches and health for the tools of the studio."""

import json
from typing import Any

from fermata.content.change_sets.change_set import ChangeSet
from fermata.content.change_sets.change_set_backlog import HealthThresholds, judge_change_set_health
from fermata.content.content_model import ContentModel, ModelKind
from fermata.content.documents.change_document import SINGLETON_ID
from fermata.content.documents.document import DocumentContent
from fermata.content.fields import RELATION_TYPES, FieldDefinition
from fermata.content.files.entry_meta import format_locale_record
from fermata.domain.errors import NotFound
from fermata.tools.studio.studio_access import StudioAccess

MAX_ENTRY_PREVIEW_CHARS = 200
_ONE_DOCUMENT_KINDS = (ModelKind.SINGLETON, ModelKind.DICTIONARY)


def list_studio_models(_arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Return the definitions of the models that the caller may see, those of the project first: results are cut."""
    models = sorted(access.models.values(), key=lambda model: (model.built_in, model.id))
    return {"models": [_describe_model(model) for model in models]}


def _describe_model(model: ContentModel) -> dict[str, Any]:
    """Return a definition without what says nothing."""
    own = model.to_wire()
    said = {name: value for name, value in own.items() if name == "i18n" or not _says_nothing(value)}
    return said | {"fields": {name: _describe_field(field) for name, field in own["fields"].items()}}


def _describe_field(field: dict[str, Any]) -> dict[str, Any]:
    said = {name: value for name, value in field.items() if name == "default" or not _says_nothing(value)}
    if isinstance(items := said.get("items"), dict):
        said["items"] = _describe_field(items)
    if isinstance(members := said.get("fields"), dict):
        said["fields"] = {name: _describe_field(member) for name, member in members.items()}
    return {name: value for name, value in said.items() if value is not None}


def _says_nothing(value: Any) -> bool:
    """Return whether a member is as without it. A bound of 0 is none of these."""
    return value is None or value is False or value in ("", [])


def query_brain(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Return the content of a model in a locale, or one entry of it."""
    model, locale = access.require_model(arguments["model"]), access.choose_locale(arguments)
    place = access.place_of(model, locale)
    answer: dict[str, Any] = {"modelId": model.id, "locale": locale, "kind": model.kind.value}
    if entry_id := arguments.get("entryId"):
        key, content = access.find_entry(model, entry_id)
        found = content.locales.get(place)
        answer |= {"entryId": key.id, "data": found, "meta": format_locale_record(content, place)}
        return answer if found is not None else answer | {"error": f"{key.id} is not translated to {locale}."}
    entries = {name: one for name, one in access.list_entries(model).items() if place in one.locales}
    if model.kind in _ONE_DOCUMENT_KINDS:
        only = entries.get(SINGLETON_ID)
        if only is None:
            return answer | {"data": None, "error": f"{model.id} has no content in {locale}."}
        return answer | {"data": only.locales[place], "meta": format_locale_record(only, place)}
    named = {_name_entry(model, name, one): one for name, one in entries.items()}
    data = {name: one.locales[place] for name, one in named.items()}
    meta = {name: record for name, one in named.items() if (record := format_locale_record(one, place))}
    return answer | {"data": data, "meta": meta}


def _name_entry(model: ContentModel, entry_id: str, content: DocumentContent) -> str:
    return content.slug if model.kind is ModelKind.DOCUMENT else entry_id


def search_brain(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Return the entries in which a text occurs, in capital or small letters."""
    query, limit = arguments["query"].casefold(), arguments.get("limit", 10)
    models = access.models
    if wanted := arguments.get("model"):
        models = {wanted: access.require_model(wanted)}
    allowed = access.permissions.allowed_locales
    results: list[dict[str, Any]] = []
    total = 0
    for model in models.values():
        for name, content in access.list_entries(model).items():
            for locale, fields in content.locales.items():
                if model.i18n and allowed is not None and locale not in allowed:
                    continue
                text = json.dumps(fields, ensure_ascii=False)
                if query not in text.casefold():
                    continue
                total += 1
                if len(results) < limit:
                    entry = {"modelId": model.id, "entryId": _name_entry(model, name, content), "locale": locale}
                    results.append(entry | {"preview": text[:MAX_ENTRY_PREVIEW_CHARS]})
    return {"query": arguments["query"], "results": results, "total": total}


def expand_relations(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Return what an entry points to, and what points to it."""
    model = access.require_model(arguments["model"])
    locale = access.choose_locale(arguments)
    key, content = access.find_entry(model, arguments["entryId"])
    direction, depth = arguments.get("direction", "both"), arguments.get("depth", 1)
    answer: dict[str, Any] = {"entry": {"model": model.id, "entryId": _name_entry(model, key.id, content)}}
    if direction in ("forward", "both"):
        answer["forward"] = _expand_forward(access, model, content, locale, depth)
    if direction in ("reverse", "both"):
        answer["reverse"] = _find_reverse(access, model, {key.id, content.slug} - {""}, locale)
    return answer


def _expand_forward(
    access: StudioAccess, model: ContentModel, content: DocumentContent, locale: str, depth: int
) -> list[dict[str, Any]]:
    found = []
    fields = content.get_locale(access.place_of(model, locale))
    for name, target, ref in iter_relations(model, fields):
        one: dict[str, Any] = {"field": name, "model": target, "ref": ref, "found": False}
        other = access.models.get(target)
        if other is not None:
            try:
                _, there = access.find_entry(other, ref)
                one |= {"found": True, "preview": _preview(there, access.place_of(other, locale))}
                if depth > 1:
                    one["forward"] = _expand_forward(access, other, there, locale, depth - 1)
            except NotFound:
                pass
        found.append(one)
    return found


def _find_reverse(access: StudioAccess, model: ContentModel, names: set[str], locale: str) -> list[dict[str, Any]]:
    found = []
    for other in access.models.values():
        for entry_id, content in access.list_entries(other).items():
            place = access.place_of(other, locale)
            for field, target, ref in iter_relations(other, content.get_locale(place)):
                if target == model.id and ref in names:
                    entry = {"model": other.id, "entryId": _name_entry(other, entry_id, content), "field": field}
                    found.append(entry | {"preview": _preview(content, place)})
    return found


def _preview(content: DocumentContent, place: str) -> str:
    return json.dumps(content.get_locale(place), ensure_ascii=False)[:MAX_ENTRY_PREVIEW_CHARS]


def iter_relations(model: ContentModel, fields: Any) -> list[tuple[str, str, str]]:
    """Return the field, the target model and the entry of each relation of a content."""
    found = []
    for name, definition in model.fields.items():
        if definition.type in RELATION_TYPES:
            value = fields.get(name)
            for one in value if isinstance(value, list) else [value]:
                found += _read_relation(name, definition, one)
    return found


def _read_relation(name: str, definition: FieldDefinition, value: Any) -> list[tuple[str, str, str]]:
    if isinstance(value, dict):
        target, ref = value.get("model"), value.get("ref")
        return [(name, target, ref)] if isinstance(target, str) and isinstance(ref, str) else []
    return [(name, definition.model[0], value)] if isinstance(value, str) and len(definition.model) == 1 else []


def list_studio_branches(_arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Return the branches that wait."""
    return {"branches": [_describe_branch(one) for one in access.visible_branches]}


def _describe_branch(branch: ChangeSet) -> dict[str, Any]:
    """Return a branch, with the title that a person has given it: the name of such a one says nothing."""
    titled = {} if branch.title in ("", branch.branch) else {"title": branch.title}
    return {"name": branch.branch_name, **titled, "sha": f"{branch.version:040x}", "protected": False}


def check_studio_branches(_arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Return how many branches wait, and whether that is too many."""
    limits, count = HealthThresholds.from_settings(access.whole.settings), len(access.branches)
    return {
        "status": judge_change_set_health(count, limits),
        "unmergedCount": count,
        "lastChecked": access.opened.resources.clock.now_iso(),
        "thresholds": {"warning": limits.warning, "blocked": limits.blocked},
    }
