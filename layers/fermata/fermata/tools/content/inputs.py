"""What the content tools take; the editor reads the same schemas."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fermata.tools.site.inputs import Text
from fermata.tools.tool import ToolInput

Status = Literal["draft", "unpublished", "published", "scheduled"]
Limit = Annotated[int, Field(ge=1, le=100)]


class GetCollectionSchema(ToolInput):
    table_id: Text


class ListDocuments(ToolInput):
    table_id: Text
    status: Status | None = None
    author_user_id: Text | None = None
    limit: Annotated[int, Field(ge=1, le=200)] | None = None
    offset: Annotated[int, Field(ge=0)] | None = None


class GetDocument(ToolInput):
    document_id: Text


class SearchDocuments(ToolInput):
    query: Text
    limit: Limit | None = None


class ListMedia(ToolInput):
    query: str | None = None
    mime_type: str | None = None
    limit: Limit | None = None


class CreateDocument(ToolInput):
    table_id: Text
    fields: dict[str, Any] | None = None
    status: Status | None = None


class DocumentOnly(ToolInput):
    document_id: Text


class SetDocumentStatus(ToolInput):
    document_id: Text
    status: Status
    scheduled_at: Text | None = None


class SetDocumentField(ToolInput):
    document_id: Text
    field_id: Text
    value: Any


class SetDocumentFields(ToolInput):
    document_id: Text
    fields: dict[str, Any]


class SetDocumentAuthor(ToolInput):
    document_id: Text
    user_id: Text


class SetActiveCollection(ToolInput):
    table_id: Text
