"""Define a project: what a space holds, apart from its history; and write it as files."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE, ContentModel, ModelKind
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.files.canonical_json import format_canonical_json, sort_by_utf16
from fermata.content.files.entry_meta import Record, format_locale_record, format_own_record
from fermata.content.files.file_layout import (
    CONFIG_PATH,
    CONTEXT_PATH,
    VOCABULARY_PATH,
    content_path,
    meta_path,
    model_path,
)
from fermata.content.files.front_matter import format_document_file
from fermata.content.files.model_files import format_model_file
from fermata.domain.value_dataclass import value_dataclass

FileTree = dict[str, str]
"""The texts of files by their paths from the root of a repository."""
VOCABULARY_VERSION = 1
_ONE_RECORD_KINDS = (ModelKind.SINGLETON, ModelKind.DICTIONARY)


@value_dataclass(frozen=True)
class ContentProject:
    """A project.

    Attributes:
        locales: The languages, the default one first.
        config: The settings of the project, as its file says them.
        context: What programs have noted about the project; None without such a file.
        models: By id, without those that only hold settings and vocabulary.
        documents: What the documents of the models say.
        vocabulary: The terms: by locale, and under `data` those without a text.
        empty_files: Files that are there although they hold nothing.
        ignored: Files, or parts of them, that nothing was made of.
    """

    locales: tuple[str, ...]
    config: Mapping[str, Any]
    context: Mapping[str, Any] | None = None
    models: Mapping[str, ContentModel] = field(default_factory=dict)
    documents: Mapping[DocumentKey, DocumentContent] = field(default_factory=dict)
    vocabulary: DocumentContent = field(default_factory=DocumentContent)
    empty_files: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def default_locale(self) -> str:
        """The language of titles, and of content that is in no other."""
        return self.locales[0]


def format_project_files(project: ContentProject) -> FileTree:
    """Return a project as files. Equal projects have equal bytes."""
    files = {CONFIG_PATH: format_canonical_json(_describe_config(project))}
    if project.context is not None:
        files[CONTEXT_PATH] = format_canonical_json(project.context)
    terms = _list_terms(project.vocabulary)
    if terms or VOCABULARY_PATH in project.empty_files:
        files[VOCABULARY_PATH] = format_canonical_json({"terms": terms, "version": VOCABULARY_VERSION})
    files |= {model_path(model.id): format_model_file(model) for model in project.models.values()}
    files |= {path: "{}\n" for path in project.empty_files if path not in files}
    maps: dict[str, dict[str, Any]] = {}
    for key, content in project.documents.items():
        model = project.models[key.model]
        texts = _iter_markdown_files if model.kind is ModelKind.DOCUMENT else _iter_json_members
        for path, name, value in texts(model, key, content, project.default_locale):
            if isinstance(value, str):
                files[path] = value
            elif name:
                maps.setdefault(path, {})[name] = value
            else:
                maps[path] = value
    return files | {path: format_canonical_json(members) for path, members in maps.items()}


def _describe_config(project: ContentProject) -> dict[str, Any]:
    """Return the settings with the locales that the project has. Their own order stays."""
    own = project.config.get("locales")
    known = own if isinstance(own, dict) else {}
    supported = known.get("supported", [])
    is_same = known.get("default") == project.default_locale and sorted(supported) == sorted(project.locales)
    locales = own if is_same else {**known, "default": project.default_locale, "supported": list(project.locales)}
    return {**project.config, "locales": locales}


def _list_terms(vocabulary: DocumentContent) -> dict[str, dict[str, str]]:
    terms: dict[str, dict[str, str]] = {}
    for locale, texts in vocabulary.locales.items():
        for term, text in texts.items():
            own = terms.setdefault(term, {})
            if locale != DEFINITION_LOCALE:
                own[locale] = text
    return terms


def _iter_markdown_files(
    model: ContentModel, key: DocumentKey, content: DocumentContent, default: str
) -> Iterator[tuple[str, str, Any]]:
    """Yield path, name (of none) and text or value of a document's files."""
    for locale, fields in content.locales.items():
        yield content_path(model, locale, content.slug), "", format_document_file(fields)
    for name, record in iter_records(model, key, content, default):
        yield meta_path(model, name, content.slug), "", record


def _iter_json_members(
    model: ContentModel, key: DocumentKey, content: DocumentContent, default: str
) -> Iterator[tuple[str, str, Any]]:
    """Yield path, name and value of the members that an entry is in its files. The only document has no name."""
    name = "" if model.kind in _ONE_RECORD_KINDS else key.id
    for locale, fields in content.locales.items():
        yield content_path(model, locale), name, fields
    for record_name, record in iter_records(model, key, content, default):
        yield meta_path(model, record_name), name, record


def iter_records(
    model: ContentModel, key: DocumentKey, content: DocumentContent, default: str
) -> Iterator[tuple[str, Record]]:
    """Yield the records of a document with the names of their files: a locale, or `data` for its own.

    Args:
        model: Its model.
        key: Its key.
        content: What it says.
        default: The default locale, which names the record of a model without translations.
    """
    for locale in sorted({*content.locales, *content.meta}, key=sort_by_utf16):
        if model.i18n and locale == DEFINITION_LOCALE:
            continue
        record = format_locale_record(content, locale)
        if record is not None:
            yield locale if model.i18n else default, record
    own = format_own_record(content, model, key.id, default)
    if own:
        yield DEFINITION_LOCALE, own
