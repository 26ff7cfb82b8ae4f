"""Define operations on prompts that wait for a conversation."""

from fermata.wire.bodies.requests import QueuedPromptChange
from fermata.wire.operations.common import API_PREFIX, CAN_CHAT
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

_QUEUE_PATH = f"{API_PREFIX}/conversations/{{id}}/queue"
_PROMPT_PATH = f"{_QUEUE_PATH}/{{promptId}}"
_PROMPT_ID = RequestParameter(
    "promptId",
    "The prompt, as the queue names it.",
    {"type": "string", "minLength": 1, "maxLength": 60},
    required=True,
    location="path",
)
_PROMPT_RESPONSE = SuccessResponse("The prompt as it is now.", "QueuedPromptResponse")
_ERRORS = {
    404: "There is no such conversation of the caller's, or no such prompt.",
    409: "The prompt waits no more, or was changed meanwhile.",
}

LIST_QUEUE = Operation(
    name="listQueuedPrompts",
    function="tool_result",
    method="GET",
    path=_QUEUE_PATH,
    capabilities=CAN_CHAT,
    summary="List the prompts that wait for a conversation",
    description="The oldest first, also those of the last days that were started, dropped or refused. `bridgeId` is "
    "the turn that one has started.",
    responses=(SuccessResponse("The queue.", "QueuedPromptListResponse"),),
    errors={404: "There is no such conversation of the caller's."},
)
EDIT_QUEUED_PROMPT = Operation(
    name="editQueuedPrompt",
    function="tool_result",
    method="PUT",
    path=_PROMPT_PATH,
    capabilities=CAN_CHAT,
    summary="Edit a prompt that waits",
    description="Replaces its text; its images stay. With `version` it is refused if the prompt has another one.",
    parameters=(_PROMPT_ID,),
    body=QueuedPromptChange,
    responses=(_PROMPT_RESPONSE,),
    errors=_ERRORS | {429: "The user or the workspace has reached a limit of stored bytes a day."},
)
DROP_QUEUED_PROMPT = Operation(
    name="dropQueuedPrompt",
    function="tool_result",
    method="DELETE",
    path=_PROMPT_PATH,
    capabilities=CAN_CHAT,
    summary="Drop a prompt that waits",
    parameters=(_PROMPT_ID,),
    responses=(_PROMPT_RESPONSE,),
    errors=_ERRORS,
)
