"""Documents: listed, searched, and read whole; the open one as its user sees it."""

from datetime import datetime
from typing import Any

from pydantic import Field

from fermata.hosts.client import HostClient
from fermata.tools.content.collections import CONTENT_TABLE_KINDS, collection_not_found
from fermata.tools.content.inputs import GetDocumentInput, ListDocumentsInput, SearchDocumentsInput
from fermata.tools.content.snapshot import ActiveDocument, read_active_document
from fermata.tools.host_queries import HostItemNotFound, HostTables, query_host
from fermata.tools.site.snapshot import LenientModel
from fermata.tools.tool import ToolContext, ToolFailure

DEFAULT_PAGE_SIZE = 25
UNSAVED_CHANGES_NOTE = (
    "The user has this document open: title, slug, status and fields are as shown there, unsaved changes included."
)
NEWER_VERSION_NOTE = (
    " The content system has a version saved later, at {saved}: somebody else may have changed it meanwhile."
)


class ListedDocument(LenientModel):
    id: str
    table_id: str
    title: str = ""
    slug: str = ""
    status: str
    author_user_id: str | None = None
    updated_at: str | None = None

    def to_tool_data(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True) | {"title": self.title or self.slug or self.id}


class DocumentList(LenientModel):
    total: int
    documents: tuple[ListedDocument, ...]


class StoredDocument(LenientModel):
    """A whole document, as the content system keeps it."""

    id: str
    table_id: str
    title: str = ""
    slug: str = ""
    status: str
    author_user_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    published_at: str | None = None
    scheduled_publish_at: str | None = None
    fields: dict[str, Any] = Field(default_factory=dict)

    def to_tool_data(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True) | {"title": self.title or self.slug or self.id}


class DocumentAnswer(LenientModel):
    document: StoredDocument


class SearchMatch(LenientModel):
    id: str
    table_id: str
    slug: str = ""
    status: str
    updated_at: str | None = None


class SearchMatches(LenientModel):
    documents: tuple[SearchMatch, ...]


def list_content_documents(given: ListDocumentsInput, context: ToolContext) -> dict[str, Any]:
    limit, offset = given.limit or DEFAULT_PAGE_SIZE, given.offset or 0

    def question(host: HostClient) -> Any:
        return host.list_documents(
            given.table_id, status=given.status, author=given.author_user_id, limit=limit, offset=offset
        )

    try:
        found = query_host(context, "Documents", question, DocumentList)
    except HostItemNotFound:
        raise collection_not_found(given.table_id) from None
    shown = [document.to_tool_data() for document in found.documents[:limit]]
    return {"total": found.total, "offset": offset, "limit": limit, "documents": shown}


def get_content_document(given: GetDocumentInput, context: ToolContext) -> dict[str, Any]:
    """The open document can be told whatever becomes of the question: it may be new, or its content system be down."""
    name, seen = given.document_id, read_active_document(context.snapshot, given.document_id)
    if seen is None:
        return {"document": _stored(name, context).to_tool_data()}
    stored, trouble = None, ""
    try:
        stored = _stored(name, context) if context.host() else None
    except HostItemNotFound:
        pass  # not saved yet
    except ToolFailure as failure:
        trouble = f" {failure}"
    return {
        "document": _as_seen(seen, stored).to_tool_data(),
        "note": UNSAVED_CHANGES_NOTE + _newer(seen, stored) + trouble,
    }


def _stored(name: str, context: ToolContext) -> StoredDocument:
    try:
        return query_host(
            context, "A document that is not open", lambda host: host.get_document(name), DocumentAnswer
        ).document
    except HostItemNotFound:
        raise HostItemNotFound(f"Document {name} not found.") from None


def search_content_documents(given: SearchDocumentsInput, context: ToolContext) -> dict[str, Any]:
    """Two questions: the matches, and the names of the collections they are in."""
    limit = given.limit or DEFAULT_PAGE_SIZE
    matches = query_host(
        context, "Documents", lambda host: host.search_documents(given.query, limit=limit), SearchMatches
    ).documents
    found = query_host(context, "The collections", lambda host: host.list_tables(), HostTables).tables
    names = {table.id: (table.slug, table.name or table.slug) for table in found if table.kind in CONTENT_TABLE_KINDS}
    shown = [_match(match, *names[match.table_id]) for match in matches if match.table_id in names]
    return {"query": given.query, "results": shown[:limit]}


def _match(match: SearchMatch, slug: str, name: str) -> dict[str, Any]:
    return {
        "id": match.id,
        "tableId": match.table_id,
        "tableSlug": slug,
        "tableName": name,
        "slug": match.slug,
        "status": match.status,
        "updatedAt": match.updated_at,
    }


def _as_seen(seen: ActiveDocument, stored: StoredDocument | None) -> StoredDocument:
    """What the editor shows, and from the content system what the editor does not show."""
    shown = seen.model_dump(exclude={"schema_"}, exclude_none=True)
    if stored is None:
        return StoredDocument(**{"status": ""} | shown)
    return stored.model_copy(update=shown | {"updated_at": stored.updated_at or seen.updated_at})


def _newer(seen: ActiveDocument, stored: StoredDocument | None) -> str:
    if stored is None or not stored.updated_at or not seen.updated_at:
        return ""
    try:
        is_newer = datetime.fromisoformat(stored.updated_at) > datetime.fromisoformat(seen.updated_at)
    except (ValueError, TypeError):  # not instants, or one of them without its time zone
        return ""
    return NEWER_VERSION_NOTE.format(saved=stored.updated_at) if is_newer else ""
