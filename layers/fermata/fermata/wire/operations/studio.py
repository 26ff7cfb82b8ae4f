"""Define operations of the studio's own clients, and of the Conversation API (decision 0474)."""

from fermata.wire.bodies.studio_requests import ConversationMessageBody, StudioChatBody
from fermata.wire.http.messages import EVENT_STREAM
from fermata.wire.operations.common import CAN_CHAT, IDEMPOTENCY_KEY, WHEN_BUSY, make_integer_parameter
from fermata.wire.operations.operation import Operation, PublicOperation, RequestParameter, SuccessResponse

STUDIO_PATH = "/api/workspaces"
CONVERSATION_API_PATH = "/api/conversation"
_PROJECT_PATH = f"{STUDIO_PATH}/{{workspaceId}}/projects/{{projectId}}"
_KEY_PATH = f"{CONVERSATION_API_PATH}/v1/{{projectId}}"
_WORKSPACE = RequestParameter(
    "workspaceId", "The caller's workspace.", {"type": "string", "maxLength": 63}, required=True, location="path"
)
_PROJECT = RequestParameter(
    "projectId",
    "The content space: `site`, or `site.environment`.",
    {"type": "string", "maxLength": 130},
    required=True,
    location="path",
)
_CONVERSATION_OF_PATH = RequestParameter(
    "conversationId", "The conversation.", {"type": "string", "maxLength": 200}, required=True, location="path"
)
_CONVERSATION = RequestParameter(
    "conversationId", "The conversation.", {"type": "string", "minLength": 1, "maxLength": 200}, required=True
)
_PAGE = (
    make_integer_parameter("limit", "How many messages a page has.", 0, 100),
    RequestParameter("before", "The `before` of the page that came first.", {"type": "string"}),
)
_STREAM = SuccessResponse("The events of the answer. What each one is says its `type`.", media_type=EVENT_STREAM)
_NO_CONVERSATION = {
    400: "The path or the query is not as described.",
    404: "There is no such workspace or project, or the caller has no such conversation in it.",
}
_MESSAGE_ERRORS = {
    400: "The body or the path is not as described, or no model is chosen.",
    402: "A budget has less left than the request may cost, or the plan of the workspace is locked or has no such "
    "messages. The error says which.",
    404: "There is no such workspace or project.",
    409: "The conversation is busy with another message.",
    410: "The conversation of this Idempotency-Key was deleted.",
    422: "The model cannot do what is asked.",
    429: "The user, the key or the workspace has reached a limit. The error says which.",
}
_KEY_ERRORS = {
    401: "The request has no key of the Conversation API, or one that is unknown, revoked or expired.",
    402: "The plan of the workspace is locked.",
    403: "The key is for another project, or the plan of the workspace has no Conversation API.",
}

CHAT_IN_STUDIO = Operation(
    name="chatInStudio",
    function="stream_turns",
    method="POST",
    path=f"{_PROJECT_PATH}/chat",
    capabilities=CAN_CHAT,
    summary="Ask the studio's agent, and read its answer as events",
    description="Events have no names. They are `conversation` {id}, `text` {content}, `tool_use` {id, name}, "
    "`tool_result` {id, name, result}, `error` {message}, and at the end one `done` {usage, affected}, which says what "
    "has changed. A conversation that is not the caller's, or not of this project, means a new one.",
    parameters=(_WORKSPACE, _PROJECT, IDEMPOTENCY_KEY, WHEN_BUSY),
    body=StudioChatBody,
    responses=(_STREAM,),
    errors=_MESSAGE_ERRORS,
)
FOLLOW_STUDIO_CHAT = Operation(
    name="followStudioChat",
    function="stream_turns",
    method="GET",
    path=f"{_PROJECT_PATH}/chat",
    capabilities=CAN_CHAT,
    summary="Read the events of the answer that is being given, from its beginning",
    parameters=(_WORKSPACE, _PROJECT, _CONVERSATION),
    responses=(_STREAM, SuccessResponse("No answer is being given.", status=204)),
    errors=_NO_CONVERSATION | {429: _MESSAGE_ERRORS[429]},
)
LIST_STUDIO_CONVERSATIONS = Operation(
    name="listStudioConversations",
    function="stream_turns",
    method="GET",
    path=f"{_PROJECT_PATH}/conversations",
    capabilities=CAN_CHAT,
    summary="List the caller's conversations about a project",
    parameters=(
        _WORKSPACE,
        _PROJECT,
        make_integer_parameter("limit", "How many conversations are looked at for a page.", 0, 200),
        RequestParameter("cursor", "The `nextCursor` of the page before.", {"type": "string"}),
    ),
    responses=(SuccessResponse("The latest use first.", "StudioConversationListResponse"),),
    errors={400: _NO_CONVERSATION[400], 404: "There is no such workspace or project."},
)
SHOW_STUDIO_MESSAGES = Operation(
    name="showStudioMessages",
    function="stream_turns",
    method="GET",
    path=f"{_PROJECT_PATH}/conversations/{{conversationId}}/messages",
    capabilities=CAN_CHAT,
    summary="Show what was said in a conversation",
    description="The newest messages, in their order.",
    parameters=(_WORKSPACE, _PROJECT, _CONVERSATION_OF_PATH, *_PAGE),
    responses=(SuccessResponse("The messages.", "StudioHistoryResponse"),),
    errors=_NO_CONVERSATION,
)
SEND_CONVERSATION_MESSAGE = PublicOperation(
    name="sendConversationMessage",
    function="stream_turns",
    method="POST",
    path=f"{_KEY_PATH}/message",
    summary="Ask the studio's agent with a key of the Conversation API",
    description="The answer comes as a whole. What the key may do is checked when a tool is called.",
    parameters=(_PROJECT, IDEMPOTENCY_KEY, WHEN_BUSY),
    body=ConversationMessageBody,
    responses=(
        SuccessResponse("The answer.", "ConversationMessageResponse"),
        SuccessResponse("The answer so far. It goes on when a person has decided.", "ConversationMessageResponse", 202),
    ),
    errors=_KEY_ERRORS
    | _MESSAGE_ERRORS
    | {502: "The turn has failed. The error says why.", 503: "The provider does not answer now."},
)
SHOW_CONVERSATION_HISTORY = PublicOperation(
    name="showConversationHistory",
    function="stream_turns",
    method="GET",
    path=f"{_KEY_PATH}/history",
    summary="Show what was said in a conversation of a key",
    description="The newest messages, in their order.",
    parameters=(_PROJECT, _CONVERSATION, *_PAGE),
    responses=(SuccessResponse("The messages.", "StudioHistoryResponse"),),
    errors=_NO_CONVERSATION | _KEY_ERRORS,
)
