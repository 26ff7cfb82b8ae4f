"""Choose what sites read of a document: its languages that are published, and none of the others (decision 0664)."""

from collections.abc import Mapping
from typing import Any

from fermata.content.documents.document import MAX_DOCUMENT_TITLE_CHARS, ContentStatus, DocumentContent


def keep_published_locales(content: DocumentContent) -> DocumentContent | None:
    """Return a document without the languages that are not published; None if it has nothing that is.

    What is the same in all languages is published with the first of them.
    """
    if content.status is not ContentStatus.PUBLISHED:
        return None
    languages = content.list_spoken_locales()
    hidden = [one for one in languages if content.get_status(one) is not ContentStatus.PUBLISHED]
    if not hidden:
        return content
    if len(hidden) == len(languages):
        return None
    shown = {locale: fields for locale, fields in content.locales.items() if locale not in hidden}
    title = _choose_title(content.title, shown, [content.locales[locale] for locale in hidden])
    return content.model_copy(update={"locales": shown, "title": title})


def _choose_title(title: str, shown: Mapping[str, Mapping[str, Any]], hidden: list[dict[str, Any]]) -> str:
    """Return a title that says nothing of a language that is hidden: what one that is shown says in the same field."""
    if any(_say_title(value) == title for fields in shown.values() for value in fields.values()):
        return title
    names = [name for fields in hidden for name, value in fields.items() if _say_title(value) == title]
    if not names:
        return title
    others = (_say_title(fields.get(name)) for fields in shown.values() for name in names)
    return next(filter(None, others), "")


def _say_title(value: Any) -> str:
    return value[:MAX_DOCUMENT_TITLE_CHARS] if isinstance(value, str) else ""
