"""Every operation of the HTTP surface: what a door binds its verbs to, and what the OpenAPI document is made of.

ROUTES = (surface.SHOW_DEFAULTS.to(show_defaults), …)
"""

from dataclasses import replace
from typing import get_args

from fermata.domain.caller import Capability
from fermata.domain.dialect import ToolNameVariant
from fermata.domain.scopes import SCOPES
from fermata.wire.bodies.requests import (
    ChatBody,
    ConversationChange,
    CredentialChange,
    NewBudgets,
    NewConversation,
    NewCredential,
    NewDefault,
    NewUpload,
    ToolResultBody,
    UndoBody,
)
from fermata.wire.operations.operation import (
    BaseOperation,
    Operation,
    PublicOperation,
    RequestParameter,
    SuccessResponse,
)
from fermata.wire.renderers.ndjson import NDJSON_CONTENT_TYPE

API_PREFIX = "/admin/api/ai"
CONVERSATION = f"{API_PREFIX}/conversations/{{id}}"
BRIDGE = f"{API_PREFIX}/bridges/{{bridgeId}}"
CREDENTIAL = f"{API_PREFIX}/credentials/{{id}}"
DEFAULT = f"{API_PREFIX}/defaults/{{scope}}"

CHAT, PROVIDERS = (Capability.CHAT,), (Capability.PROVIDERS,)
TURNS = (Capability.CHAT, Capability.TURNS)

NO_CONVERSATION = {404: "The caller has no such conversation."}
NO_CREDENTIAL = {404: "The caller has no such credential."}
UPLOAD_GONE = "An upload that the body refers to is more than a day old."
NO_NAMES = {400: "The tools have no such names."}
NO_TURN = {404: "There is no such turn, or it is too old to be remembered."}
PICK_CREDENTIAL = {400: "The body is not as described, or its credential does not exist."}
UNKNOWN_SCOPE = {400: "The scope is unknown."}
STREAM = SuccessResponse("The turn's events, as they happen.", "StreamLine", media_type=NDJSON_CONTENT_TYPE)
OK = (SuccessResponse("Done.", "OkResponse"),)
ONE_CONVERSATION = SuccessResponse("The conversation.", "ConversationResponse")
ONE_CREDENTIAL = SuccessResponse("The credential.", "CredentialResponse")


def whole(name: str, says: str, least: int, most: int) -> RequestParameter:
    return RequestParameter(name, says, {"type": "integer", "minimum": least, "maximum": most})


