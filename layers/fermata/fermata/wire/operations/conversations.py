"""Define operations on conversations and their messages."""

from fermata.domain.agent_ids import build_scope_schema
from fermata.wire.bodies.requests import ConversationChange, NewConversation
from fermata.wire.operations.common import API_PREFIX, CAN_CHAT, OK_RESPONSES, TOOL_NAMES, make_integer_parameter
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

_CONVERSATIONS_PATH = f"{API_PREFIX}/conversations"
_CONVERSATION_PATH = f"{_CONVERSATIONS_PATH}/{{id}}"
_NO_CONVERSATION = {404: "The caller has no such conversation."}
_BAD_CREDENTIAL = {400: "The body is not as described, or its credential does not exist."}
_CONVERSATION_RESPONSE = SuccessResponse("The conversation.", "ConversationResponse")

LIST_CONVERSATIONS = Operation(
    name="listConversations",
    function="api",
    method="GET",
    path=_CONVERSATIONS_PATH,
    capabilities=CAN_CHAT,
    summary="List the caller's conversations of a scope",
    parameters=(
        RequestParameter("scope", "The scope of the conversations.", build_scope_schema(), required=True),
        RequestParameter("cursor", "The `nextCursor` of the page before.", {"type": "string"}),
        make_integer_parameter("limit", "How many conversations a page has.", 0, 500),
    ),
    responses=(SuccessResponse("The most recently used conversation comes first.", "ConversationListResponse"),),
)
CREATE_CONVERSATION = Operation(
    name="createConversation",
    function="api",
    method="POST",
    path=_CONVERSATIONS_PATH,
    capabilities=CAN_CHAT,
    summary="Begin a conversation",
    body=NewConversation,
    responses=(SuccessResponse("The new conversation.", "ConversationResponse", 201),),
    errors=_BAD_CREDENTIAL | {404: "There is no such content space, or the user has no right there."},
)
SHOW_CONVERSATION = Operation(
    name="showConversation",
    function="api",
    method="GET",
    path=_CONVERSATION_PATH,
    capabilities=CAN_CHAT,
    summary="Open a conversation",
    parameters=(
        TOOL_NAMES,
        make_integer_parameter(
            "before", "Only messages before this position: the `nextCursor` of the page before.", 0, 1_000_000_000
        ),
        make_integer_parameter("limit", "How many messages a page has.", 0, 1000),
    ),
    responses=(SuccessResponse("The conversation with its newest messages.", "ConversationWithMessagesResponse"),),
    errors=_NO_CONVERSATION,
)
CHANGE_CONVERSATION = Operation(
    name="changeConversation",
    function="api",
    method="PUT",
    path=_CONVERSATION_PATH,
    capabilities=CAN_CHAT,
    summary="Rename a conversation, or switch its model",
    description="Members that are left out keep their value. A running turn continues with the model it was started "
    "with.",
    body=ConversationChange,
    responses=(_CONVERSATION_RESPONSE,),
    errors=_BAD_CREDENTIAL | _NO_CONVERSATION,
)
DELETE_CONVERSATION = Operation(
    name="deleteConversation",
    function="api",
    method="DELETE",
    path=_CONVERSATION_PATH,
    capabilities=CAN_CHAT,
    summary="Delete a conversation",
    description="A turn that runs in it ends. The request may be repeated.",
    responses=OK_RESPONSES,
    errors=_NO_CONVERSATION,
)
SHOW_IMAGE = Operation(
    name="showImage",
    function="stream_turns",
    method="GET",
    path=f"{_CONVERSATION_PATH}/messages/{{messageId}}/images/{{index}}",
    capabilities=CAN_CHAT,
    summary="Fetch an image of a message",
    responses=(SuccessResponse("The image as it was sent.", media_type="image/*"),),
    errors={404: "There is no such image in a conversation of the caller's."},
)
