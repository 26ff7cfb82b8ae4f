"""Define operations for OpenAI's clients: chat completions, responses, agents as models (docs/clients.md)."""

from fermata.wire.bodies.openai_requests import ChatCompletionBody, ResponseBody
from fermata.wire.http.messages import EVENT_STREAM
from fermata.wire.operations.common import CAN_CHAT, IDEMPOTENCY_KEY, WHEN_BUSY
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

OPENAI_PATH = "/v1"
_ERROR_MODEL = "OpenAIErrorResponse"
_ERRORS = {
    402: "A budget of the workspace or of the user is used up. The error says when it renews.",
    404: "There is no such agent.",
    409: "The conversation is busy with another request.",
    422: "The model of the agent lacks an ability that the request needs.",
    429: "The user or the workspace has reached a limit, or the provider's. The error says which.",
    503: "The provider does not answer now.",
}
_STREAM = "With `stream`, the answer as server-sent events."

CREATE_CHAT_COMPLETION = Operation(
    name="createChatCompletion",
    function="stream_turns",
    method="POST",
    path=f"{OPENAI_PATH}/chat/completions",
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Ask an agent, as a chat completion",
    description=f"`model` is the id of an agent. Its own tools run unseen; `tools` are those of the client. {_STREAM}",
    parameters=(IDEMPOTENCY_KEY, WHEN_BUSY),
    body=ChatCompletionBody,
    responses=(SuccessResponse("The completion.", "ChatCompletionResponse", stream_media_type=EVENT_STREAM),),
    errors=_ERRORS,
)
CREATE_RESPONSE = Operation(
    name="createResponse",
    function="stream_turns",
    method="POST",
    path=f"{OPENAI_PATH}/responses",
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Ask an agent, as a response",
    description=f"`model` is the id of an agent. `previous_response_id` goes on with its conversation. {_STREAM}",
    parameters=(IDEMPOTENCY_KEY, WHEN_BUSY),
    body=ResponseBody,
    responses=(SuccessResponse("The response.", "OpenAIResponse", stream_media_type=EVENT_STREAM),),
    errors=_ERRORS,
)
_RESPONSE_ID = RequestParameter(
    "responseId", "The id of a response.", {"type": "string", "maxLength": 120}, required=True, location="path"
)
_NO_RESPONSE = {404: "There is no such response, or its turn has expired."}
SHOW_RESPONSE = Operation(
    name="showResponse",
    function="stream_turns",
    method="GET",
    path=f"{OPENAI_PATH}/responses/{{responseId}}",
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Read a response again",
    description="As far as it has come; with `stream=true` all of its events, also those to come.",
    parameters=(
        _RESPONSE_ID,
        RequestParameter("stream", "Whether to send events.", {"type": "string", "enum": ["true", "false"]}),
        RequestParameter(
            "starting_after", "The number of the last event that is known.", {"type": "integer", "minimum": 0}
        ),
    ),
    responses=(SuccessResponse("The response.", "OpenAIResponse", stream_media_type=EVENT_STREAM),),
    errors=_NO_RESPONSE | {429: _ERRORS[429]},
)
DELETE_RESPONSE = Operation(
    name="deleteResponse",
    function="stream_turns",
    method="DELETE",
    path=f"{OPENAI_PATH}/responses/{{responseId}}",
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Delete a response",
    description="It is not found any more. Its words stay part of the conversation, which is deleted by itself.",
    parameters=(_RESPONSE_ID,),
    responses=(SuccessResponse("It is deleted.", "DeletedOpenAIResponse"),),
    errors=_NO_RESPONSE,
)
CANCEL_RESPONSE = Operation(
    name="cancelResponse",
    function="stream_turns",
    method="POST",
    path=f"{OPENAI_PATH}/responses/{{responseId}}/cancel",
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Cancel a response",
    description="Ends its turn. A response that is over stays as it is.",
    parameters=(_RESPONSE_ID,),
    responses=(SuccessResponse("The response as it has ended.", "OpenAIResponse"),),
    errors=_NO_RESPONSE,
)
LIST_INPUT_ITEMS = Operation(
    name="listResponseInputItems",
    function="stream_turns",
    method="GET",
    path=f"{OPENAI_PATH}/responses/{{responseId}}/input_items",
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="List what the request of a response brought",
    description="The user's message, results of the client's tools, or decisions. What was said before is not listed.",
    parameters=(
        _RESPONSE_ID,
        RequestParameter(
            "limit", "How many at most; 20 by default.", {"type": "integer", "minimum": 1, "maximum": 100}
        ),
        RequestParameter("order", "`desc`, the newest first, by default.", {"type": "string", "enum": ["asc", "desc"]}),
        RequestParameter("after", "The id of the item behind which to go on.", {"type": "string", "maxLength": 160}),
    ),
    responses=(SuccessResponse("A page of items.", "OpenAIInputItemListResponse"),),
    errors=_NO_RESPONSE,
)
LIST_AGENT_MODELS = Operation(
    name="listAgentModels",
    function="tool_result",
    method="GET",
    path=f"{OPENAI_PATH}/models",
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="List the agents as models",
    responses=(SuccessResponse("The agents that the caller may ask.", "AgentModelListResponse"),),
)
SHOW_AGENT_MODEL = Operation(
    name="showAgentModel",
    function="tool_result",
    method="GET",
    path=f"{OPENAI_PATH}/models/{{model}}",
    capabilities=CAN_CHAT,
    error_model=_ERROR_MODEL,
    summary="Show an agent as a model",
    parameters=(
        RequestParameter(
            "model", "The id of an agent.", {"type": "string", "maxLength": 100}, required=True, location="path"
        ),
    ),
    responses=(SuccessResponse("The agent.", "AgentModelResponse"),),
    errors={404: "There is no such agent."},
)
