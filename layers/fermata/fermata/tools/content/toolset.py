"""The records of the content tools: seven are answered here, eight by the editor. Handlers are loaded when called."""

from pkgutil import resolve_name
from typing import Any

from fermata.tools.content import inputs
from fermata.tools.factories import ToolFactory
from fermata.tools.tool import NoInput, Risk, Tool, ToolContext, ToolInput
from fermata.tools.toolset import Toolset

TOOLSET_NAME = "content"
CAN_READ_SCHEMAS = frozenset(
    {"data.custom.tables.read", "data.custom.tables.manage", "data.system.tables.read", "data.system.tables.manage"}
)
CAN_CREATE_DOCUMENTS = frozenset({"content.create"})
CAN_EDIT_DOCUMENTS = frozenset({"content.edit.own", "content.edit.any", "content.manage"})
CAN_PUBLISH_DOCUMENTS = frozenset({"content.publish.own", "content.publish.any"})
CAN_READ_DOCUMENTS = CAN_CREATE_DOCUMENTS | CAN_EDIT_DOCUMENTS | CAN_PUBLISH_DOCUMENTS
CAN_SET_AUTHORS = frozenset({"content.edit.any", "content.manage"})
_EVERYONE: frozenset[str] = frozenset()

_SHELF = ToolFactory(TOOLSET_NAME)


def _read(
    name: str, description: str, handler: str, permissions: frozenset[str], takes: type[ToolInput] = NoInput
) -> Tool:
    def run(given: ToolInput, context: ToolContext) -> Any:
        return resolve_name(f"fermata.tools.content.{handler}")(given, context)

    return _SHELF.host_read(name, description, takes, permissions, run)


def _write(
    name: str,
    description: str,
    takes: type[ToolInput],
    permissions: frozenset[str],
    risk: Risk = Risk.MODERATE,
) -> Tool:
    return _SHELF.browser_write(name, description, takes, permissions, risk=risk)


CONTENT_TOOLSET = Toolset(
    TOOLSET_NAME,
    (
        _read(
            "list_collections",
            "Lists the collections whose entries are content, each with its id, slug, label, kind and how many "
            "documents it holds; start here when you do not know where something is kept.",
            "collections:list_collections",
            CAN_READ_SCHEMAS,
        ),
        _read(
            "get_collection_schema",
            "Tells the fields of one collection with their types, which are required, and what a choice, a media field "
            "or a relation accepts; look before you write to fields you have not seen.",
            "collections:get_collection_schema",
            CAN_READ_SCHEMAS,
            inputs.GetCollectionSchemaInput,
        ),
        _read(
            "list_documents",
            "Lists the documents of one collection, 25 at a time unless `limit` (at most 200) says otherwise, filtered "
            "by status or author if you like; `total` says how many there are, and `offset` gets the next ones.",
            "documents:list_content_documents",
            CAN_READ_DOCUMENTS,
            inputs.ListDocumentsInput,
        ),
        _read(
            "get_document",
            "Reads one document whole, with the value of every field; the one the user has open comes as it is shown "
            "there, unsaved changes included.",
            "documents:get_content_document",
            CAN_READ_DOCUMENTS,
            inputs.GetDocumentInput,
        ),
        _read(
            "search_documents",
            "Finds documents of all collections by words of their slug, which is made of the title, and says where "
            "each one is kept.",
            "documents:search_content_documents",
            CAN_READ_DOCUMENTS,
            inputs.SearchDocumentsInput,
        ),
        _read(
            "list_users",
            "Lists the people who can be a document's author, with their ids.",
            "users_and_media:list_content_users",
            frozenset({"users.manage"}),
        ),
        _read(
            "list_media",
            "Lists images and other media that exist already, for media fields; `query` looks into file names and "
            "alternative texts, `mimeType` (such as image) into the type.",
            "users_and_media:list_media",
            frozenset({"media.read"}),
            inputs.ListMediaInput,
        ),
        _write(
            "create_document",
            "Creates a document in a collection, as a draft unless `status` says otherwise, with the given values of "
            "its fields, opens it for the user and returns its id.",
            inputs.CreateDocumentInput,
            CAN_CREATE_DOCUMENTS,
        ),
        _write(
            "delete_document",
            "Puts a document into the bin; do it only when the user wants it gone.",
            inputs.DocumentIdInput,
            CAN_EDIT_DOCUMENTS,
            Risk.HIGH,
        ),
        _write(
            "set_document_status",
            "Publishes a document, takes it back, or schedules it, in which case `scheduledAt` must say when, as an "
            "ISO instant.",
            inputs.SetDocumentStatusInput,
            CAN_PUBLISH_DOCUMENTS,
            Risk.HIGH,
        ),
        _write(
            "set_document_field",
            "Writes one field of a document; the value must be of the kind the collection's schema asks for.",
            inputs.SetDocumentFieldInput,
            CAN_EDIT_DOCUMENTS,
        ),
        _write(
            "set_document_fields",
            "Writes several fields of a document in one go; fields that are not named stay as they are.",
            inputs.SetDocumentFieldsInput,
            CAN_EDIT_DOCUMENTS,
        ),
        _write(
            "set_document_author",
            "Makes another person the author of a document; take the id from the list of users.",
            inputs.SetDocumentAuthorInput,
            CAN_SET_AUTHORS,
        ),
        _write(
            "set_active_document",
            "Opens a document in the user's editor without changing it.",
            inputs.DocumentIdInput,
            _EVERYONE,
            Risk.SAFE,
        ),
        _write(
            "set_active_collection",
            "Shows another collection in the user's sidebar.",
            inputs.SetActiveCollectionInput,
            _EVERYONE,
            Risk.SAFE,
        ),
    ),
)
