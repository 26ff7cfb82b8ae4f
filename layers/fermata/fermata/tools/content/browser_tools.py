"""Define the content tools that the editor in the browser runs."""

from typing import Any

from fermata.tools.content.permissions import (
    CAN_CREATE_DOCUMENTS,
    CAN_EDIT_DOCUMENTS,
    CAN_PUBLISH_DOCUMENTS,
    CAN_SET_AUTHORS,
)
from fermata.tools.content.shared_inputs import DocumentStatus
from fermata.tools.content.tool_factory import CONTENT_TOOL_FACTORY
from fermata.tools.input_types import NonEmptyText
from fermata.tools.tool import Risk, ToolInput
from fermata.tools.tool_factory import EVERYONE


class CreateDraftInput(ToolInput):
    table_id: NonEmptyText
    fields: dict[str, Any] | None = None


class CreateDocumentInput(CreateDraftInput):
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


CREATE_DRAFT = CONTENT_TOOL_FACTORY.browser_write(
    name="create_document",
    description="Creates a draft in a collection, with the given values of its fields, opens it for the user and "
    "returns its id.",
    input_model=CreateDraftInput,
    permissions=CAN_CREATE_DOCUMENTS,
    members_of_other_generations=frozenset({"status"}),
)

CONTENT_BROWSER_TOOLS = (
    CONTENT_TOOL_FACTORY.browser_write(
        name="create_document",
        description="Creates a document in a collection with the given values of its fields, as a draft unless "
        "`status` says otherwise. Opens it for the user and returns its id.",
        input_model=CreateDocumentInput,
        permissions=CAN_CREATE_DOCUMENTS,
    ),
    CONTENT_TOOL_FACTORY.browser_write(
        name="delete_document",
        description="Puts a document into the bin; do it only when the user wants it gone.",
        input_model=DocumentIdInput,
        permissions=CAN_EDIT_DOCUMENTS,
        risk=Risk.HIGH,
    ),
    CONTENT_TOOL_FACTORY.browser_write(
        name="set_document_status",
        description="Publishes a document, takes it back, or schedules it, in which case `scheduledAt` must say when, "
        "as an ISO instant.",
        input_model=SetDocumentStatusInput,
        permissions=CAN_PUBLISH_DOCUMENTS,
        risk=Risk.HIGH,
    ),
    CONTENT_TOOL_FACTORY.browser_write(
        name="set_document_field",
        description="Writes one field of a document; the value must be of the kind the collection's schema asks for.",
        input_model=SetDocumentFieldInput,
        permissions=CAN_EDIT_DOCUMENTS,
    ),
    CONTENT_TOOL_FACTORY.browser_write(
        name="set_document_fields",
        description="Writes several fields of a document in one go; fields that are not named stay as they are.",
        input_model=SetDocumentFieldsInput,
        permissions=CAN_EDIT_DOCUMENTS,
    ),
    CONTENT_TOOL_FACTORY.browser_write(
        name="set_document_author",
        description="Makes another person the author of a document; take the id from the list of users.",
        input_model=SetDocumentAuthorInput,
        permissions=CAN_SET_AUTHORS,
    ),
    CONTENT_TOOL_FACTORY.browser_write(
        name="set_active_document",
        description="Opens a document in the user's editor without changing it.",
        input_model=DocumentIdInput,
        permissions=EVERYONE,
        risk=Risk.SAFE,
    ),
    CONTENT_TOOL_FACTORY.browser_write(
        name="set_active_collection",
        description="Shows another collection in the user's sidebar.",
        input_model=SetActiveCollectionInput,
        permissions=EVERYONE,
        risk=Risk.SAFE,
    ),
)
