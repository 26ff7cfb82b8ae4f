"""Handle the tools that list, read and search documents of the content system."""

from datetime import datetime
from typing import Any

from pydantic import Field

from fermata.hosts.content_host import ContentHost
from fermata.tools.content.collection_handlers import CONTENT_TABLE_KINDS, collection_not_found
from fermata.tools.content.server_tools import GetDocumentInput, ListDocumentsInput, SearchDocumentsInput
from fermata.tools.content.snapshot import ActiveDocument, read_active_document
from fermata.tools.host_queries import HostItemNotFound, HostTables, query_host
from fermata.tools.lenient_models import LenientModel
from fermata.tools.tool import ToolContext, ToolFailure

DEFAULT_PAGE_SIZE = 25
UNSAVED_CHANGES_NOTE = (
    "The user has this document open: title, slug, status and fields are as shown there, unsaved changes included."
)
NEWER_VERSION_NOTE = (
    " The content system has a version saved later, at {saved}: another user may have changed it meanwhile."
)


class ListedDocument(LenientModel):
    """A document in a list of the content system."""

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
    """One page of a list of documents. `total` counts all of them."""

    total: int
    documents: tuple[ListedDocument, ...]


class StoredDocument(LenientModel):
    """A whole document of the content system."""

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
    """The content system's answer to a request for one document."""

    document: StoredDocument


class SearchMatch(LenientModel):
    """A document that a search found."""

    id: str
    table_id: str
    slug: str = ""
    status: str
    updated_at: str | None = None


class SearchMatches(LenientModel):
    """The content system's answer to a search."""

    documents: tuple[SearchMatch, ...]


def list_content_documents(tool_input: ListDocumentsInput, context: ToolContext) -> dict[str, Any]:
    limit = tool_input.limit or DEFAULT_PAGE_SIZE
    offset = tool_input.offset or 0

    def query(host: ContentHost) -> Any:
        return host.list_documents(
            tool_input.table_id, status=tool_input.status, author=tool_input.author_user_id, limit=limit, offset=offset
        )

    try:
        page = query_host(context, "Documents", query, DocumentList)
    except HostItemNotFound:
        raise collection_not_found(tool_input.table_id) from None
    documents = [document.to_tool_data() for document in page.documents[:limit]]
    return {"total": page.total, "offset": offset, "limit": limit, "documents": documents}


def get_content_document(tool_input: GetDocumentInput, context: ToolContext) -> dict[str, Any]:
    """Read a document; the open one from the snapshot, also if the content system does not have it or fails."""
    document_id = tool_input.document_id
    active = read_active_document(context.snapshot, document_id)
    if active is None:
        return {"document": _load_document(document_id, context).to_tool_data()}
    stored = None
    failure_note = ""
    try:
        stored = _load_document(document_id, context) if context.open_host() else None
    except HostItemNotFound:
        pass  # not saved yet
    except ToolFailure as failure:
        failure_note = f" {failure}"
    return {
        "document": _merge_active_document(active, stored).to_tool_data(),
        "note": UNSAVED_CHANGES_NOTE + _describe_newer_version(active, stored) + failure_note,
    }


def _load_document(document_id: str, context: ToolContext) -> StoredDocument:
    try:
        answer = query_host(
            context, "A document that is not open", lambda host: host.get_document(document_id), DocumentAnswer
        )
    except HostItemNotFound:
        raise HostItemNotFound(f"Document {document_id} not found.") from None
    return answer.document


def search_content_documents(tool_input: SearchDocumentsInput, context: ToolContext) -> dict[str, Any]:
    """Search documents with two queries: one for the matches, one for the names of their collections."""
    limit = tool_input.limit or DEFAULT_PAGE_SIZE
    matches = query_host(
        context, "Documents", lambda host: host.search_documents(tool_input.query, limit=limit), SearchMatches
    ).documents
    tables = query_host(context, "The collections", lambda host: host.list_tables(), HostTables).tables
    names = {table.id: (table.slug, table.name or table.slug) for table in tables if table.kind in CONTENT_TABLE_KINDS}
    results = [_describe_match(match, *names[match.table_id]) for match in matches if match.table_id in names]
    return {"query": tool_input.query, "results": results[:limit]}


def _describe_match(match: SearchMatch, table_slug: str, table_name: str) -> dict[str, Any]:
    return {
        "id": match.id,
        "tableId": match.table_id,
        "tableSlug": table_slug,
        "tableName": table_name,
        "slug": match.slug,
        "status": match.status,
        "updatedAt": match.updated_at,
    }


def _merge_active_document(active: ActiveDocument, stored: StoredDocument | None) -> StoredDocument:
    """Combine what the editor shows with the members that only the content system has."""
    shown = active.model_dump(exclude={"schema_"}, exclude_none=True)
    if stored is None:
        return StoredDocument(**{"status": ""} | shown)
    return stored.model_copy(update=shown | {"updated_at": stored.updated_at or active.updated_at})


def _describe_newer_version(active: ActiveDocument, stored: StoredDocument | None) -> str:
    """Return a note if the stored document was saved after the version that the editor opened, else an empty text."""
    if stored is None or not stored.updated_at or not active.updated_at:
        return ""
    try:
        is_newer = datetime.fromisoformat(stored.updated_at) > datetime.fromisoformat(active.updated_at)
    except (ValueError, TypeError):  # no instants, or only one of them with a time zone
        return ""
    return NEWER_VERSION_NOTE.format(saved=stored.updated_at) if is_newer else ""
