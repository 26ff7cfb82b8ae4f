"""Convert what is known of documents besides their content: a record for each locale, and one for the whole."""

import hashlib
from collections.abc import Mapping
from typing import Any

from fermata.content.content_model import ContentModel, ModelKind
from fermata.content.documents.change_document import SINGLETON_ID
from fermata.content.documents.document import ContentStatus, DocumentContent, DocumentKey
from fermata.content.files.canonical_json import UnreadableFile

Record = dict[str, Any]
_OWN_MEMBERS = ("id", "slug", "title", "published_at")


def format_locale_record(content: DocumentContent, locale: str) -> Record | None:
    """Return the record of a locale, or None if there is none: a draft of which nothing else is known."""
    own = content.meta.get(locale)
    if own is None:
        return None if content.status is ContentStatus.DRAFT else {"status": content.status.value}
    if "status" in own and own["status"] is None:
        return None
    return {"status": content.status.value, **own}


def format_own_record(content: DocumentContent, model: ContentModel, document_id: str, locale: str) -> Record:
    """Return the record of a document itself; empty if it follows from the rest.

    Args:
        content: The document.
        model: Its model.
        document_id: Its id.
        locale: The default locale, in which it has its title.
    """
    record = {"title": content.title, "published_at": content.published_at}
    kept = {name: value for name, value in record.items() if value}
    if content.title == derive_title(model, content, locale):
        kept.pop("title", None)
    elif not content.title:
        kept["title"] = ""
    if model.kind is ModelKind.DOCUMENT:
        return kept if document_id == derive_document_id(content.slug) else {"id": document_id, **kept}
    return {"slug": content.slug, **kept} if content.slug else kept


def derive_title(model: ContentModel, content: DocumentContent, locale: str) -> str:
    """Return the title that follows from the content: the field that the model names, in the default locale.

    Args:
        model: The model.
        content: The document.
        locale: The default locale.
    """
    name = (model.model_extra or {}).get("title_field")
    fields = content.get_locale(locale) if model.i18n else content.get_locale("data")
    value = fields.get(name) if isinstance(name, str) else None
    return value if isinstance(value, str) else ""


def derive_document_id(slug: str) -> str:
    """Return the id of the document that is read from the file of a slug."""
    is_id = len(slug) <= 40 and slug[:1].isalnum()
    return slug if is_id else hashlib.sha256(slug.encode()).hexdigest()[:12]


def apply_locale_records(content: DocumentContent, records: Mapping[str, tuple[str, Record | None]]) -> DocumentContent:
    """Return a document with the records of its locales.

    Args:
        content: The document.
        records: By locale, with the path of its file; None for a locale without one.

    Raises:
        UnreadableFile: A status is none.
    """
    statuses = {locale: _read_status(record, path) for locale, (path, record) in records.items()}
    published = ContentStatus.PUBLISHED in statuses.values()
    status = ContentStatus.PUBLISHED if published else next(iter(statuses.values()), ContentStatus.DRAFT)
    meta: dict[str, Record] = {}
    for locale, (_, record) in records.items():
        if record is None:
            if status is not ContentStatus.DRAFT:
                meta[locale] = {"status": None}
            continue
        others = {name: value for name, value in record.items() if name != "status" and value is not None}
        meta[locale] = others if statuses[locale] is status else {**others, "status": statuses[locale].value}
    return content.model_copy(update={"status": status, "meta": meta})


def _read_status(record: Record | None, path: str) -> ContentStatus:
    status = "draft" if record is None else record.get("status", "draft")
    try:
        return ContentStatus(status)
    except ValueError:
        raise UnreadableFile(path, f"{status!r} is no status. Write {', '.join(ContentStatus)}.") from None


def apply_own_record(
    content: DocumentContent, model: ContentModel, record: Record, locale: str, path: str
) -> DocumentContent:
    """Return a document with its own record.

    Args:
        content: The document.
        model: Its model.
        record: What `format_own_record` has written.
        locale: The default locale.
        path: The file of the record, for messages.

    Raises:
        UnreadableFile: A member is unknown, or no text.
    """
    if any(name not in _OWN_MEMBERS or not isinstance(value, str) for name, value in record.items()):
        raise UnreadableFile(path, f"only the texts {', '.join(_OWN_MEMBERS)} are known here.")
    known = {name: value for name, value in record.items() if name in ("slug", "published_at")}
    title = record.get("title", derive_title(model, content, locale))
    return content.model_copy(update={**known, "title": title})


def name_document(model: ContentModel, name: str, record: Record) -> DocumentKey:
    """Return the key of the document that a file calls by a name: an entry's id, or a slug."""
    if model.kind in (ModelKind.SINGLETON, ModelKind.DICTIONARY):
        return DocumentKey(model.id, SINGLETON_ID)
    if model.kind is ModelKind.DOCUMENT:
        return DocumentKey(model.id, str(record.get("id") or derive_document_id(name)))
    return DocumentKey(model.id, name)
