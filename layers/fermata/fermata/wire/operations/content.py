"""Define operations on content: spaces, models, documents with their versions, change sets."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.content_requests import (
    ChangeSetMerge,
    DocumentChange,
    DocumentInChangeSet,
    ModelDefinition,
    NewChangeSet,
    NewDocument,
    NewSpace,
)
from fermata.wire.operations.common import (
    API_PREFIX,
    CAN_MANAGE_CONTENT,
    CAN_READ_CONTENT,
    CAN_WRITE_CONTENT,
    OK_RESPONSES,
    make_integer_parameter,
)
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

CONTENT_PATH = f"{API_PREFIX}/content"
_SPACE_PATH = f"{CONTENT_PATH}/{{site}}/{{environment}}"
_MODELS_PATH = f"{_SPACE_PATH}/models"
_MODEL_PATH = f"{_MODELS_PATH}/{{model}}"
_DOCUMENTS_PATH = f"{_SPACE_PATH}/documents/{{model}}"
_DOCUMENT_PATH = f"{_DOCUMENTS_PATH}/{{document}}"
_VERSIONS_PATH = f"{_DOCUMENT_PATH}/versions"
_VERSION_PATH = f"{_VERSIONS_PATH}/{{version}}"
_CHANGE_SETS_PATH = f"{_SPACE_PATH}/change-sets"
_CHANGE_SET_PATH = f"{_CHANGE_SETS_PATH}/{{changeSet}}"

_NO_SPACE = {404: "There is no such site, environment or model."}
_NO_DOCUMENT = {404: "There is no such site, environment, model, document or version."}
_NO_CHANGE_SET = {404: "There is no such site, environment, model, document or change set."}
_BAD_NAME = {400: "A name has another form than names have."}
_REFUSED = {
    400: "The body is not as described, or `problems` says what breaks the rules of the model.",
    409: "A unique value is the document's that `owner` names.",
    412: "The document has changed since; `version` says which one is current.",
    413: "The document is too large.",
    503: "Others keep changing the document. Try again.",
}
_HEADER = {"type": "string", "maxLength": 200}
_KEY = RequestParameter(
    "Idempotency-Key", "A request with the same key is carried out once.", _HEADER, location="header"
)
_IF_MATCH = RequestParameter(
    "If-Match", "The `ETag` of what was seen. The request is refused if it has changed.", _HEADER, location="header"
)
_IF_NONE_MATCH = RequestParameter(
    "If-None-Match", "The `ETag` of what is there. 304 without a body if it is current.", _HEADER, location="header"
)
_BREAKING = RequestParameter(
    "breaking",
    "With `refuse`, the documents of the model have to fit afterwards: no field goes, gets another type or is newly "
    "required. Without it, only kind, unique fields and translation stay as they are.",
    {"type": "string", "enum": ["refuse"]},
)
_DOCUMENT_RESPONSES = (SuccessResponse("The document. `ETag` names its version.", "DocumentResponse"),)
NO_SUCH_FORMS = "The plan of the workspace is locked, or has no more forms, or none that approve at once."

CAN_DECIDE = (*CAN_WRITE_CONTENT, Capability.REVIEW_CONTENT)
"""Who may merge and discard change sets, where the rest allows it."""

LIST_SPACES = Operation(
    name="listContentSpaces", function="api", method="GET", path=f"{CONTENT_PATH}/spaces",
    capabilities=CAN_READ_CONTENT,
    summary="List the sites and their environments",
    responses=(SuccessResponse("By site and environment.", "SpaceListResponse"),),
)  # fmt: skip
CREATE_SPACE = Operation(
    name="createContentSpace", function="api", method="POST", path=f"{CONTENT_PATH}/spaces",
    capabilities=CAN_MANAGE_CONTENT,
    summary="Create an environment of a site",
    description="It begins with the models page, post, asset, navigation, setting and vocabulary.",
    body=NewSpace,
    responses=(SuccessResponse("The space.", "SpaceResponse", 201),),
    errors={400: "The body is not as described, or there are too many spaces.", 409: "It exists."},
)  # fmt: skip
DELETE_SPACE = Operation(
    name="deleteContentSpace", function="credentials", method="DELETE",
    path=f"{API_PREFIX}/content-spaces/{{site}}/{{environment}}", capabilities=CAN_MANAGE_CONTENT,
    summary="Delete an environment of a site with all it has",
    description="It is found no more at once, and is erased within an hour: documents with all their versions, images, "
    "tokens, the index. It cannot be undone. Its name can be used again then.",
    parameters=(
        RequestParameter(
            "confirm", "The name of the space, as `site/environment`.", {"type": "string"}, required=True
        ),
    ),
    responses=(SuccessResponse("It begins within five minutes.", "PrivacyJobResponse", 202),),
    errors=_BAD_NAME | {400: "`confirm` is not the name of the space.", 404: "There is no such space."},
)  # fmt: skip
SHOW_PLAN_USAGE = Operation(
    name="showPlanUsage", function="api", method="GET", path=f"{CONTENT_PATH}/plan",
    capabilities=(Capability.AUDIT, Capability.CONTENT),
    summary="See what the workspace has used of its plan in this month",
    responses=(SuccessResponse("The plan, what it includes, and what is used.", "PlanUsageResponse"),),
)  # fmt: skip
LIST_CONTENT_MODELS = Operation(
    name="listContentModels", function="api", method="GET", path=_MODELS_PATH, capabilities=CAN_READ_CONTENT,
    summary="List the models of a space",
    responses=(SuccessResponse("By id.", "ContentModelListResponse"),),
    errors=_NO_SPACE | _BAD_NAME,
)  # fmt: skip
SHOW_CONTENT_MODEL = Operation(
    name="showContentModel", function="api", method="GET", path=_MODEL_PATH, capabilities=CAN_READ_CONTENT,
    summary="Show a model",
    responses=(SuccessResponse("The model. `ETag` names its version.", "ContentModelResponse"),),
    errors=_NO_SPACE | _BAD_NAME,
)  # fmt: skip
PUT_CONTENT_MODEL = Operation(
    name="putContentModel", function="api", method="PUT", path=_MODEL_PATH, capabilities=CAN_MANAGE_CONTENT,
    summary="Create or change a model",
    description="All of it at once. A model with documents keeps its kind, its unique fields and whether it is "
    "translated.",
    parameters=(_IF_MATCH, _KEY, _BREAKING),
    body=ModelDefinition,
    responses=(SuccessResponse("The model.", "ContentModelResponse"),),
    errors=_NO_SPACE
    | _REFUSED
    | {
        402: NO_SUCH_FORMS,
        409: "Its documents are not what the new definition makes of them, or `breakingChanges` says why not.",
    },
)  # fmt: skip
REMOVE_CONTENT_MODEL = Operation(
    name="removeContentModel", function="api", method="DELETE", path=_MODEL_PATH, capabilities=CAN_MANAGE_CONTENT,
    summary="Delete a model that nothing uses",
    parameters=(_IF_MATCH, _KEY),
    responses=OK_RESPONSES,
    errors=_NO_SPACE | _REFUSED | _BAD_NAME | {409: "It is in use, or every space has it."},
)  # fmt: skip
SHOW_SPACE_HEALTH = Operation(
    name="showSpaceHealth", function="api", method="GET", path=f"{_SPACE_PATH}/health", capabilities=CAN_READ_CONTENT,
    summary="Show what is wrong in the models of a space, and how many change sets wait",
    responses=(SuccessResponse("A score, warnings, and the change sets that wait.", "SpaceHealthResponse"),),
    errors=_BAD_NAME | {404: "There is no such site or environment."},
)  # fmt: skip
LIST_DOCUMENTS = Operation(
    name="listDocuments", function="api", method="GET", path=_DOCUMENTS_PATH, capabilities=CAN_READ_CONTENT,
    summary="List documents of a model",
    parameters=(
        make_integer_parameter("limit", "The greatest number of documents; 50 without it.", 1, 200),
        RequestParameter("cursor", "`nextCursor` of the page before.", {"type": "string", "maxLength": 40}),
        RequestParameter(
            "status", "Only those with it.",
            {"type": "string", "enum": ["draft", "in_review", "published", "rejected", "archived"]},
        ),
        RequestParameter("category", "Only those with it.", {"type": "string", "maxLength": 64}),
        RequestParameter("missing", "Only those that say nothing in it.", {"type": "string", "maxLength": 40}),
        RequestParameter("slug", "Only the one with it.", {"type": "string", "maxLength": 64}),
        RequestParameter(
            "ids", "Only these: up to 100 ids, with commas between them.", {"type": "string", "maxLength": 4_100}
        ),
    ),
    responses=(SuccessResponse("A page of the list.", "DocumentListResponse"),),
    errors=_NO_SPACE | _BAD_NAME,
)  # fmt: skip
CREATE_DOCUMENT = Operation(
    name="createDocument", function="api", method="POST", path=_DOCUMENTS_PATH, capabilities=CAN_WRITE_CONTENT,
    summary="Create a document",
    parameters=(_KEY,),
    body=NewDocument,
    responses=(SuccessResponse("The document. `ETag` names its version.", "DocumentResponse", 201),),
    errors=_NO_DOCUMENT | _REFUSED,
)  # fmt: skip
SHOW_DOCUMENT = Operation(
    name="showDocument", function="api", method="GET", path=_DOCUMENT_PATH, capabilities=CAN_READ_CONTENT,
    summary="Show a document",
    parameters=(_IF_NONE_MATCH,),
    responses=_DOCUMENT_RESPONSES,
    errors=_NO_DOCUMENT | _BAD_NAME | {304: "It is as it was."},
)  # fmt: skip
CHANGE_DOCUMENT = Operation(
    name="changeDocument", function="api", method="PATCH", path=_DOCUMENT_PATH, capabilities=CAN_WRITE_CONTENT,
    summary="Change a document",
    description="What is not named stays. A field that is null is removed.",
    parameters=(_IF_MATCH, _KEY),
    body=DocumentChange,
    responses=_DOCUMENT_RESPONSES,
    errors=_NO_DOCUMENT | _REFUSED,
)  # fmt: skip
DELETE_DOCUMENT = Operation(
    name="deleteDocument", function="api", method="DELETE", path=_DOCUMENT_PATH, capabilities=CAN_WRITE_CONTENT,
    summary="Delete a document",
    description="Its versions stay, and any of them can be restored.",
    parameters=(_IF_MATCH, _KEY),
    responses=OK_RESPONSES,
    errors=_NO_DOCUMENT | _REFUSED,
)  # fmt: skip
LIST_VERSIONS = Operation(
    name="listDocumentVersions", function="api", method="GET", path=_VERSIONS_PATH, capabilities=CAN_READ_CONTENT,
    summary="List the versions of a document, also of one that was deleted",
    description="Those of a model are the versions of the document `model/<id>`.",
    parameters=(
        make_integer_parameter("limit", "The greatest number of versions; 50 without it.", 1, 200),
        make_integer_parameter("before", "Only versions with a smaller number.", 1, 999_999_999),
    ),
    responses=(SuccessResponse("The newest first.", "VersionListResponse"),),
    errors=_NO_DOCUMENT | _BAD_NAME,
)  # fmt: skip
SHOW_VERSION_OF_DOCUMENT = Operation(
    name="showDocumentVersion", function="api", method="GET", path=_VERSION_PATH, capabilities=CAN_READ_CONTENT,
    summary="Show a version of a document",
    responses=_DOCUMENT_RESPONSES,
    errors=_NO_DOCUMENT | _BAD_NAME,
)  # fmt: skip
RESTORE_VERSION_OF_DOCUMENT = Operation(
    name="restoreDocumentVersion", function="api", method="POST", path=f"{_VERSION_PATH}/restore",
    capabilities=CAN_WRITE_CONTENT,
    summary="Restore a version of a document, also of one that was deleted",
    description="It becomes a new version. Models need `ai.content.manage`.",
    parameters=(_IF_MATCH, _KEY),
    responses=_DOCUMENT_RESPONSES,
    errors=_NO_DOCUMENT | _REFUSED | {402: NO_SUCH_FORMS},
)  # fmt: skip
LIST_CHANGE_SETS = Operation(
    name="listChangeSets", function="api", method="GET", path=_CHANGE_SETS_PATH, capabilities=CAN_READ_CONTENT,
    summary="List the change sets of a space",
    responses=(SuccessResponse("The newest first.", "ChangeSetListResponse"),),
    errors=_NO_SPACE | _BAD_NAME,
)  # fmt: skip
BEGIN_CHANGE_SET = Operation(
    name="beginChangeSet", function="api", method="POST", path=_CHANGE_SETS_PATH, capabilities=CAN_WRITE_CONTENT,
    summary="Begin a change set",
    body=NewChangeSet,
    responses=(SuccessResponse("The change set.", "ChangeSetResponse", 201),),
    errors=_NO_SPACE | {429: "Too many change sets wait to be merged."},
)  # fmt: skip
SHOW_CHANGE_SET = Operation(
    name="showChangeSet", function="api", method="GET", path=_CHANGE_SET_PATH, capabilities=CAN_READ_CONTENT,
    summary="Show a change set with its documents",
    description="`may` says what the caller may do with it. With `limit`, a page of its documents is shown, each with "
    "`base`, the version that it has begun with, and on the first of several pages how many there are of each model.",
    parameters=(
        make_integer_parameter("limit", "The greatest number of documents; without it, as many as fit.", 0, 100),
        RequestParameter("cursor", "`nextCursor` of the page before.", {"type": "string", "maxLength": 100}),
        RequestParameter("model", "Only documents of it.", {"type": "string", "maxLength": 40}),
    ),
    responses=(SuccessResponse("The change set.", "ChangeSetResponse"),),
    errors=_NO_CHANGE_SET | _BAD_NAME,
)  # fmt: skip
DISCARD_CHANGE_SET = Operation(
    name="discardChangeSet", function="api", method="DELETE", path=_CHANGE_SET_PATH, capabilities=CAN_DECIDE,
    summary="Discard a change set",
    responses=OK_RESPONSES,
    errors=_NO_CHANGE_SET | _BAD_NAME | {409: "It was merged, or somebody is changing it."},
)  # fmt: skip
CHANGE_IN_CHANGE_SET = Operation(
    name="changeInChangeSet", function="api", method="PATCH",
    path=f"{_CHANGE_SET_PATH}/documents/{{model}}/{{document}}", capabilities=CAN_WRITE_CONTENT,
    summary="Create, change or delete a document in a change set only",
    body=DocumentInChangeSet,
    responses=(SuccessResponse("The document as it is in the change set.", "ChangedDocumentResponse"),),
    errors=_NO_CHANGE_SET
    | {409: "The change set is closed.", 413: "The change set or the document is too large."}
    | {400: _REFUSED[400], 503: _REFUSED[503]},
)  # fmt: skip
MERGE_CHANGE_SET = Operation(
    name="mergeChangeSet", function="api", method="POST", path=f"{_CHANGE_SET_PATH}/merge",
    capabilities=CAN_DECIDE,
    summary="Merge a change set, as a whole or not at all",
    body=ChangeSetMerge,
    requires_body=False,
    responses=(SuccessResponse("The change set.", "ChangeSetResponse"),),
    errors=_NO_CHANGE_SET
    | _REFUSED
    | {
        402: NO_SUCH_FORMS,
        403: "Changes of this space are merged by reviewers.",
        409: "`conflicts` has the fields that others have changed too, `breakingChanges` what documents may not fit; "
        "or a unique value is another document's.",
    },
)  # fmt: skip

CONTENT_HANDLERS = (
    (LIST_SPACES, "model_requests:list_content_spaces"),
    (CREATE_SPACE, "model_requests:create_content_space"),
    (SHOW_PLAN_USAGE, "plan_requests:show_plan_usage"),
    (LIST_CONTENT_MODELS, "model_requests:list_space_models"),
    (SHOW_CONTENT_MODEL, "model_requests:show_content_model"),
    (PUT_CONTENT_MODEL, "model_requests:put_content_model"),
    (REMOVE_CONTENT_MODEL, "model_requests:remove_content_model"),
    (SHOW_SPACE_HEALTH, "health_requests:show_space_health"),
    (LIST_DOCUMENTS, "document_requests:list_space_documents"),
    (CREATE_DOCUMENT, "document_requests:create_content_document"),
    (SHOW_DOCUMENT, "document_requests:show_document"),
    (CHANGE_DOCUMENT, "document_requests:change_content_document"),
    (DELETE_DOCUMENT, "document_requests:delete_content_document"),
    (LIST_VERSIONS, "document_requests:list_document_versions"),
    (SHOW_VERSION_OF_DOCUMENT, "document_requests:show_document_version"),
    (RESTORE_VERSION_OF_DOCUMENT, "document_requests:restore_document_version"),
    (LIST_CHANGE_SETS, "change_set_requests:list_space_change_sets"),
    (BEGIN_CHANGE_SET, "change_set_requests:begin_space_change_set"),
    (SHOW_CHANGE_SET, "change_set_requests:show_change_set"),
    (DISCARD_CHANGE_SET, "change_set_requests:discard_space_change_set"),
    (CHANGE_IN_CHANGE_SET, "change_set_requests:change_document_in_change_set"),
    (MERGE_CHANGE_SET, "change_set_requests:merge_space_change_set"),
)
"""Operations and their handlers in `content_api/`, as `module:function`."""
