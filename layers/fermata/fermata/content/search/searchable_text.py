"""Say under which type a document is found, and which text of it is searched."""

from collections.abc import Iterator
from typing import Any, Literal, get_args

from fermata.content.built_in_models import ASSET_MODEL, PAGE_MODEL
from fermata.content.content_model import DEFINITION_LOCALE, META_MODEL, ModelKind
from fermata.content.documents.document import DocumentVersion

SearchType = Literal["page", "section_def", "collection", "entry", "image"]
SEARCH_TYPES: tuple[SearchType, ...] = get_args(SearchType)
MAX_SEARCHED_CHARS = 8000
_TYPES_OF_MODELS: dict[str, SearchType] = {PAGE_MODEL.id: "page", ASSET_MODEL.id: "image"}
_MAX_DEPTH = 8
_UNREAD_FIELDS = frozenset({"id", "sha256", "files", "sections", "mediaType", "href"})


def get_search_type(version: DocumentVersion) -> SearchType:
    """Return the type of a document; a model is a section definition or a collection."""
    if version.model == META_MODEL:
        definition = version.content.get_locale(DEFINITION_LOCALE) if version.content else {}
        return "section_def" if definition.get("kind") == ModelKind.SECTION else "collection"
    return _TYPES_OF_MODELS.get(version.model, "entry")


def build_searchable_text(version: DocumentVersion) -> str:
    """Return the title, the slug and the texts of all languages, as far as MAX_SEARCHED_CHARS."""
    content = version.content
    if content is None:
        return ""
    parts, chars = [content.title, content.slug], 0
    for text in _iter_texts(content.locales, 0):
        parts.append(text)
        chars += len(text)
        if chars > MAX_SEARCHED_CHARS:
            break
    return "\n".join(filter(None, parts))[:MAX_SEARCHED_CHARS]


def _iter_texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < _MAX_DEPTH:
        members = (
            (member for name, member in value.items() if name not in _UNREAD_FIELDS)
            if isinstance(value, dict)
            else value
            if isinstance(value, list)
            else ()
        )
        for member in members:
            yield from _iter_texts(member, depth + 1)
