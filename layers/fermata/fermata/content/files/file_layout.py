"""Say in which file of the `.contentrain/` layout something is, and what a path is the file of."""

import re
from typing import Any, NamedTuple

from fermata.content.content_model import DEFINITION_LOCALE, ContentModel, ModelKind
from fermata.domain.errors import InvalidRequest

ROOT = ".contentrain/"
CONFIG_PATH = f"{ROOT}config.json"
CONTEXT_PATH = f"{ROOT}context.json"
VOCABULARY_PATH = f"{ROOT}vocabulary.json"
MODELS_FOLDER = f"{ROOT}models/"
GENERATED_FOLDER = f"{ROOT}client/"
"""What programs make of the content. It holds none."""
_PROTECTED_FOLDERS = (".git", ".github", ".ci", ".env", "node_modules", ".contentrain/models", ".contentrain/meta")
_PATH_SEGMENT = re.compile(r"[A-Za-z0-9_.@\[\]() -]{1,100}")
_MAX_FOLDERS = 10
"""Within each other: a file may belong to a model of each of them."""
_STRATEGIES = ("file", "suffix", "directory", "none")


class DocumentsFolder(NamedTuple):
    """Where the documents of a model are, and how their paths name the locale.

    Attributes:
        path: The folder, with a slash at its end.
        strategy: `file`, `suffix`, `directory` or `none`.
    """

    path: str
    strategy: str


def model_path(model_id: str) -> str:
    """Return the file of a model."""
    return f"{MODELS_FOLDER}{model_id}.json"


def find_documents_folder(model: ContentModel) -> DocumentsFolder:
    """Return where the documents of a model are.

    Raises:
        InvalidRequest: The model names a folder that content may not be written to, or an unknown strategy.
    """
    extra: dict[str, Any] = model.model_extra or {}
    strategy = extra.get("locale_strategy") or "file"
    if strategy not in _STRATEGIES or (strategy == "none" and model.i18n):
        raise InvalidRequest(f"The locale_strategy of the model {model.id} cannot be {strategy!r}.")
    own = extra.get("content_path")
    if not own:
        return DocumentsFolder(f"{ROOT}content/{model.domain}/{model.id}/", strategy)
    return DocumentsFolder(_check_folder(own, model.id) + "/", strategy)


def _check_folder(path: Any, model_id: str) -> str:
    folder = path.strip("/") if isinstance(path, str) and not path.startswith("/") else ""
    segments = folder.split("/")
    is_plain = all(_PATH_SEGMENT.fullmatch(one) and one.strip(". ") == one.lstrip(".") for one in segments)
    lower = folder.lower()
    is_protected = any(lower == one or lower.startswith(f"{one}/") for one in _PROTECTED_FOLDERS)
    if not folder or not is_plain or ".." in folder or is_protected or len(segments) > _MAX_FOLDERS:
        raise InvalidRequest(
            f"The model {model_id} cannot keep its content in {str(path)[:200]!r}. Name a folder of the project."
        )
    return folder


def content_path(model: ContentModel, locale: str, slug: str = "") -> str:
    """Return the file of a document in a locale, or that of all entries of a model.

    Args:
        model: The model.
        locale: The locale; `data` for what is the same in all of them.
        slug: Of a document in Markdown.
    """
    folder = find_documents_folder(model)
    if model.kind is ModelKind.DOCUMENT:
        return folder.path + _name_document_file(locale, slug, folder.strategy, is_translated=model.i18n)
    if locale == DEFINITION_LOCALE:
        return f"{folder.path}data.json"
    names = {"file": locale, "suffix": f"{model.id}.{locale}", "directory": f"{locale}/{model.id}"}
    return f"{folder.path}{names[folder.strategy]}.json"


def _name_document_file(locale: str, slug: str, strategy: str, *, is_translated: bool) -> str:
    if not is_translated:
        return f"{slug}.md"
    names = {"file": f"{slug}/{locale}", "suffix": f"{slug}.{locale}", "directory": f"{locale}/{slug}"}
    return f"{names[strategy]}.md"


def read_document_path(model: ContentModel, folder: DocumentsFolder, path: str) -> tuple[str, str] | None:
    """Return slug and locale of a document in Markdown, or None if the path is of something else.

    Args:
        model: The model.
        folder: That of its documents.
        path: Of a file.
    """
    if not path.startswith(folder.path) or not path.endswith(".md"):
        return None
    name = path[len(folder.path) : -len(".md")]
    if not model.i18n:
        return None if "/" in name else (name, DEFINITION_LOCALE)
    separator = "." if folder.strategy == "suffix" else "/"
    first, found, second = name.partition(separator)
    if not found or not first or "/" in second or not second:
        return None
    return (second, first) if folder.strategy == "directory" else (first, second)


def meta_path(model: ContentModel, locale: str, slug: str = "") -> str:
    """Return the file of what is known of documents besides their content.

    Args:
        model: The model.
        locale: The locale; `data` for what is known of a document and not of one locale.
        slug: Of a document in Markdown.
    """
    place = f"{slug}/" if model.kind is ModelKind.DOCUMENT else ""
    return f"{ROOT}meta/{model.id}/{place}{locale}.json"
