"""Define operations of chat clients: the AI SDK's chats with an agent, and runs of AG-UI (docs/clients.md)."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.chat_clients import AguiRunBody, UiChatBody
from fermata.wire.http.messages import EVENT_STREAM
from fermata.wire.operations.common import CAN_CHAT, IDEMPOTENCY_KEY, WHEN_BUSY
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

_AGENT_ID = RequestParameter(
    "agentId",
    "The agent: one of the tenant's, or the scope of a built-in one.",
    {"type": "string", "minLength": 1, "maxLength": 64},
    required=True,
    location="path",
)
_CHAT_ID = RequestParameter(
    "chatId",
    "The chat, as its client names it.",
    {"type": "string", "minLength": 1, "maxLength": 200},
    required=True,
    location="path",
)
_PAGE_PATH = RequestParameter(
    "path",
    "The page, which may have several segments, and then the agent.",
    {"type": "string", "minLength": 1},
    required=True,
    location="path",
)
_CONVERSATION = RequestParameter(
    "conversationId",
    "The chat; by default the `id` of the body.",
    {"type": "string", "minLength": 1, "maxLength": 200},
)
_SDK = RequestParameter(
    "sdk",
    "The version of the npm package `ai` that reads the response; 6 by default. Version 5 knows no approvals.",
    {"type": "integer", "enum": [5, 6, 7]},
)
_UI_STREAM = SuccessResponse("The assistant's message, as a stream of chunks of the AI SDK.", media_type=EVENT_STREAM)
_ERRORS = {
    400: "The body is not as described, or says something about a call that is not so.",
    402: "A budget has less left than the request may cost. The error says how much, and when the budget renews.",
    404: "There is no such agent.",
    409: "A decision or a result came too late, the message to go back to is gone, or the header wants no turn ended.",
    410: "The chat was deleted, or an upload has expired.",
    422: "The model cannot do what is asked, or the agent cannot run here.",
    429: "The user or the workspace has reached a limit. The error says which.",
}
_CHAT_DESCRIPTION = (
    "Reads the messages for what is new: a prompt, results of the client's tools, or decisions about calls. What is "
    "stored counts; the rest of the history is not read. A message that is asked again or edited, as its `trigger` and "
    "`messageId` say, drops what was stored behind it. The response ends where the client has to act."
)

CHAT_ON_PAGE = Operation(
    name="chatOnPage",
    function="stream_turns",
    method="POST",
    path="/api/agent/{path}",
    has_subtree=True,
    capabilities=CAN_CHAT,
    summary="Ask an agent on a page, from a client of the AI SDK",
    description=_CHAT_DESCRIPTION,
    parameters=(_PAGE_PATH, _CONVERSATION, _SDK, IDEMPOTENCY_KEY, WHEN_BUSY),
    body=UiChatBody,
    responses=(_UI_STREAM,),
    errors=_ERRORS,
)
RESUME_ON_PAGE = Operation(
    name="resumeChatOnPage",
    function="stream_turns",
    method="GET",
    path="/api/agent/{path}",
    has_subtree=True,
    capabilities=CAN_CHAT,
    summary="Follow the answer that runs in a chat of a page again",
    description="The path is that of the page and its agent, then the chat, then `stream`.",
    parameters=(_PAGE_PATH, _SDK),
    responses=(_UI_STREAM, SuccessResponse("Nothing runs.", status=204)),
    errors={400: "The path names no agent and chat.", 404: "There is no such agent.", 429: _ERRORS[429]},
)
CHAT_WITH_AGENT = Operation(
    name="chatWithAgent",
    function="stream_turns",
    method="POST",
    path="/api/agents/{agentId}",
    capabilities=CAN_CHAT,
    summary="Ask an agent, from a client of the AI SDK or for its text",
    description=f"{_CHAT_DESCRIPTION} A client that neither accepts `{EVENT_STREAM}` nor sends a `trigger` gets the "
    "text alone. The response begins with the first piece of the answer, so that an early failure has a status "
    "of its own.",
    parameters=(_AGENT_ID, _CONVERSATION, _SDK, IDEMPOTENCY_KEY, WHEN_BUSY),
    body=UiChatBody,
    responses=(_UI_STREAM,),
    errors=_ERRORS | {502: "The provider has failed before it has said anything."},
)
RESUME_CHAT = Operation(
    name="resumeChat",
    function="stream_turns",
    method="GET",
    path="/api/agents/{agentId}/{chatId}/stream",
    capabilities=CAN_CHAT,
    summary="Follow the answer that runs in a chat again",
    description="All of the assistant's message, from its start.",
    parameters=(_AGENT_ID, _CHAT_ID, _SDK),
    responses=(_UI_STREAM, SuccessResponse("Nothing runs.", status=204)),
    errors={400: "The chat is of another agent.", 404: "There is no such agent.", 429: _ERRORS[429]},
)
STOP_CHAT = Operation(
    name="stopChat",
    function="stream_turns",
    method="POST",
    path="/api/agents/{agentId}/{chatId}/stop",
    capabilities=CAN_CHAT,
    summary="End the answer that runs in a chat",
    parameters=(_AGENT_ID, _CHAT_ID),
    responses=(SuccessResponse("How it ended, or `idle` if none was running.", "StoppedChatResponse"),),
    errors={400: "The chat is of another agent.", 404: "There is no such agent."},
)
RUN_AGUI = Operation(
    name="runAgui",
    function="stream_turns",
    method="POST",
    path="/agui/{agentId}",
    capabilities=(Capability.CHAT,),
    summary="Run an agent, from a client of AG-UI",
    description="The thread is a conversation; its messages are read for what is new. A run ends with the calls that "
    "the front end runs, or with interrupts for approvals, and the next run of the thread goes on.",
    parameters=(_AGENT_ID, IDEMPOTENCY_KEY, WHEN_BUSY),
    body=AguiRunBody,
    responses=(SuccessResponse("The events of the run.", media_type=EVENT_STREAM),),
    errors=_ERRORS,
)
