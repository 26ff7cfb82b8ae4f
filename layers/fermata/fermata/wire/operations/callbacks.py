"""Define operations by which servers answer without a session: remote tools, and servers that have a callback token."""

from fermata.domain.caller import Capability
from fermata.wire.bodies.callback_requests import NewCallbackToken, RemoteResultBody
from fermata.wire.bodies.turn_requests import ToolResultBody
from fermata.wire.operations.common import API_PREFIX, OK_RESPONSES
from fermata.wire.operations.operation import Operation, PublicOperation, RequestParameter, SuccessResponse

CALLBACK_TOKEN_HEADER = "Fermata-Callback-Token"  # noqa: S105 (a name, not a token)
_ANSWER_ERRORS = {
    401: "The signature or the token is missing, wrong or too old, or it is not for this request.",
    404: "No request waits for this answer, and none was accepted for it before.",
    409: "Another answer was accepted for the request before, whether or not its turn still runs.",
}

ISSUE_CALLBACK_TOKEN = Operation(
    name="issueCallbackToken",
    function="tool_result",
    method="POST",
    path=f"{API_PREFIX}/bridges/{{bridgeId}}/callback-tokens",
    capabilities=(Capability.CHAT,),
    summary="Let a server post results of a turn",
    description="The token is shown once. It is good for this turn, for the requests that are named, until it expires.",
    parameters=(RequestParameter("bridgeId", "The turn.", {"type": "string"}, required=True, location="path"),),
    body=NewCallbackToken,
    requires_body=False,
    responses=(SuccessResponse("The token.", "CallbackTokenResponse", 201),),
    errors={404: "The caller has no such turn.", 409: "The turn has ended."},
)
POST_CALLBACK_RESULT = PublicOperation(
    name="postCallbackResult",
    function="tool_result",
    method="POST",
    path=f"{API_PREFIX}/callback-results",
    summary="Answer a tool request with a callback token",
    description="The body is that of `POST tool-result`. The same answer may be sent again.",
    parameters=(
        RequestParameter(
            CALLBACK_TOKEN_HEADER,
            "From `POST bridges/{bridgeId}/callback-tokens`.",
            {"type": "string"},
            location="header",
        ),
    ),
    body=ToolResultBody,
    responses=OK_RESPONSES,
    errors=_ANSWER_ERRORS | {403: "A tool that writes needs a token of a user who may write."},
)
POST_REMOTE_RESULT = PublicOperation(
    name="postRemoteResult",
    function="tool_result",
    method="POST",
    path=f"{API_PREFIX}/tool-callbacks",
    summary="Send the result of a remote tool that has answered 202",
    description="The request is signed as Standard Webhooks says, with the tool's signing secret. `tenant`, `bridgeId` "
    "and `requestId` are those of `callback` in the call. The same result may be sent again.",
    body=RemoteResultBody,
    responses=OK_RESPONSES,
    errors=_ANSWER_ERRORS
    | {422: "The data break the tool's output schema. The call is answered with that failure (`invalid_tool_output`)."},
)
