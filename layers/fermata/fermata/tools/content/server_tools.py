"""Define the content tools that the server answers from the tenant's content system."""

from typing import Annotated

from pydantic import Field

from fermata.tools.content.permissions import CAN_MANAGE_USERS, CAN_READ_DOCUMENTS, CAN_READ_MEDIA, CAN_READ_SCHEMAS
from fermata.tools.content.shared_inputs import DocumentStatus
from fermata.tools.content.tool_factory import CONTENT_TOOL_FACTORY
from fermata.tools.input_types import NonEmptyText, ZeroBasedIndex
from fermata.tools.tool import ToolInput
from fermata.tools.tool_factory import DeferredHandler, SnapshotCheck

ResultLimit = Annotated[int, Field(ge=1, le=100)]


class GetCollectionSchemaInput(ToolInput):
    table_id: NonEmptyText


class ListDocumentsInput(ToolInput):
    table_id: NonEmptyText
    status: DocumentStatus | None = None
    author_user_id: NonEmptyText | None = None
    limit: Annotated[int, Field(ge=1, le=200)] | None = None
    offset: ZeroBasedIndex | None = None


class GetDocumentInput(ToolInput):
    document_id: NonEmptyText


class SearchDocumentsInput(ToolInput):
    query: NonEmptyText
    limit: ResultLimit | None = None


class ListMediaInput(ToolInput):
    query: str | None = None
    mime_type: str | None = None
    limit: ResultLimit | None = None


CONTENT_SERVER_TOOLS = (
    CONTENT_TOOL_FACTORY.host_read(
        name="list_collections",
        description="Lists the collections whose entries are content. Each has its id, slug, label, kind and number of "
        "documents. Start here when you do not know where something is kept.",
        permissions=CAN_READ_SCHEMAS,
        handler=DeferredHandler("fermata.tools.content.collection_handlers:list_collections"),
        works_without_host=SnapshotCheck("fermata.tools.content.collection_handlers:has_listed_collections"),
    ),
    CONTENT_TOOL_FACTORY.host_read(
        name="get_collection_schema",
        description="Returns the fields of one collection, their types and which are required. It also says what a "
        "choice, a media field or a relation accepts. Look before you write to fields you have not seen.",
        input_model=GetCollectionSchemaInput,
        permissions=CAN_READ_SCHEMAS,
        handler=DeferredHandler("fermata.tools.content.collection_handlers:get_collection_schema"),
        works_without_host=SnapshotCheck("fermata.tools.content.collection_handlers:has_described_collection"),
    ),
    CONTENT_TOOL_FACTORY.host_read(
        name="list_documents",
        description="Lists the documents of one collection, 25 at a time unless `limit` (at most 200) says otherwise. "
        "It can filter by status or author. `total` says how many there are, and `offset` gets the next ones.",
        input_model=ListDocumentsInput,
        permissions=CAN_READ_DOCUMENTS,
        handler=DeferredHandler("fermata.tools.content.document_handlers:list_content_documents"),
    ),
    CONTENT_TOOL_FACTORY.host_read(
        name="get_document",
        description="Reads one document whole, with the value of every field. The one the user has open comes as it is "
        "shown there, unsaved changes included.",
        input_model=GetDocumentInput,
        permissions=CAN_READ_DOCUMENTS,
        handler=DeferredHandler("fermata.tools.content.document_handlers:get_content_document"),
        works_without_host=SnapshotCheck("fermata.tools.content.snapshot:read_active_document"),
    ),
    CONTENT_TOOL_FACTORY.host_read(
        name="search_documents",
        description="Finds documents of all collections by words of their slug, which is made of the title, and says "
        "where each one is kept.",
        input_model=SearchDocumentsInput,
        permissions=CAN_READ_DOCUMENTS,
        handler=DeferredHandler("fermata.tools.content.document_handlers:search_content_documents"),
    ),
    CONTENT_TOOL_FACTORY.host_read(
        name="list_users",
        description="Lists the people who can be a document's author, with their ids.",
        permissions=CAN_MANAGE_USERS,
        handler=DeferredHandler("fermata.tools.content.user_and_media_handlers:list_content_users"),
    ),
    CONTENT_TOOL_FACTORY.host_read(
        name="list_media",
        description="Lists images and other media that exist already, for media fields. `query` looks into file names "
        "and alternative texts, `mimeType` (such as image) into the type.",
        input_model=ListMediaInput,
        permissions=CAN_READ_MEDIA,
        handler=DeferredHandler("fermata.tools.content.user_and_media_handlers:list_media"),
    ),
)
