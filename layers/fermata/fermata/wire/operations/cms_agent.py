"""Define operations of the CMS agent's own protocol: prompts, decisions, sessions and their logs (decision 0453)."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.cms_agent_requests import CmsDecisionBody, CmsPromptBody, CmsSessionChange, NewCmsSession
from fermata.wire.http.messages import EVENT_STREAM
from fermata.wire.operations.common import CAN_CHAT, IDEMPOTENCY_KEY, WHEN_BUSY, make_integer_parameter
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

CMS_AGENT_PATH = "/v1/agent"
_ERROR_MODEL = "CmsErrorResponse"
_SESSIONS_PATH = f"{CMS_AGENT_PATH}/sessions"
_SESSION_PATH = f"{_SESSIONS_PATH}/{{sessionId}}"
_SESSION_ID = RequestParameter(
    "sessionId",
    "The session: the id of a conversation with the agent, or the name that its client gave it.",
    {"type": "string", "minLength": 1, "maxLength": 200},
    required=True,
    location="path",
)
_TRACE_ID = RequestParameter(
    "traceId", "The turn.", {"type": "string", "maxLength": 64}, required=True, location="path"
)
_APPROVAL_ID = RequestParameter(
    "approvalId", "The approval.", {"type": "string", "maxLength": 200}, required=True, location="path"
)
_CURSOR = RequestParameter("cursor", "The `nextCursor` of the page before.", {"type": "string"})
_STREAM = SuccessResponse("The events of the answer, each with its name.", media_type=EVENT_STREAM)
_NO_SESSION = {404: "The caller has no such session."}
_PROMPT_ERRORS = {
    400: "The body is not as described, the space has no such name, or no model is chosen.",
    402: "A budget has less left than the request may cost. The error says how much, and when the budget renews.",
    404: "There is no such space.",
    409: "The session is busy with another prompt.",
    410: "The session was deleted.",
    422: "The model cannot do what is asked.",
    429: "The user or the workspace has reached a limit. The error says which.",
}

STREAM_CMS_ANSWER = Operation(
    name="streamCmsAnswer",
    function="stream_turns",
    method="POST",
    path=f"{CMS_AGENT_PATH}/stream",
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Ask the CMS agent, and read its answer as named events",
    description="The stream goes on while a person decides about a call.",
    parameters=(IDEMPOTENCY_KEY, WHEN_BUSY),
    body=CmsPromptBody,
    responses=(_STREAM,),
    errors=_PROMPT_ERRORS,
)
FOLLOW_CMS_ANSWER = Operation(
    name="followCmsAnswer",
    function="stream_turns",
    method="GET",
    path=f"{CMS_AGENT_PATH}/stream/{{traceId}}",
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Read the events of an answer again, and those to come",
    parameters=(_TRACE_ID,),
    responses=(_STREAM,),
    errors={404: "There is no such turn, or it has expired.", 429: _PROMPT_ERRORS[429]},
)
GENERATE_CMS_ANSWER = Operation(
    name="generateCmsAnswer",
    function="stream_turns",
    method="POST",
    path=f"{CMS_AGENT_PATH}/generate",
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Ask the CMS agent, and read its answer as a whole",
    description="It comes early, with `approvals`, where a person has to decide about a call.",
    parameters=(IDEMPOTENCY_KEY, WHEN_BUSY),
    body=CmsPromptBody,
    responses=(SuccessResponse("The answer.", "CmsAnswerResponse"),),
    errors=_PROMPT_ERRORS | {502: "The turn has failed. The error says why.", 503: "The provider does not answer now."},
)
DECIDE_CMS_APPROVAL = Operation(
    name="decideCmsApproval",
    function="tool_result",
    method="POST",
    path=f"{CMS_AGENT_PATH}/approval/{{approvalId}}",
    capabilities=(Capability.APPROVE,),
    error_model=_ERROR_MODEL,
    summary="Decide about a call that waits",
    description="The same decision again changes nothing.",
    parameters=(_APPROVAL_ID,),
    body=CmsDecisionBody,
    responses=(SuccessResponse("What is decided.", "CmsDecisionResponse"),),
    errors={400: "The body is not as described, or there is no such approval, or it is decided or has expired."},
)
LIST_CMS_SESSIONS = Operation(
    name="listCmsSessions",
    function="api",
    method="GET",
    path=_SESSIONS_PATH,
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="List the caller's sessions with the CMS agent",
    parameters=(
        _CURSOR,
        make_integer_parameter("limit", "How many sessions are looked at for a page.", 0, 500),
        RequestParameter(
            "archived", "Whether those that are archived are listed, or the others.", {"enum": ["true", "false"]}
        ),
    ),
    responses=(SuccessResponse("The most recently used session comes first.", "CmsSessionListResponse"),),
)
CREATE_CMS_SESSION = Operation(
    name="createCmsSession",
    function="api",
    method="POST",
    path=_SESSIONS_PATH,
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Begin a session with the CMS agent",
    body=NewCmsSession,
    responses=(SuccessResponse("The session.", "CmsSessionResponse", 201),),
    errors={400: "The body is not as described.", 404: "There is no such space."},
)
SHOW_CMS_SESSION = Operation(
    name="showCmsSession",
    function="api",
    method="GET",
    path=_SESSION_PATH,
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Show a session with its newest messages",
    parameters=(_SESSION_ID, _CURSOR),
    responses=(SuccessResponse("The session.", "CmsSessionWithMessagesResponse"),),
    errors=_NO_SESSION,
)
CHANGE_CMS_SESSION = Operation(
    name="changeCmsSession",
    function="api",
    method="PATCH",
    path=_SESSION_PATH,
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Rename a session, or switch its model or space",
    parameters=(_SESSION_ID,),
    body=CmsSessionChange,
    responses=(SuccessResponse("The session.", "CmsSessionResponse"),),
    errors={400: "The body is not as described.", 404: "The caller has no such session, or there is no such space."},
)
DELETE_CMS_SESSION = Operation(
    name="deleteCmsSession",
    function="api",
    method="DELETE",
    path=_SESSION_PATH,
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Delete a session",
    description="A turn that runs in it ends. The request may be repeated.",
    parameters=(_SESSION_ID,),
    responses=(SuccessResponse("It is deleted.", "CmsDeletedResponse"),),
    errors=_NO_SESSION,
)
SHOW_CMS_MEMORY = Operation(
    name="showCmsMemory",
    function="api",
    method="GET",
    path=f"{_SESSION_PATH}/working-memory",
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Show what a session was about lately",
    parameters=(_SESSION_ID,),
    responses=(SuccessResponse("The newest first, ten at most.", "CmsMemoryResponse"),),
    errors=_NO_SESSION,
)
LIST_CMS_LOGS = Operation(
    name="listCmsLogs",
    function="api",
    method="GET",
    path=f"{_SESSION_PATH}/logs",
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="List the prompts of a session with the tools that answered them",
    parameters=(_SESSION_ID, _CURSOR),
    responses=(SuccessResponse("The oldest of the newest page first.", "CmsLogListResponse"),),
    errors=_NO_SESSION,
)
