"""Documents: listed, searched, and read whole; the open one as its user sees it."""

from datetime import datetime
from typing import Any

from pydantic import Field

from fermata.hosts.host import Host
from fermata.tools.content.collections import VISIBLE, not_found
from fermata.tools.content.inputs import GetDocument, ListDocuments, SearchDocuments
from fermata.tools.content.snapshot import ActiveDocument, open_document
from fermata.tools.hosted import Absent, Tables, ask
from fermata.tools.site.snapshot import Lenient
from fermata.tools.tool import ToolContext, ToolFailure

DEFAULT_LIMIT = 25
UNSAVED = (
    "The user has this document open: title, slug, status and fields are as shown there, unsaved changes included."
)
NEWER = " The content system has a version saved later, at {saved}: somebody else may have changed it meanwhile."


class Listed(Lenient):
    id: str
    table_id: str
    title: str = ""
    slug: str = ""
    status: str
    author_user_id: str | None = None
    updated_at: str | None = None

    def told(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True) | {"title": self.title or self.slug or self.id}


class Listing(Lenient):
    total: int
    documents: tuple[Listed, ...]


class Stored(Lenient):
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

    def told(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True) | {"title": self.title or self.slug or self.id}


class One(Lenient):
    document: Stored


class Match(Lenient):
    id: str
    table_id: str
    slug: str = ""
    status: str
    updated_at: str | None = None


class Matches(Lenient):
    documents: tuple[Match, ...]


def list_documents(given: ListDocuments, context: ToolContext) -> dict[str, Any]:
    limit, offset = given.limit or DEFAULT_LIMIT, given.offset or 0

    def question(host: Host) -> Any:
        return host.documents(
            given.table_id, status=given.status, author=given.author_user_id, limit=limit, offset=offset
        )

    try:
        found = ask(context, "Documents", question, Listing)
    except Absent:
        raise not_found(given.table_id) from None
    shown = [document.told() for document in found.documents[:limit]]
    return {"total": found.total, "offset": offset, "limit": limit, "documents": shown}


def get_document(given: GetDocument, context: ToolContext) -> dict[str, Any]:
    """The open document can be told whatever becomes of the question: it may be new, or its content system be down."""
    name, seen = given.document_id, open_document(context.snapshot, given.document_id)
    if seen is None:
        return {"document": _stored(name, context).told()}
    stored, trouble = None, ""
    try:
        stored = _stored(name, context) if context.host() else None
    except Absent:
        pass  # not saved yet
    except ToolFailure as failure:
        trouble = f" {failure}"
    return {"document": _as_seen(seen, stored).told(), "note": UNSAVED + _newer(seen, stored) + trouble}


def _stored(name: str, context: ToolContext) -> Stored:
    try:
        return ask(context, "A document that is not open", lambda host: host.document(name), One).document
    except Absent:
        raise Absent(f"Document {name} not found.") from None


def search_documents(given: SearchDocuments, context: ToolContext) -> dict[str, Any]:
    """Two questions: the matches, and the names of the collections they are in."""
    limit = given.limit or DEFAULT_LIMIT
    matches = ask(context, "Documents", lambda host: host.search(given.query, limit=limit), Matches).documents
    found = ask(context, "The collections", lambda host: host.tables(), Tables).tables
    names = {table.id: (table.slug, table.name or table.slug) for table in found if table.kind in VISIBLE}
    shown = [_match(match, *names[match.table_id]) for match in matches if match.table_id in names]
    return {"query": given.query, "results": shown[:limit]}


def _match(match: Match, slug: str, name: str) -> dict[str, Any]:
    return {
        "id": match.id,
        "tableId": match.table_id,
        "tableSlug": slug,
        "tableName": name,
        "slug": match.slug,
        "status": match.status,
        "updatedAt": match.updated_at,
    }


def _as_seen(seen: ActiveDocument, stored: Stored | None) -> Stored:
    """What the editor shows, and from the content system what the editor does not show."""
    shown = seen.model_dump(exclude={"schema_"}, exclude_none=True)
    if stored is None:
        return Stored(**{"status": ""} | shown)
    return stored.model_copy(update=shown | {"updated_at": stored.updated_at or seen.updated_at})


def _newer(seen: ActiveDocument, stored: Stored | None) -> str:
    if stored is None or not stored.updated_at or not seen.updated_at:
        return ""
    try:
        is_newer = datetime.fromisoformat(stored.updated_at) > datetime.fromisoformat(seen.updated_at)
    except (ValueError, TypeError):  # not instants, or one of them without its time zone
        return ""
    return NEWER.format(saved=stored.updated_at) if is_newer else ""
