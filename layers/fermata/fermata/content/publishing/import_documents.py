"""Import models and documents into a space. It may be repeated: what is there already stays as it is."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from fermata.aws.resources import Resources
from fermata.content.content_model import META_MODEL
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import ChangeOptions, change_document
from fermata.content.documents.document import (
    ContentAuthor,
    DocumentContent,
    DocumentKey,
    DocumentVersion,
)
from fermata.content.documents.document_rows import BytesCounter, leave_uncounted
from fermata.content.documents.read_document import WriteBasis, read_newest_version
from fermata.content.media.project_presets import check_project_settings
from fermata.content.model_store import put_model
from fermata.content.page_sections import list_section_models
from fermata.domain.errors import ApiError, InvalidRequest

MAX_IMPORTED_DOCUMENTS = 25
MAX_IMPORTED_MODELS = 100
SettleStatuses = Callable[[DocumentContent, DocumentContent, Collection[str]], DocumentContent]
"""Returns a document as it is stored, given what it said, what it is to say, and which languages get a status."""
ImportOutcome = Literal["created", "changed", "unchanged", "refused"]


def keep_statuses(_before: DocumentContent, after: DocumentContent, _named: Collection[str]) -> DocumentContent:
    """Return a document as it is to be, for who publishes what they save."""
    return after


class ImportedItem(NamedTuple):
    """What became of a model or a document."""

    key: DocumentKey
    outcome: ImportOutcome
    error: str = ""

    def to_view(self) -> dict[str, Any]:
        """Return the JSON form."""
        own = {"model": self.key.model, "id": self.key.id, "outcome": self.outcome}
        return own | ({"error": self.error} if self.error else {})


def import_content(
    resources: Resources,
    space: SpaceKey,
    author: ContentAuthor,
    models: Sequence[Mapping[str, Any]],
    documents: Sequence[Mapping[str, Any]],
    *,
    count_bytes: BytesCounter = leave_uncounted,
    is_reviewed: bool = False,
    settle_statuses: SettleStatuses = keep_statuses,
) -> list[ImportedItem]:
    """Store models, and then documents under their own ids. One that is refused keeps the others from nothing.

    Args:
        resources: Of the process.
        space: The space.
        author: Who imports.
        models: Definitions of models.
        documents: Documents as an export has them.
        count_bytes: As in `pack_content`.
        is_reviewed: As in `ChangeOptions`.
        settle_statuses: Decides which further languages of published documents are drafts.

    Raises:
        InvalidRequest: There are too many at once.
        ApiError: Of `count_bytes`: the importer has stored as much as may be stored in a day. What came before stays.
    """
    if len(documents) > MAX_IMPORTED_DOCUMENTS or len(models) > MAX_IMPORTED_MODELS:
        raise InvalidRequest(
            f"At most {MAX_IMPORTED_MODELS} models and {MAX_IMPORTED_DOCUMENTS} documents are imported at once."
        )

    def count(size: int) -> None:
        try:
            count_bytes(size)
        except ApiError as error:
            raise _LimitReached(error) from error

    try:
        found = [_import_model(resources, space, author, model, count) for model in models]
        options = ChangeOptions(count_bytes=count, is_reviewed=is_reviewed)
        return found + [
            _import_document(resources, space, author, document, options, settle_statuses) for document in documents
        ]
    except _LimitReached as reached:
        raise reached.error from reached


class _LimitReached(Exception):
    """Ends an import: each further document would be refused, too."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(error.message)
        self.error = error


def _import_model(
    resources: Resources,
    space: SpaceKey,
    author: ContentAuthor,
    definition: Mapping[str, Any],
    count_bytes: BytesCounter,
) -> ImportedItem:
    key = DocumentKey(META_MODEL, str(definition.get("id", ""))[:40])
    options = ChangeOptions(count_bytes=count_bytes)
    return _attempt(
        resources, space, key, lambda: put_model(resources, space, dict(definition), author, options).version
    )


def _import_document(
    resources: Resources,
    space: SpaceKey,
    author: ContentAuthor,
    document: Mapping[str, Any],
    options: ChangeOptions,
    settle: SettleStatuses,
) -> ImportedItem:
    key = DocumentKey(str(document["model"]), str(document["id"]))
    said = {
        "slug": document.get("slug", ""),
        "title": document.get("title", ""),
        "locales": document.get("locales", {}),
    }
    status, statuses = document.get("status", "draft"), document.get("statuses") or {}

    def decide(before: DocumentVersion | None, _basis: WriteBasis) -> DocumentContent:
        content = before.content if before and before.content else DocumentContent()
        changed = content.model_copy(update=said).with_statuses(status, statuses).with_settled_status()
        return settle(content, changed, statuses)

    def store() -> DocumentVersion:
        if key.model == META_MODEL:
            raise InvalidRequest("Models are imported as 'models'.")
        check_project_settings(key, said["locales"])
        added = list_section_models(DocumentContent().model_copy(update=said))
        own = options._replace(section_models=added)
        return change_document(resources, space, key, author, decide, own).version

    return _attempt(resources, space, key, store)


def _attempt(
    resources: Resources, space: SpaceKey, key: DocumentKey, store: Callable[[], DocumentVersion]
) -> ImportedItem:
    try:
        before = read_newest_version(resources, space, key)
        after = store()
    except ApiError as error:
        return ImportedItem(key, "refused", error.message)
    if before is not None and after.version == before.version:
        return ImportedItem(key, "unchanged")
    return ImportedItem(key, "created" if before is None or before.is_deleted else "changed")
