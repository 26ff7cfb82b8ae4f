"""Define operations that an editor needs beside its turns: scopes, tools and uploads."""

from typing import get_args

from fermata.domain.dialect import EditorGeneration
from fermata.wire.bodies.requests import NewUpload
from fermata.wire.operations.common import API_PREFIX, CAN_CHAT, NO_SUCH_TOOL_NAMES, TOOL_NAMES
from fermata.wire.operations.operation import Operation, RequestParameter, SuccessResponse

LIST_SCOPES = Operation(
    name="listScopes",
    function="api",
    method="GET",
    path=f"{API_PREFIX}/scopes",
    capabilities=CAN_CHAT,
    summary="List the scopes",
    description="The parts of the editor that have an assistant.",
    responses=(SuccessResponse("The scopes, in the order in which they are displayed.", "ScopeListResponse"),),
)
LIST_TOOLS = Operation(
    name="listTools",
    function="api",
    method="GET",
    path=f"{API_PREFIX}/tools/{{scope}}",
    capabilities=CAN_CHAT,
    summary="List the tools of a scope",
    description="The tools that a model is offered in this caller's turns: the same names, descriptions and schemas "
    "in the same order, and what executes each one.",
    parameters=(
        TOOL_NAMES,
        RequestParameter(
            "generation",
            "The Instatic release whose tools are listed; the newest for a tenant whose editor has prefixed names.",
            {"type": "string", "enum": list(get_args(EditorGeneration))},
        ),
    ),
    responses=(SuccessResponse("The tools that the caller's capabilities allow.", "ToolListResponse"),),
    errors=NO_SUCH_TOOL_NAMES | {404: "There is no such scope."},
)
TAKE_UPLOAD = Operation(
    name="takeUpload",
    function="api",
    method="POST",
    path=f"{API_PREFIX}/uploads",
    capabilities=CAN_CHAT,
    summary="Upload what is too large for a request",
    description="Announce a snapshot of up to 16 MiB or an image of up to 10 MB; then PUT it to `url` with these "
    "headers within five minutes, without a token. For a day, a body of the same caller may name it: `snapshotRef` "
    "instead of `snapshot`, `uploadRef` instead of an image's `data`.",
    body=NewUpload,
    responses=(SuccessResponse("The URL to put it to, and its reference.", "UploadResponse", 201),),
    errors={
        413: "It is larger than an upload of its kind may be, or than all uploads of a day.",
        429: "The user or the workspace has reached a limit of uploads or stored bytes a day. The error says which.",
    },
)
