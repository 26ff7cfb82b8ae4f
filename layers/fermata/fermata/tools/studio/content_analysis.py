"""Analyse the content of a project: texts for search engines, missing languages, old entries, and how good it is."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE, ContentModel, ModelKind
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.tools.studio.studio_access import StudioAccess

STALE_DAYS = 90
_LONGEST_TITLE, _SHORTEST_TITLE = 60, 10
_MAX_ISSUES = 100
_BANDS = ((90, "excellent"), (75, "good"), (50, "fair"), (0, "poor"))
_TITLES, _DESCRIPTIONS = ("title", "name", "question", "headline"), ("description", "excerpt", "summary")


def analyze_brain(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Return one analysis of the content that the caller may see, or all of them."""
    wanted = arguments["type"]
    now = access.opened.resources.clock.now_iso()
    answer: dict[str, Any] = {"analysisType": wanted, "timestamp": now}
    entries = list(_iter_entries(access))
    if wanted in ("seo_audit", "full"):
        answer["seo"] = _audit_texts(entries)
    if wanted in ("locale_parity", "full"):
        answer["localeParity"] = _count_locales(entries, access.visible_locales)
    if wanted in ("stale_content", "full"):
        answer["staleContent"] = _find_stale(entries, access, now)
    if wanted in ("quality_score", "full"):
        answer["quality"] = _score_quality(entries, access.visible_locales)
    return answer


_Entry = tuple[ContentModel, str, DocumentContent]
_Entries = list[_Entry]


def _iter_entries(access: StudioAccess) -> Iterator[_Entry]:
    for model in access.models.values():
        if model.kind in (ModelKind.COLLECTION, ModelKind.DOCUMENT, ModelKind.SINGLETON):
            for name, content in access.list_entries(model).items():
                yield model, name, content


def iter_health_issues(access: StudioAccess) -> Iterator[str]:
    """Yield what entries lack that the caller may see: required values first, then languages."""
    for model, name, content in _iter_entries(access):
        required = [field for field, definition in model.fields.items() if definition.required]
        for locale, fields in _iter_whole_locales(content) if required else ():
            lacking = [field for field in required if fields.get(field) in (None, "")]
            if lacking:
                yield f"{model.id}/{name} ({locale}) lacks {', '.join(lacking)}"
    for model, name, content in _iter_entries(access):
        missing = [one for one in access.visible_locales if one not in content.locales] if model.i18n else []
        if missing:
            yield f"{model.id}/{name} is not translated into {', '.join(missing)}"


def _iter_whole_locales(content: DocumentContent) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what is said in each language, together with what is the same in all of them."""
    shared = content.get_locale(DEFINITION_LOCALE)
    translated = {name: fields for name, fields in content.locales.items() if name != DEFINITION_LOCALE}
    yield from ((name, {**shared, **fields}) for name, fields in (translated or {DEFINITION_LOCALE: {}}).items())


def _audit_texts(entries: _Entries) -> dict[str, Any]:
    issues = []
    for model, name, content in entries:
        described = next((field for field in _DESCRIPTIONS if field in model.fields), None)
        titled = next((field for field in _TITLES if field in model.fields), None)
        for locale, fields in _iter_whole_locales(content):
            place = {"model": model.id, "entryId": name, "locale": locale}
            if described and not fields.get(described):
                issues.append({**place, "issue": "missing_description"})
            title = fields.get(titled) if titled else None
            if isinstance(title, str) and len(title) > _LONGEST_TITLE:
                issues.append({**place, "issue": "title_too_long"})
            elif isinstance(title, str) and len(title) < _SHORTEST_TITLE:
                issues.append({**place, "issue": "title_too_short"})
    return {"issues": issues[:_MAX_ISSUES], "total": len(issues)}


def _count_locales(entries: _Entries, locales: tuple[str, ...]) -> dict[str, Any]:
    counts: dict[str, dict[str, int]] = {}
    missing = []
    for model, name, content in entries:
        if not model.i18n:
            continue
        own = counts.setdefault(model.id, dict.fromkeys(locales, 0))
        for locale in locales:
            if locale in content.locales:
                own[locale] += 1
            else:
                missing.append({"model": model.id, "entryId": name, "locale": locale})
    return {"counts": counts, "missing": missing[:_MAX_ISSUES], "totalMissing": len(missing)}


def _find_stale(entries: _Entries, access: StudioAccess, now: str) -> dict[str, Any]:
    limit = (datetime.fromisoformat(now) - timedelta(days=STALE_DAYS)).isoformat()
    found = []
    for model, name, _content in entries:
        changed = access.whole.versions[DocumentKey(model.id, name)].at
        if datetime.fromisoformat(changed) < datetime.fromisoformat(limit):
            found.append({"model": model.id, "entryId": name, "updatedAt": changed})
    found.sort(key=lambda one: one["updatedAt"])
    return {"olderThanDays": STALE_DAYS, "entries": found[:_MAX_ISSUES], "total": len(found)}


def _score_quality(entries: _Entries, locales: tuple[str, ...]) -> dict[str, Any]:
    """Score each entry: 100, less 2 for a missing required value, 5 without a record, 10 for a missing locale."""
    scores: dict[str, list[int]] = {}
    for model, _name, content in entries:
        required = [name for name, field in model.fields.items() if field.required]
        lacking = sum(
            1 for _, fields in _iter_whole_locales(content) for name in required if fields.get(name) in (None, "")
        )
        untranslated = len(set(locales) - set(content.locales)) if model.i18n else 0
        score = 100 - 2 * lacking - (0 if content.meta else 5) - 10 * untranslated
        scores.setdefault(model.id, []).append(max(0, score))
    every = [score for own in scores.values() for score in own]
    whole = round(sum(every) / len(every)) if every else 100
    models = {name: round(sum(own) / len(own)) for name, own in scores.items()}
    return {"score": whole, "band": next(band for least, band in _BANDS if whole >= least), "models": models}