CURSOR = "^([0-9]{6}-[0-9]{4})?$"
IDEMPOTENCY_KEY = RequestParameter(
    "Idempotency-Key",
    "The same key with the same body joins the turn it started; good for a day.",
    {"type": "string", "maxLength": 200},
    location="header",
)
TOOL_NAMES = RequestParameter(
    "Fermata-Tool-Names",
    "What tools are called towards this client, where the tenant's setting is not what it knows.",
    {"type": "string", "enum": list(get_args(ToolNameVariant))},
    location="header",
)
START_TURN = Operation(
    name="startTurn",
    method="POST",
    path=f"{API_PREFIX}/chat/{{scope}}",
    of=CHAT,
    summary="Ask the agent something",
    description="Starts a turn and streams it. With `Accept: application/json` the turn is only started. The "
    "connection may break: the turn goes on, and `bridges/{bridgeId}/events` streams it again from any event on.",
    parameters=(IDEMPOTENCY_KEY, TOOL_NAMES),
    body=ChatBody,
    responses=(STREAM, SuccessResponse("The turn has begun; follow it by its bridge.", "StartedTurnResponse", 202)),
    errors={
        400: "The body is not as described, or no credential and model are chosen.",
        402: "A budget does not have left what the request may cost. It says what is left, and when it renews.",
        404: "There is no such scope, conversation or upload, or its credential is gone.",
        409: "The conversation is already generating a response, the provider's key has to be entered again, the "
        "Idempotency-Key was used for another request, or an upload is not what was announced.",
        410: UPLOAD_GONE,
        422: "The model cannot do what is asked: see images, or call tools.",
    },
)
FOLLOW_TURN = Operation(
    name="followTurn",
    method="GET",
    path=f"{BRIDGE}/events",
    of=TURNS,
    summary="Follow a turn",
    description="Streams the events after number `after`, then whatever follows, until the turn ends.",
    parameters=(whole("after", "The number (`seq`) of the last event that is known.", 0, 999_999_999), TOOL_NAMES),
    responses=(STREAM,),
    errors={400: "There is no event of that number yet, or the tools have no such names."} | NO_TURN,
)
SHOW_TURN = Operation(
    name="showTurn",
    method="GET",
    path=BRIDGE,
    of=TURNS,
    summary="See how a turn stands",
    parameters=(TOOL_NAMES,),
    responses=(SuccessResponse("How it stands, and which tool requests wait for an answer.", "TurnStatusResponse"),),
    errors=NO_NAMES | NO_TURN,
)
CANCEL_TURN = Operation(
    name="cancelTurn",
    method="POST",
    path=f"{BRIDGE}/cancel",
    of=TURNS,
    summary="End a turn",
    responses=(SuccessResponse("How it ended. Asking again is fine.", "TurnEndResponse"),),
    errors=NO_TURN,
)
SHOW_JOURNAL = Operation(
    name="showJournal",
    method="GET",
    path=f"{BRIDGE}/journal",
    of=TURNS,
    summary="List a turn's edits",
    description="Edits whose answers told of a way back, or of a new revision, in their order; also while the turn "
    "runs.",
    parameters=(
        RequestParameter("cursor", "The `nextCursor` of the page before.", {"type": "string", "pattern": CURSOR}),
        TOOL_NAMES,
    ),
    responses=(SuccessResponse("What was edited, and what undos made of it.", "JournalResponse"),),
    errors={400: "The tools have no such names, or `cursor` is none of a page."} | NO_TURN,
)
UNDO_TURN = Operation(
    name="undoTurn",
    method="POST",
    path=f"{BRIDGE}/undo",
    of=(Capability.WRITE,),
    summary="Take a turn's edits back",
    description="Starts a turn that asks no model but the editor, for the inverse of each edit, the newest first, "
    "and streams it. With `Accept: application/json` it is only started. What meets a conflict is skipped; the last "
    "event has a `report`.",
    parameters=(IDEMPOTENCY_KEY, TOOL_NAMES),
    body=UndoBody,
    requires_body=False,
    responses=(STREAM, SuccessResponse("The undo has begun; follow it by its own bridge.", "StartedTurnResponse", 202)),
    errors=NO_TURN
    | {
        400: "The body is not as described, or `through` is no edit of this turn.",
        409: "There is nothing to take back, the turn or another one of its conversation still runs, or the "
        "Idempotency-Key was used for another request.",
    },
)
LIST_TOOLS = Operation(
    name="listTools",
    method="GET",
    path=f"{API_PREFIX}/tools/{{scope}}",
    of=CHAT,
    summary="List the tools of a scope",
    description="What a model is offered when this caller asks it something: the same names, descriptions and schemas "
    "in the same order, and who carries each one out.",
    parameters=(TOOL_NAMES,),
    responses=(SuccessResponse("Those the caller's capabilities allow.", "ToolListResponse"),),
    errors=NO_NAMES | {404: "There is no such scope."},
)
ANSWER_TOOL = Operation(
    name="answerTool",
    method="POST",
    path=f"{API_PREFIX}/tool-result",
    of=(Capability.CHAT, Capability.WRITE),
    summary="Answer a tool request",
    description="The editor did what a `toolRequest` asked for. The same answer may be sent again. `result` is a "
    "ToolOutput; one that is none is refused, and its request stays open. A tool that changes "
    f"something needs {Capability.WRITE}, one that reads needs {Capability.CHAT}.",
    body=ToolResultBody,
    responses=OK,
    errors={
        404: "Nobody waits for this answer: the turn has ended, the time is over, or it was never asked. Or there is "
        "no such upload.",
        409: "The request was already answered differently, or an upload is not what was announced.",
        410: UPLOAD_GONE,
    },
)
TAKE_UPLOAD = Operation(
    name="takeUpload",
    method="POST",
    path=f"{API_PREFIX}/uploads",
    of=CHAT,
    summary="Upload what is too large for a request",
    description="Announce a snapshot of up to 16 MiB or an image of up to 10 MB; then PUT it to `url` with these "
    "headers within five minutes, without a token. For a day, a body may name it: `snapshotRef` instead of `snapshot`, "
    "`uploadRef` instead of an image's `data`. Only who announced it can.",
    body=NewUpload,
    responses=(SuccessResponse("Where to put it, and what to call it.", "UploadResponse", 201),),
    errors={413: "It is larger than an upload of its kind may be."},
)
LIST_CONVERSATIONS = Operation(
    name="listConversations",
    method="GET",
    path=f"{API_PREFIX}/conversations",
    of=CHAT,
    summary="List one's conversations of a scope",
    parameters=(
        RequestParameter("scope", "Whose conversations.", {"type": "string", "enum": list(SCOPES)}, required=True),
        RequestParameter("cursor", "The `nextCursor` of the page before.", {"type": "string"}),
        whole("limit", "How many a page has.", 0, 500),
    ),
    responses=(SuccessResponse("The one that was used last comes first.", "ConversationListResponse"),),
)
CREATE_CONVERSATION = Operation(
    name="createConversation",
    method="POST",
    path=f"{API_PREFIX}/conversations",
    of=CHAT,
    summary="Begin a conversation",
    body=NewConversation,
    responses=(SuccessResponse("The new conversation.", "ConversationResponse", 201),),
    errors=PICK_CREDENTIAL,
)
SHOW_CONVERSATION = Operation(
    name="showConversation",
    method="GET",
    path=CONVERSATION,
    of=CHAT,
    summary="Open a conversation",
    parameters=(
        TOOL_NAMES,
        whole("before", "Only messages before this position: the `nextCursor` of the page before.", 0, 1_000_000_000),
        whole("limit", "How many messages a page has.", 0, 1000),
    ),
    responses=(SuccessResponse("The conversation with its newest messages.", "ConversationWithMessagesResponse"),),
    errors=NO_CONVERSATION,
)
CHANGE_CONVERSATION = Operation(
    name="changeConversation",
    method="PUT",
    path=CONVERSATION,
    of=CHAT,
    summary="Rename a conversation, or switch its model",
    description="What is left out stays. A turn that runs goes on with the model it was started with.",
    body=ConversationChange,
    responses=(ONE_CONVERSATION,),
    errors=PICK_CREDENTIAL | NO_CONVERSATION,
)
DELETE_CONVERSATION = Operation(
    name="deleteConversation",
    method="DELETE",
    path=CONVERSATION,
    of=CHAT,
    summary="Delete a conversation",
    description="A turn that runs in it ends. Deleting again is fine.",
    responses=OK,
    errors=NO_CONVERSATION,
)
SHOW_IMAGE = Operation(
    name="showImage",
    method="GET",
    path=f"{CONVERSATION}/messages/{{messageId}}/images/{{index}}",
    of=CHAT,
    summary="Fetch an image of a message",
    responses=(SuccessResponse("The image as it was sent.", media_type="image/*"),),
    errors={404: "There is no such image in a conversation of the caller's."},
)
SHOW_DEFAULTS = Operation(
    name="showDefaults",
    method="GET",
    path=f"{API_PREFIX}/defaults",
    of=CHAT,
    summary="See each scope's default model",
    responses=(SuccessResponse("The scopes that have one.", "DefaultListResponse"),),
)
SET_DEFAULT = Operation(
    name="setDefault",
    method="PUT",
    path=DEFAULT,
    of=PROVIDERS,
    summary="Set a scope's default model",
    body=NewDefault,
    responses=(SuccessResponse("The default.", "DefaultResponse"),),
    errors={400: "The body is not as described, the scope is unknown, or the credential does not exist."},
)
CLEAR_DEFAULT = Operation(
    name="clearDefault",
    method="DELETE",
    path=DEFAULT,
    of=PROVIDERS,
    summary="Clear a scope's default model",
    responses=(SuccessResponse("There is none now.", status=204),),
    errors=UNKNOWN_SCOPE,
)
LIST_CREDENTIALS = Operation(
    name="listCredentials",
    method="GET",
    path=f"{API_PREFIX}/credentials",
    of=PROVIDERS,
    summary="List one's provider credentials",
    responses=(SuccessResponse("The newest first.", "CredentialListResponse"),),
)
CREATE_CREDENTIAL = Operation(
    name="createCredential",
    method="POST",
    path=f"{API_PREFIX}/credentials",
    of=PROVIDERS,
    summary="Enter a provider's key or address",
    description="Scopes without a default get one from it, if the provider can be reached. The key is never shown "
    "again.",
    body=NewCredential,
    responses=(SuccessResponse("The new credential.", "CredentialResponse", 201),),
    errors={400: "The body is not as described, or the provider or address is none that can be used.",
              409: "The caller has a credential of this provider and label."},
)  # fmt: skip
SHOW_CREDENTIAL = Operation(
    name="showCredential",
    method="GET",
    path=CREDENTIAL,
    of=PROVIDERS,
    summary="See a credential",
    responses=(ONE_CREDENTIAL,),
    errors=NO_CREDENTIAL,
)
CHANGE_CREDENTIAL = Operation(
    name="changeCredential",
    method="PUT",
    path=CREDENTIAL,
    of=PROVIDERS,
    summary="Change a credential's label, key or address",
    body=CredentialChange,
    responses=(ONE_CREDENTIAL,),
    errors={400: "The body is not as described, or does not fit this credential.",
              409: "The caller has a credential of this provider and label."} | NO_CREDENTIAL,
)  # fmt: skip
DELETE_CREDENTIAL = Operation(
    name="deleteCredential",
    method="DELETE",
    path=CREDENTIAL,
    of=PROVIDERS,
    summary="Remove a credential",
    responses=OK,
    errors=NO_CREDENTIAL | {409: "It is a scope's default."},
)
TRY_CREDENTIAL = Operation(
    name="tryCredential",
    method="POST",
    path=f"{CREDENTIAL}/test",
    of=PROVIDERS,
    summary="Try a credential out",
    responses=(SuccessResponse("Whether it opens any models.", "CredentialTestResponse"),),
    errors=NO_CREDENTIAL,
)
LIST_MODELS = Operation(
    name="listModels",
    method="GET",
    path=f"{API_PREFIX}/providers/{{id}}/models",
    of=(Capability.CHAT, Capability.PROVIDERS),
    summary="List the models a credential opens",
    parameters=(RequestParameter("credentialId", "Whose models.", {"type": "string", "minLength": 1}, required=True),),
    responses=(SuccessResponse("In the order to show them.", "ModelListResponse"),),
    errors={
        400: "The provider is unknown, or the credential is for another one.",
        404: "The tenant has no such credential.",
        409: "The key can no longer be opened: enter it again.",
        502: "The provider refused.",
    },
)
EDITOR_BRIDGE = Operation(
    name="editorBridge",
    method="GET",
    path=f"{API_PREFIX}/editor-bridge",
    of=(Capability.CHAT, "site.read"),
    summary="Keep an Instatic editor company",
    description="For tenants with Instatic's browsers, which open it unasked. Nothing but heartbeats ever comes.",
    parameters=(RequestParameter("scope", "The editor's scope.", {"type": "string", "enum": list(SCOPES)}),),
    responses=(SuccessResponse("Empty lines.", "StreamLine", media_type=NDJSON_CONTENT_TYPE),),
    errors={404: "The tenant's browsers are not Instatic's."},
)
LIST_CONNECTORS = Operation(
    name="listConnectors",
    method="GET",
    path=f"{API_PREFIX}/mcp/connectors",
    of=PROVIDERS,
    summary="List the MCP connectors",
    description="Instatic's admin pages ask for them. There are none.",
    responses=(SuccessResponse("None.", "ConnectorListResponse"),),
)
SHOW_AUDIT = Operation(
    name="showAudit",
    method="GET",
    path=f"{API_PREFIX}/audit",
    of=(Capability.AUDIT,),
    summary="See what was used",
    description="Sums of what providers were asked for, by user, scope, model and day. They follow a few seconds "
    "behind.",
    parameters=(
        RequestParameter("since", "From when on, an ISO instant; 30 days ago when it is none.", {"type": "string"}),
        RequestParameter("tz", "Whose days, an IANA time zone; UTC when it is none.", {"type": "string"}),
        RequestParameter(
            "billable", "`true`: every row says as well what of its cost is billable.", {"type": "string"}
        ),
    ),
    responses=(SuccessResponse("What was used since then.", "AuditResponse"),),
)
SHOW_BUDGETS = Operation(
    name="showBudgets",
    method="GET",
    path=f"{API_PREFIX}/budgets",
    of=(Capability.AUDIT, Capability.PROVIDERS),
    summary="See the budgets, and what is left of them",
    responses=(SuccessResponse("The limits, what is spent, and when it renews.", "BudgetsResponse"),),
)
SET_BUDGETS = Operation(
    name="setBudgets",
    method="PUT",
    path=f"{API_PREFIX}/budgets",
    of=PROVIDERS,
    summary="Set the budgets",
    description="All limits at once: what is left out has none. They count for turns that start from now on, and for "
    "the next rounds of those that were started under a budget.",
    body=NewBudgets,
    responses=(SuccessResponse("The budgets as they are now.", "BudgetsResponse"),),
)
SHOW_HEALTH = PublicOperation(
    name="showHealth",
    method="GET",
    path="/healthz",
    summary="Ask whether the service answers",
    responses=(SuccessResponse("It does.", "OkResponse"),),
)
SHOW_VERSION = PublicOperation(
    name="showVersion",
    method="GET",
    path="/version",
    summary="Ask which version this is",
    responses=(SuccessResponse("The version and the stage.", "VersionResponse"),),
)
SHOW_HEALTH_HERE = replace(SHOW_HEALTH, name="showHealthHere", path=f"{API_PREFIX}/healthz")
SHOW_VERSION_HERE = replace(SHOW_VERSION, name="showVersionHere", path=f"{API_PREFIX}/version")
SHOW_OPENAPI = PublicOperation(
    name="showOpenApi",
    method="GET",
    path=f"{API_PREFIX}/openapi.json",
    summary="Fetch this document",
    responses=(SuccessResponse("An OpenAPI 3.1 document.", "Document"),),
)
OPERATIONS: tuple[BaseOperation, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, BaseOperation)
)
"""In the order in which they stand here."""
