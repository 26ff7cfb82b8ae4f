"""Define operations of the planner's clients: chats, operations, history, drafts of sessions (docs/edit-plans.md)."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.planner_requests import (
    BootstrapBody,
    CancelChatBody,
    ChatForecastBody,
    HistoryStepBody,
    OperationsBody,
    PlannerChatBody,
    PublishBody,
    RegisterSiteBody,
    RestoreBody,
    RestoreEditionBody,
    VariationsBody,
)
from fermata.wire.http.messages import EVENT_STREAM
from fermata.wire.operations.common import API_PREFIX, CAN_CHAT, IDEMPOTENCY_KEY, make_integer_parameter
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

PLANNER_PATH = f"{API_PREFIX}/planner"
_CAN_WRITE = (Capability.WRITE,)
_NAME = {"type": "string", "minLength": 1, "maxLength": 120, "pattern": r"^[A-Za-z0-9._:-]+$"}
SESSION = RequestParameter("session", "The session whose draft it is.", _NAME, required=True)
SITE = RequestParameter("siteId", "The site of the session; by default the only one.", _NAME)
SLUG_PARAMETER = RequestParameter("slug", "The page.", {"type": "string", "maxLength": 200})
_SESSION_PARAMETERS = (SESSION, SITE)
_GONE = {410: "The conversation of the session was deleted."}
_REPEATABLE = (IDEMPOTENCY_KEY,)
_KEY_USED = {409: "The Idempotency-Key was used for another request."}
_CHANGED = (SuccessResponse("The draft has changed.", "DraftChangedResponse"),)
_STORES_MUCH = {429: "The user or the workspace has reached a limit of stored bytes a day."}
_TOO_LARGE = {413: "The change, a page, or the draft is larger than what is stored together."} | _STORES_MUCH

CHAT = Operation(
    name="chatWithPlanner",
    function="stream_turns",
    method="POST",
    path=f"{PLANNER_PATH}/chat",
    capabilities=_CAN_WRITE,
    summary="Let the planner change a draft, and wait for the result",
    description="Blanks may come before the object, while the planner works. `executionMode` says what becomes of the "
    "plan, or of the one that waits.",
    parameters=_REPEATABLE,
    body=PlannerChatBody,
    responses=(SuccessResponse("What has become of it.", "PlannerResultResponse"),),
    errors={
        402: "A budget of the workspace or of the user is used up. The error says when it renews.",
        409: "The plan that is meant does not wait, or another turn of the session still runs.",
        422: "The model lacks an ability that the prompt needs.",
        429: "The user or the workspace has reached a limit. The error says which.",
    }
    | _GONE,
)
STREAM_CHAT = Operation(
    name="streamPlannerChat",
    function="stream_turns",
    method="GET",
    path=f"{PLANNER_PATH}/chat/stream",
    capabilities=_CAN_WRITE,
    summary="Run a chat that was started, and follow it",
    description="The first connection runs the chat. One that returns names the last `_seq` that it has seen, and gets "
    "what came after it, also when the chat is over.",
    parameters=(
        RequestParameter("streamId", "The chat.", {"type": "string", "minLength": 1, "maxLength": 200}, required=True),
        make_integer_parameter("afterSeq", "`_seq` of the last frame that the client has.", 0, 2_000_000_000),
    ),
    responses=(SuccessResponse("The frames, as server-sent events.", media_type=EVENT_STREAM),),
    errors={
        402: "A budget of the workspace or of the user is used up. The error says when it renews.",
        403: "Another page has started the chat.",
        409: "The chat runs, and `afterSeq` is missing; or another turn of the session runs.",
        410: "There is no such chat, its time is over, or it is done and `afterSeq` is missing.",
        422: "The model lacks an ability that the prompt needs.",
        429: "The user or the workspace has reached a limit. The error says which.",
    },
)
START_CHAT = Operation(
    name="startPlannerChat",
    function="api",
    method="POST",
    path=f"{PLANNER_PATH}/chat/start",
    capabilities=_CAN_WRITE,
    summary="Start a chat, whose stream runs it within a minute",
    body=PlannerChatBody,
    responses=(SuccessResponse("The chat.", "StartedChatResponse"),),
    errors=_TOO_LARGE | _GONE | {429: "Three chats of the session are pending or running, or a limit is reached."},
)
FORECAST_CHAT = Operation(
    name="forecastPlannerChat",
    function="api",
    method="POST",
    path=f"{PLANNER_PATH}/chat/prefetch",
    capabilities=CAN_CHAT,
    summary="Guess what a chat will do, before it is sent",
    description="By the words of the message alone: no model is asked, nothing is read or stored, and nothing counts.",
    body=ChatForecastBody,
    responses=(SuccessResponse("What is expected.", "ChatForecastResponse"),),
)
CANCEL_CHAT = Operation(
    name="cancelPlannerChat",
    function="api",
    method="POST",
    path=f"{PLANNER_PATH}/chat/cancel",
    capabilities=_CAN_WRITE,
    summary="Cancel a chat",
    body=CancelChatBody,
    responses=(SuccessResponse("What has become of it.", "CancelledChatResponse"),),
    errors={404: "There is no such chat."},
)
_VARIATION_ERRORS = {
    402: "A budget of the workspace or of the user is used up. The error says when it renews.",
    404: "There is no such block in the session, or the credential of the session is gone.",
    409: "The credential's key can no longer be decrypted.",
    422: "The model has written no variation that can be applied.",
    429: "The user or the workspace has reached a limit of prompts. The error says which.",
    502: "The provider refuses the request.",
    503: "The provider failed.",
}
VARY_BLOCK = Operation(
    name="varyBlock",
    function="credentials",
    method="POST",
    path=f"{PLANNER_PATH}/chat/variations",
    capabilities=_CAN_WRITE,
    summary="Let a model write variations of a block",
    description="Three, or as many as the message asks for, up to twelve. The draft is not changed: one is applied by "
    "the operation `update_props` with its patch. The request counts as a prompt, and against budgets.",
    body=VariationsBody,
    responses=(SuccessResponse("The variations.", "VariationsResponse"),),
    errors=_VARIATION_ERRORS,
)
STREAM_VARIATIONS = Operation(
    name="streamVariations",
    function="credentials",
    method="POST",
    path=f"{PLANNER_PATH}/chat/variations/stream",
    capabilities=_CAN_WRITE,
    summary="Let a model write variations of a block, as events",
    description="The event `variations_ready` has the members of `varyBlock`, and `done` follows. Both come together.",
    body=VariationsBody,
    responses=(SuccessResponse("The events.", media_type=EVENT_STREAM),),
    errors=_VARIATION_ERRORS,
)
LIST_PENDING_PLANS = Operation(
    name="listPendingPlans",
    function="api",
    method="GET",
    path=f"{PLANNER_PATH}/plans",
    capabilities=CAN_CHAT,
    summary="List the plans of a session that wait to be applied",
    description="For a page that was reloaded. The plans of the whole workspace are among its approvals.",
    parameters=_SESSION_PARAMETERS,
    responses=(SuccessResponse("The plans.", "PendingPlanListResponse"),),
    errors=_GONE,
)
APPLY_OPERATIONS = Operation(
    name="applyOperations",
    function="api",
    method="POST",
    path=f"{PLANNER_PATH}/ops",
    capabilities=_CAN_WRITE,
    summary="Apply operations to a draft, all or none",
    parameters=_REPEATABLE,
    body=OperationsBody,
    responses=(SuccessResponse("They are applied.", "PlannerResultResponse"),),
    errors={404: "A page, a block or an item does not exist."} | _KEY_USED | _TOO_LARGE | _GONE,
)
SHOW_HISTORY_STATUS = Operation(
    name="showHistoryStatus",
    function="api",
    method="GET",
    path=f"{PLANNER_PATH}/history/status",
    capabilities=CAN_CHAT,
    summary="See how many steps of a page can be undone and redone",
    parameters=(*_SESSION_PARAMETERS, SLUG_PARAMETER),
    responses=(SuccessResponse("The steps.", "HistoryStatusResponse"),),
    errors=_GONE,
)
LIST_HISTORY = Operation(
    name="listHistory",
    function="api",
    method="GET",
    path=f"{PLANNER_PATH}/history/log",
    capabilities=CAN_CHAT,
    summary="List what the newest versions of a draft have changed",
    parameters=(*_SESSION_PARAMETERS, make_integer_parameter("limit", "The greatest number of versions.", 0, 100)),
    responses=(SuccessResponse("The versions, the newest first.", "HistoryLogResponse"),),
    errors=_GONE,
)
UNDO_CHANGE = Operation(
    name="undoChange",
    function="api",
    method="POST",
    path=f"{PLANNER_PATH}/history/undo",
    capabilities=_CAN_WRITE,
    summary="Undo the newest change of a page, or a version on all of its pages",
    parameters=_REPEATABLE,
    body=HistoryStepBody,
    responses=_CHANGED,
    errors={
        404: "The version is not kept any more.",
        409: "A page has changed since the version that is to be undone, also under another slug; "
        "or the Idempotency-Key was used for another request.",
    }
    | _TOO_LARGE
    | _GONE,
)
REDO_CHANGE = Operation(
    name="redoChange",
    function="api",
    method="POST",
    path=f"{PLANNER_PATH}/history/redo",
    capabilities=_CAN_WRITE,
    summary="Redo the change of a page that was undone last",
    parameters=_REPEATABLE,
    body=HistoryStepBody,
    responses=_CHANGED,
    errors={
        409: "The last page cannot be removed, or the page has changed since under another slug; "
        "or the Idempotency-Key was used for another request.",
    }
    | _TOO_LARGE
    | _GONE,
)
RESTORE_VERSION = Operation(
    name="restoreVersion",
    function="api",
    method="POST",
    path=f"{PLANNER_PATH}/history/restore",
    capabilities=_CAN_WRITE,
    summary="Bring back a version of a draft",
    parameters=_REPEATABLE,
    body=RestoreBody,
    responses=_CHANGED,
    errors={404: "The version is not kept any more."} | _KEY_USED | _TOO_LARGE | _GONE,
)
SHOW_DRAFT_PAGE = Operation(
    name="showDraftPage",
    function="api",
    method="GET",
    path=f"{PLANNER_PATH}/draft/pages",
    capabilities=CAN_CHAT,
    summary="See a page of a draft",
    parameters=(*_SESSION_PARAMETERS, SLUG_PARAMETER),
    responses=(SuccessResponse("The page.", "DraftPageResponse"),),
    errors={404: "There is no such page."} | _GONE,
)
LIST_DRAFT_SLUGS = Operation(
    name="listDraftSlugs",
    function="api",
    method="GET",
    path=f"{PLANNER_PATH}/draft/slugs",
    capabilities=CAN_CHAT,
    summary="List the pages of a draft",
    parameters=_SESSION_PARAMETERS,
    responses=(SuccessResponse("The slugs.", "DraftSlugsResponse"),),
    errors=_GONE,
)
BOOTSTRAP_DRAFT = Operation(
    name="bootstrapDraft",
    function="api",
    method="POST",
    path=f"{PLANNER_PATH}/draft/bootstrap",
    capabilities=_CAN_WRITE,
    summary="Begin a draft with the pages of a site",
    body=BootstrapBody,
    responses=(SuccessResponse("The pages of the draft.", "BootstrapResponse"),),
    errors=_TOO_LARGE | _GONE,
)

SHOW_PUBLISH_DIFFERENCE = Operation(
    name="showPublishDifference",
    function="api",
    method="GET",
    path=f"{PLANNER_PATH}/publish/diff",
    capabilities=CAN_CHAT,
    summary="See what publishing a draft would change",
    parameters=_SESSION_PARAMETERS,
    responses=(SuccessResponse("The pages, by their slugs.", "PublishDifferenceResponse"),),
    errors=_GONE,
)
PUBLISH = Operation(
    name="publishDraft",
    function="api",
    method="POST",
    path=f"{PLANNER_PATH}/publish",
    capabilities=_CAN_WRITE,
    summary="Publish the pages of a draft",
    description="The same version of a draft is published once, however often it is asked for.",
    body=PublishBody,
    responses=(SuccessResponse("The edition.", "PublishedResponse"),),
    errors={409: "The draft has no pages."} | _STORES_MUCH | _GONE,
)
SHOW_PUBLISH_LOG = Operation(
    name="showPublishLog",
    function="api",
    method="GET",
    path=f"{PLANNER_PATH}/publish/log",
    capabilities=CAN_CHAT,
    summary="List what was published of a site",
    parameters=(SITE, make_integer_parameter("limit", "The greatest number of editions.", 0, 200)),
    responses=(SuccessResponse("The editions, the newest first.", "PublishLogResponse"),),
)
SHOW_PUBLISH_STATUS = Operation(
    name="showPublishStatus",
    function="api",
    method="GET",
    path=f"{PLANNER_PATH}/publish/status",
    capabilities=CAN_CHAT,
    summary="See which edition of a site is published",
    parameters=(SITE,),
    responses=(SuccessResponse("The edition.", "PublishedResponse"),),
    errors={404: "Nothing of the site was published yet."},
)
LIST_EDITIONS = Operation(
    name="listEditions",
    function="api",
    method="GET",
    path=f"{PLANNER_PATH}/restore/snapshots",
    capabilities=CAN_CHAT,
    summary="List the editions of a site that can be brought back",
    parameters=(SITE, make_integer_parameter("limit", "The greatest number of editions.", 0, 200)),
    responses=(SuccessResponse("The editions, the newest first.", "SnapshotListResponse"),),
)
LIST_SITES = Operation(
    name="listSites",
    function="api",
    method="GET",
    path=f"{PLANNER_PATH}/sites",
    capabilities=CAN_CHAT,
    summary="List the sites of the workspace that are registered",
    responses=(SuccessResponse("The sites.", "SiteListResponse"),),
)
REGISTER_SITE = Operation(
    name="registerSite",
    function="api",
    method="POST",
    path=f"{PLANNER_PATH}/sites/register",
    capabilities=_CAN_WRITE,
    summary="Register a site, or change what is registered of it",
    description="For lists of editors. Sessions and editions need no registered site.",
    body=RegisterSiteBody,
    responses=(SuccessResponse("The site.", "RegisteredSiteResponse"),),
    errors={
        409: "There are too many sites, or another request has registered this one at the same moment.",
        413: "The settings are too large.",
    }
    | _STORES_MUCH,
)
REMOVE_SITE = Operation(
    name="removeSite",
    function="api",
    method="DELETE",
    path=f"{PLANNER_PATH}/sites/{{siteId}}",
    capabilities=_CAN_WRITE,
    summary="Remove a site and what is published of it",
    description="Drafts stay with their sessions.",
    parameters=(RequestParameter("siteId", "The site.", _NAME, required=True, location="path"),),
    responses=(SuccessResponse("It is removed.", "OkResponse"),),
    errors={
        400: "It is no name of a site.",
        404: "There is no such site.",
        409: "Somebody publishes it at the same moment.",
    },
)
LIST_SESSIONS = Operation(
    name="listPlannerSessions",
    function="api",
    method="GET",
    path=f"{PLANNER_PATH}/sessions",
    capabilities=CAN_CHAT,
    summary="List the sessions of the caller",
    description="Without those whose conversation was given another title.",
    parameters=(
        RequestParameter("cursor", "`nextCursor` of the page before.", {"type": "string"}),
        make_integer_parameter("limit", "The greatest number of sessions on the page.", 0, 100),
    ),
    responses=(SuccessResponse("The sessions, those that were used last first.", "PlannerSessionListResponse"),),
)
SHOW_CALLER = Operation(
    name="showPlannerCaller",
    function="api",
    method="GET",
    path=f"{PLANNER_PATH}/whoami",
    capabilities=CAN_CHAT,
    summary="See who asks, and what is in a session",
    parameters=(
        RequestParameter("session", "A session; it is not begun.", _NAME),
        SITE,
    ),
    responses=(SuccessResponse("The caller.", "PlannerCallerResponse"),),
)
SHOW_PUBLISHED_PAGE = Operation(
    name="showPublishedPage",
    function="api",
    method="GET",
    path=f"{PLANNER_PATH}/published/pages",
    capabilities=CAN_CHAT,
    summary="See a page as it is published",
    parameters=(SITE, SLUG_PARAMETER),
    responses=(SuccessResponse("The page.", "DraftPageResponse"),),
    errors={404: "There is no such page."},
)
RESTORE_EDITION = Operation(
    name="restoreEdition",
    function="api",
    method="POST",
    path=f"{PLANNER_PATH}/restore/snapshot",
    capabilities=_CAN_WRITE,
    summary="Bring back what was published into a draft",
    body=RestoreEditionBody,
    responses=(SuccessResponse("The draft has the pages of the edition.", "RestoredResponse"),),
    errors={404: "The edition is not kept any more."} | _TOO_LARGE | _GONE,
)

PLANNER_HANDLERS: tuple[tuple[Operation, str], ...] = (
    (START_CHAT, "start_chat"),
    (FORECAST_CHAT, "forecast"),
    (CANCEL_CHAT, "cancel_chat"),
    (LIST_PENDING_PLANS, "list_pending_plans"),
    (APPLY_OPERATIONS, "post_operations"),
    (SHOW_HISTORY_STATUS, "show_history_status"),
    (LIST_HISTORY, "show_history_log"),
    (UNDO_CHANGE, "undo"),
    (REDO_CHANGE, "redo"),
    (RESTORE_VERSION, "restore"),
    (SHOW_DRAFT_PAGE, "show_draft_page"),
    (LIST_DRAFT_SLUGS, "list_draft_slugs"),
    (BOOTSTRAP_DRAFT, "bootstrap_draft"),
)
PUBLISH_HANDLERS: tuple[tuple[Operation, str], ...] = (
    (SHOW_PUBLISH_DIFFERENCE, "show_publish_difference"),
    (PUBLISH, "publish"),
    (SHOW_PUBLISH_STATUS, "show_publish_status"),
    (SHOW_PUBLISH_LOG, "show_publish_log"),
    (LIST_EDITIONS, "list_editions"),
    (SHOW_PUBLISHED_PAGE, "show_published_page"),
    (RESTORE_EDITION, "restore_edition"),
)
SITE_HANDLERS: tuple[tuple[Operation, str], ...] = (
    (LIST_SITES, "show_sites"),
    (REGISTER_SITE, "post_site"),
    (REMOVE_SITE, "delete_site"),
    (LIST_SESSIONS, "list_sessions"),
    (SHOW_CALLER, "show_caller"),
)
"""Which functions of `planner_api/handlers.py`, `publish_handlers.py` and `site_handlers.py` handle the operations of
`api`."""
