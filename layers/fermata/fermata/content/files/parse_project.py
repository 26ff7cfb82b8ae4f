"""Read a project from its files. A file that cannot be read stops it, so that nothing is taken for deleted."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fermata.content.content_model import DEFINITION_LOCALE, ContentModel, ModelKind
from fermata.content.content_space import LOCALE_CODE, MAX_LOCALES
from fermata.content.documents.document import DOCUMENT_ID, ID_RULE, DocumentContent, DocumentKey
from fermata.content.files.canonical_json import UnreadableFile, parse_json_file
from fermata.content.files.entry_meta import Record, apply_locale_records, apply_own_record, name_document
from fermata.content.files.file_layout import (
    CONFIG_PATH,
    CONTEXT_PATH,
    GENERATED_FOLDER,
    MODELS_FOLDER,
    ROOT,
    VOCABULARY_PATH,
    content_path,
    find_documents_folder,
    meta_path,
    model_path,
    read_document_path,
)
from fermata.content.files.front_matter import parse_document_file
from fermata.content.files.model_files import parse_model_file
from fermata.content.files.project_files import VOCABULARY_VERSION, ContentProject

Documents = dict[DocumentKey, DocumentContent]
_WITHOUT_NAMES = (ModelKind.SINGLETON, ModelKind.DICTIONARY, ModelKind.DOCUMENT)
"""Kinds whose files of records hold one, and not one for each entry."""


def parse_project_files(files: Mapping[str, str]) -> ContentProject:
    """Read a project.

    Args:
        files: The texts of a repository's files, or of those below `.contentrain/` and the folders that models name.

    Raises:
        UnreadableFile: There is no configuration, or a file is not what it should be.
        InvalidRequest: A model keeps its content in a folder where none may be.
    """
    return _ProjectReader(files).read()


class _ProjectReader:
    """Reads files, and remembers which were of use and which are empty."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._paths = sorted(files)
        self._used: set[str] = set()
        self._empty: list[str] = []
        self._ignored: list[str] = []
        self._locales: tuple[str, ...] = ()
        self._records: dict[str, dict[str, Any]] = {}

    def read(self) -> ContentProject:
        config = self._read_object(CONFIG_PATH)
        if config is None:
            raise UnreadableFile(CONFIG_PATH, "it is missing.")
        self._locales = _read_locales(config)
        context = self._read_object(CONTEXT_PATH)
        vocabulary = self._read_vocabulary()
        models = {model.id: model for model in self._iter_models()}
        _check_folders(models.values())
        documents: Documents = {}
        for model in models.values():
            documents |= self._read_documents(model)
        unused = [path for path in self._list_folder(ROOT) if path not in self._used]
        self._ignored += [path for path in unused if not path.startswith(GENERATED_FOLDER)]
        return ContentProject(
            locales=self._locales,
            config=config,
            context=context,
            models=models,
            documents=documents,
            vocabulary=vocabulary,
            empty_files=tuple(self._empty),
            ignored=tuple(self._ignored),
        )

    def _list_folder(self, folder: str) -> list[str]:
        start = bisect_left(self._paths, folder)
        end = bisect_left(self._paths, folder + "\U0010ffff")
        return self._paths[start:end]

    def _read_object(self, path: str) -> dict[str, Any] | None:
        if path not in self._files:
            return None
        self._used.add(path)
        return parse_json_file(self._files[path], path)

    def _read_members(self, path: str) -> dict[str, Any]:
        """Return the members of a file, none of one that is missing. An empty file is remembered."""
        members = self._read_object(path)
        if members == {}:
            self._empty.append(path)
        return members or {}

    def _iter_models(self) -> Iterator[ContentModel]:
        for path in self._list_folder(MODELS_FOLDER):
            if path.endswith(".json"):
                self._used.add(path)
                yield parse_model_file(self._files[path], path)

    def _read_vocabulary(self) -> DocumentContent:
        members = self._read_object(VOCABULARY_PATH)
        if members is None:
            return DocumentContent()
        terms = members.get("terms", {})
        if members.get("version") != VOCABULARY_VERSION or not isinstance(terms, dict):
            raise UnreadableFile(VOCABULARY_PATH, f"it has to have 'terms', and the version {VOCABULARY_VERSION}.")
        if not terms:
            self._empty.append(VOCABULARY_PATH)
        locales: dict[str, dict[str, Any]] = {}
        for term, texts in terms.items():
            if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
                raise UnreadableFile(VOCABULARY_PATH, f"the term {term} has to have a text for each locale.")
            for locale, text in texts.items() if texts else [(DEFINITION_LOCALE, "")]:
                locales.setdefault(locale, {})[term] = text
        return DocumentContent(locales=locales)

    def _read_documents(self, model: ContentModel) -> Documents:
        named = self._read_markdown(model) if model.kind is ModelKind.DOCUMENT else self._read_entries(model)
        documents: Documents = {}
        for name, locales in named.items():
            key, content = self._add_records(model, name, DocumentContent(locales=locales))
            path = content_path(model, next(iter(locales)), name)
            if not DOCUMENT_ID.fullmatch(key.id):
                raise UnreadableFile(path, f"{key.id!r} is no id of a document. {ID_RULE}")
            if key in documents:
                raise UnreadableFile(path, f"another document has the id {key.id!r}.")
            documents[key] = content
        if model.kind not in _WITHOUT_NAMES:
            self._ignore_lonely_records(model, named)
        return documents

    def _ignore_lonely_records(self, model: ContentModel, named: Mapping[str, Any]) -> None:
        """Remember the records of entries that do not exist."""
        for locale in (DEFINITION_LOCALE, *self._locales):
            path = meta_path(model, locale)
            lonely = [name for name in self._records.get(path, {}) if name not in named]
            self._ignored += [f"{path}#{name}" for name in lonely]

    def _read_markdown(self, model: ContentModel) -> dict[str, dict[str, Any]]:
        """Return the content of documents by slug and locale."""
        found: dict[str, dict[str, Any]] = {}
        folder = find_documents_folder(model)
        for path in self._list_folder(folder.path):
            place = read_document_path(model, folder, path)
            if place is not None and place[1] in (DEFINITION_LOCALE, *self._locales):
                self._used.add(path)
                found.setdefault(place[0], {})[place[1]] = parse_document_file(self._files[path], path)
        return found

    def _read_entries(self, model: ContentModel) -> dict[str, dict[str, Any]]:
        """Return the content of entries by id and locale; that of the only document without a name."""
        found: dict[str, dict[str, Any]] = {}
        for locale in (DEFINITION_LOCALE, *(self._locales if model.i18n else ())):
            path = content_path(model, locale)
            members = self._read_members(path)
            if model.kind in (ModelKind.SINGLETON, ModelKind.DICTIONARY):
                if members:
                    found.setdefault("", {})[locale] = members
                continue
            for entry_id, fields in members.items():
                if not isinstance(fields, dict):
                    raise UnreadableFile(path, f"the entry {entry_id} has to be an object.")
                found.setdefault(entry_id, {})[locale] = fields
        return found

    def _add_records(
        self, model: ContentModel, name: str, content: DocumentContent
    ) -> tuple[DocumentKey, DocumentContent]:
        default = self._locales[0]
        slug = name if model.kind is ModelKind.DOCUMENT else ""
        content = content.model_copy(update={"slug": slug})
        own_path = meta_path(model, DEFINITION_LOCALE, slug)
        own = self._read_record(model, own_path, name) or {}
        records: dict[str, tuple[str, Record | None]] = {}
        for locale in self._locales if model.i18n else (DEFINITION_LOCALE,):
            path = meta_path(model, locale if model.i18n else default, slug)
            record = self._read_record(model, path, name)
            if record is not None or locale in content.locales:
                records[locale] = (path, record)
        content = apply_locale_records(content, records)
        return name_document(model, name, own), apply_own_record(content, model, own, default, own_path)

    def _read_record(self, model: ContentModel, path: str, name: str) -> Record | None:
        if path not in self._records and path in self._files:
            self._records[path] = self._read_members(path)
        members = self._records.get(path)
        if members is None or model.kind in _WITHOUT_NAMES:
            return members or None
        record = members.get(name)
        if record is not None and not isinstance(record, dict):
            raise UnreadableFile(path, f"the record {name} has to be an object.")
        return record


def _check_folders(models: Iterable[ContentModel]) -> None:
    """Check that each document in Markdown belongs to one model: with a folder for all, each is read for each model."""
    owners: dict[str, str] = {}
    for model in models:
        if model.kind is ModelKind.DOCUMENT:
            owner = owners.setdefault(find_documents_folder(model).path, model.id)
            if owner != model.id:
                raise UnreadableFile(model_path(model.id), f"its content_path is that of the model {owner}.")


def _read_locales(config: Mapping[str, Any]) -> tuple[str, ...]:
    locales = config.get("locales")
    default = locales.get("default") if isinstance(locales, dict) else None
    supported = locales.get("supported") if isinstance(locales, dict) else None
    if not isinstance(default, str) or not isinstance(supported, list) or default not in supported:
        raise UnreadableFile(CONFIG_PATH, "'locales' has to have 'default' and 'supported', which contains it.")
    if len(supported) > MAX_LOCALES or not all(
        isinstance(one, str) and LOCALE_CODE.fullmatch(one) for one in supported
    ):
        raise UnreadableFile(CONFIG_PATH, f"'supported' lists up to {MAX_LOCALES} codes such as en or pt-BR.")
    return tuple(dict.fromkeys([default, *supported]))
