"""What the content tools take; the editor reads the same schemas."""

from typing import Annotated, Any, Literal

from pydantic import Field

from fermata.tools.site.definitions.shared_inputs import NonEmptyText
from fermata.tools.tool import ToolInput

DocumentStatus = Literal["draft", "unpublished", "published", "scheduled"]
ResultLimit = Annotated[int, Field(ge=1, le=100)]


class GetCollectionSchemaInput(ToolInput):
    table_id: NonEmptyText


class ListDocumentsInput(ToolInput):
    table_id: NonEmptyText
    status: DocumentStatus | None = None
    author_user_id: NonEmptyText | None = None
    limit: Annotated[int, Field(ge=1, le=200)] | None = None
    offset: Annotated[int, Field(ge=0)] | None = None


class GetDocumentInput(ToolInput):
    document_id: NonEmptyText


class SearchDocumentsInput(ToolInput):
    query: NonEmptyText
    limit: ResultLimit | None = None


class ListMediaInput(ToolInput):
    query: str | None = None
    mime_type: str | None = None
    limit: ResultLimit | None = None


class CreateDocumentInput(ToolInput):
    table_id: NonEmptyText
    fields: dict[str, Any] | None = None
    status: DocumentStatus | None = None


class DocumentIdInput(ToolInput):
    document_id: NonEmptyText


class SetDocumentStatusInput(ToolInput):
    document_id: NonEmptyText
    status: DocumentStatus
    scheduled_at: NonEmptyText | None = None


class SetDocumentFieldInput(ToolInput):
    document_id: NonEmptyText
    field_id: NonEmptyText
    value: Any


class SetDocumentFieldsInput(ToolInput):
    document_id: NonEmptyText
    fields: dict[str, Any]


class SetDocumentAuthorInput(ToolInput):
    document_id: NonEmptyText
    user_id: NonEmptyText


class SetActiveCollectionInput(ToolInput):
    table_id: NonEmptyText
