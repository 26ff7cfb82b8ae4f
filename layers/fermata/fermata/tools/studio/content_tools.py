"""Save, delete, publish and translate content for the tools of the studio."""

import re
from functools import partial
from typing import Any

from fermata.content.built_in_models import VOCABULARY_MODEL
from fermata.content.content_model import ContentModel, ModelKind
from fermata.content.documents.change_document import SINGLETON_ID
from fermata.content.documents.document import DOCUMENT_ID, ContentStatus, DocumentContent, DocumentKey
from fermata.content.files.entry_meta import derive_document_id, derive_title
from fermata.content.files.read_project import VOCABULARY_KEY
from fermata.content.validation.content_problem import ContentProblem
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.tools.studio.branch_writes import ChangeContent, make_effect_id, write_documents
from fermata.tools.studio.project_permissions import CallerRefused
from fermata.tools.studio.studio_access import StudioAccess

_PLACEHOLDER_ID = re.compile(r"(?:new|entry|id)[-_]?[0-9]{0,4}|[0-9]{1,4}", re.IGNORECASE)
"""What models write for an entry that has no id yet."""
_ONE_DOCUMENT_KINDS = (ModelKind.SINGLETON, ModelKind.DICTIONARY)


def save_content(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Create entries, or change the fields that are named. A field that is null is removed."""
    model, locale = access.require_model(arguments["model"]), access.choose_locale(arguments)
    changes = {
        key: partial(_save_fields, access, model, locale, slug, fields)
        for key, (slug, fields) in _list_saved(arguments, model, access).items()
    }
    if not changes:
        raise InvalidRequest("'data' names no entry.")
    written = write_documents(access, "save_content", changes, target=model.id, locale=locale)
    return written | {"entryIds": [key.id for key in changes]}


def _list_saved(
    arguments: dict[str, Any], model: ContentModel, access: StudioAccess
) -> dict[DocumentKey, tuple[str, dict[str, Any]]]:
    """Return slug and fields of each entry that is saved."""
    data = arguments["data"]
    if model.kind in _ONE_DOCUMENT_KINDS:
        return {DocumentKey(model.id, SINGLETON_ID): ("", data)}
    if model.kind is ModelKind.DOCUMENT:
        slug = arguments.get("slug") or data.get("slug")
        if not isinstance(slug, str) or not slug:
            raise InvalidRequest(f"{model.id} has documents. Name the 'slug'.")
        body = {} if arguments.get("body") is None else {"body": arguments["body"]}
        named = {"slug": slug} if "slug" in model.fields else {}
        return {_find_document_key(access, model, slug): (slug, {**named, **data, **body})}
    if not all(isinstance(fields, dict) for fields in data.values()):
        raise InvalidRequest(f"{model.id} is a collection: 'data' is {{entryId: {{field: value}}}}.")
    known = access.list_entries(model)
    return {_choose_entry_key(access, model, name, known): ("", fields) for name, fields in data.items()}


def _find_document_key(access: StudioAccess, model: ContentModel, slug: str) -> DocumentKey:
    for entry_id, content in access.list_entries(model).items():
        if content.slug == slug:
            return DocumentKey(model.id, entry_id)
    return DocumentKey(model.id, derive_document_id(slug))


def _choose_entry_key(
    access: StudioAccess, model: ContentModel, name: str, known: dict[str, DocumentContent]
) -> DocumentKey:
    is_id = DOCUMENT_ID.fullmatch(name) is not None and not _PLACEHOLDER_ID.fullmatch(name)
    return DocumentKey(model.id, name if name in known or is_id else make_effect_id(access, f"entry {name}"))


def _save_fields(
    access: StudioAccess,
    model: ContentModel,
    locale: str,
    slug: str,
    fields: dict[str, Any],
    before: DocumentContent | None,
) -> DocumentContent:
    """Return a document with some fields of a locale replaced. It keeps its status, unless saving publishes.

    What is said in a further language begins as a draft, also if the others are published.
    """
    place, supported = access.place_of(model, locale), access.whole.record.locales
    content = before or DocumentContent(slug=slug)
    former, content = content, content.with_fields(place, fields)
    if access.publishes_at_once:
        content = content.with_locale_status(place, ContentStatus.PUBLISHED)
    elif place in content.list_further_locales(former) and content.status is ContentStatus.PUBLISHED:
        content = content.with_locale_status(place, ContentStatus.DRAFT)
    content = content.with_settled_status()
    mark = {**content.meta.get(place, {}), "source": "agent", "updated_by": access.opened.author.user}
    content = content.model_copy(update={"meta": {**content.meta, place: mark}})
    title = derive_title(model, content, supported[0]) or content.title
    return content.model_copy(update={"title": title[:500]})


def delete_content(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Delete entries; with a locale only their content in it; of a dictionary, keys."""
    model = access.require_model(arguments["model"])
    named, locale = arguments["entryIds"], access.choose_locale(arguments)
    place = access.place_of(model, locale)
    if model.kind is ModelKind.DICTIONARY:
        key, content = access.find_entry(model, SINGLETON_ID)
        missing = [name for name in named if name not in content.get_locale(place)]
        if missing:
            raise NotFound(f"{model.id} has no key {', '.join(missing)} in {locale}.")
        changes: dict[DocumentKey, ChangeContent] = {key: partial(_drop_keys, place, tuple(named))}
    else:
        keys = [access.find_entry(model, name)[0] for name in named]
        is_restricted = access.permissions.allowed_locales is not None
        only = place if model.i18n and ("locale" in arguments or is_restricted) else ""
        changes = {key: partial(_drop_locale, only) for key in keys}
    return write_documents(access, "delete_content", changes, target=model.id, locale=locale)


def _drop_keys(place: str, names: tuple[str, ...], before: DocumentContent | None) -> DocumentContent | None:
    return before and before.with_fields(place, dict.fromkeys(names))


def _drop_locale(place: str, before: DocumentContent | None) -> DocumentContent | None:
    """Return a document without a locale, or nothing if it has no other one."""
    if before is None or not place or set(before.locales) <= {place, "data"}:
        return None
    locales = {name: fields for name, fields in before.locales.items() if name != place}
    meta = {name: record for name, record in before.meta.items() if name != place}
    return before.model_copy(update={"locales": locales, "meta": meta}).with_settled_status()


def update_status(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Publish, archive or withdraw entries in a locale. Only owners and admins publish."""
    status = ContentStatus(arguments["status"])
    if status is ContentStatus.PUBLISHED and not access.permissions.merges_in_review:
        raise CallerRefused(
            "permission_denied", "Only owners and admins publish. Ask one of them, or save the entries as drafts."
        )
    model, locale = access.require_model(arguments["model"]), access.choose_locale(arguments)
    place = access.place_of(model, locale)
    keys = [access.find_entry(model, name)[0] for name in arguments["entryIds"]]
    for key in keys if model.i18n else ():
        _check_is_said(access, key, locale)
    changes: dict[DocumentKey, ChangeContent] = {key: partial(_change_status, place, status) for key in keys}
    written = write_documents(access, "update_status", changes, target=model.id, locale=locale)
    return written | {"status": status.value, "entryIds": [key.id for key in keys]}


def _check_is_said(access: StudioAccess, key: DocumentKey, locale: str) -> None:
    """Check that an entry says something in a language, if it does in any: nothing else can have a status in it.

    Raises:
        InvalidRequest: It does not.
    """
    spoken = (access.whole.get_content(key) or DocumentContent()).list_spoken_locales()
    if spoken and locale not in spoken:
        message = f"{key.model}/{key.id} says nothing in {locale}, so that it has no status there. Write it first."
        raise InvalidRequest(message)


def _change_status(place: str, status: ContentStatus, before: DocumentContent | None) -> DocumentContent | None:
    return before and before.with_locale_status(place, status)


def copy_locale(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Copy the content of a model to a locale that has none yet, as drafts."""
    model = access.require_model(arguments["model"])
    source = access.choose_locale({"locale": arguments["from"]})
    target = access.choose_locale({"locale": arguments["to"]})
    if not model.i18n:
        raise InvalidRequest(f"{model.id} is not translated: it has one content for all languages.")
    entries = access.list_entries(model)
    if any(content.get_locale(target) for content in entries.values()):
        return _refuse_copy("target_not_empty", f"{model.id} has content in {target}, which is not overwritten.")
    copied = [name for name, content in entries.items() if content.get_locale(source)]
    if not copied:
        return _refuse_copy("source_missing", f"{model.id} has no content in {source}.")
    changes: dict[DocumentKey, ChangeContent] = {
        DocumentKey(model.id, name): partial(copy_entry, source, target) for name in copied
    }
    return write_documents(access, "copy_locale", changes, target=model.id, locale=target)


def _refuse_copy(code: str, message: str) -> dict[str, Any]:
    return {"error": code, "message": message, "branch": "", "merged": False}


def copy_entry(source: str, target: str, before: DocumentContent | None) -> DocumentContent | None:
    """Return a document whose content in a locale is also that of another one, as a draft.

    Args:
        source: The locale that is copied.
        target: The locale that gets it.
        before: What the document says.
    """
    if before is None:
        return None
    copied = before.model_copy(update={"locales": {**before.locales, target: dict(before.get_locale(source))}})
    if copied.status is ContentStatus.DRAFT:
        return copied
    return copied.with_locale_status(target, ContentStatus.DRAFT)


def change_vocabulary(arguments: dict[str, Any], access: StudioAccess) -> dict[str, Any]:
    """Return the terms of the project, or change them. A term that is null is removed."""
    content = access.whole.get_content(VOCABULARY_KEY) or DocumentContent()
    allowed = access.permissions.allowed_locales
    if arguments.get("action", "read") == "read":
        terms = list_terms(content, allowed)
        return {"terms": terms, "total": len(terms)}
    terms = arguments.get("terms") or {}
    unknown = {locale for texts in terms.values() for locale in texts or ()} - set(access.whole.record.locales)
    if unknown:
        problem = ContentProblem(
            field="terms", kind="locale", message=f"The project has no locale {sorted(unknown)[0]}."
        )
        return {"branch": "", "valid": False, "merged": False, "errors": [problem.to_wire()]}
    if allowed is not None and any(locale not in allowed for texts in terms.values() for locale in texts or ()):
        raise CallerRefused("locale_not_allowed")
    changes: dict[DocumentKey, ChangeContent] = {VOCABULARY_KEY: partial(_change_terms, terms, allowed)}
    written = write_documents(access, "vocabulary", changes, target=VOCABULARY_MODEL.id)
    return written | {"terms": list_terms(_change_terms(terms, allowed, content), allowed)}


def _change_terms(
    terms: dict[str, Any], allowed: frozenset[str] | None, before: DocumentContent | None
) -> DocumentContent:
    """Return the vocabulary with changed terms. One that is removed stays in languages that the caller may not use."""
    content = before or DocumentContent()
    for term, texts in terms.items():
        for locale in content.locales if texts is None else texts:
            if texts is None and allowed is not None and locale not in allowed:
                continue
            content = content.with_fields(locale, {term: None if texts is None else texts[locale]})
    return content


def list_terms(vocabulary: DocumentContent, allowed: frozenset[str] | None = None) -> dict[str, dict[str, str]]:
    """Return the terms with their texts by locale.

    Args:
        vocabulary: What the project's vocabulary says.
        allowed: The only locales that are told; None for all.
    """
    terms: dict[str, dict[str, str]] = {}
    for locale, texts in vocabulary.locales.items():
        if allowed is not None and locale not in allowed and locale != "data":
            continue
        for term, text in texts.items():
            terms.setdefault(term, {}).update({locale: text} if locale != "data" else {})
    return terms
