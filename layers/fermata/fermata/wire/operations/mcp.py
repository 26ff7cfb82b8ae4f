"""Define operations for assistants that speak MCP: the endpoint, its connectors, and the bridge to the open editor."""

from fermata.wire.bodies.requests import NewConnector
from fermata.wire.http.messages import EVENT_STREAM
from fermata.wire.operations.common import API_PREFIX, CAN_MANAGE_PROVIDERS
from fermata.wire.operations.operation import Operation, PublicOperation, RequestParameter, SuccessResponse
from fermata.wire.renderers.ndjson import NDJSON_CONTENT_TYPE

MCP_PATH = "/mcp"
RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource"
_CONNECTORS_PATH = f"{API_PREFIX}/mcp/connectors"
_WORKSPACE = RequestParameter(
    "tenant", "The name of the workspace.", {"type": "string", "maxLength": 63}, required=True, location="path"
)
SPACE_PARAMETER = "space"
MAX_SPACE_CHARS = 129
_SPACE = RequestParameter(
    SPACE_PARAMETER,
    "The content space that agents work in, as `site/environment`, unless the connector names one.",
    {"type": "string", "maxLength": MAX_SPACE_CHARS},
)
_MCP_DESCRIPTION = (
    "Streamable HTTP without sessions: one JSON-RPC message a request. A request is answered as JSON, a call of a tool "
    "as server-sent events, a notification with 202. The bearer is the token of a connector, an API key, or a token of "
    "the workspace's issuer."
)
_MCP_RESPONSES = (
    SuccessResponse("The answer.", "McpResponse", stream_media_type=EVENT_STREAM),
    SuccessResponse("The notification was taken.", status=202),
)
_MCP_ERRORS = {
    400: "The body is no message of JSON-RPC, or the version of the protocol is not known here.",
    401: "There is no valid token. The header WWW-Authenticate says where one is had.",
    403: "The page that asks is of an origin that the workspace does not list.",
    429: "The user or the workspace has reached a limit. The error says which.",
}

EDITOR_BRIDGE = PublicOperation(
    name="editorBridge",
    function="stream_turns",
    method="GET",
    path=f"{API_PREFIX}/editor-bridge",
    summary="Carry out calls of assistants in the open editor",
    description="Instatic's editor requests it unasked. The stream sends `bridgeReady`, then a `toolRequest` for each "
    "call of the user's assistants, which the editor answers as those of turns. A browser keeps a refusal for some "
    "minutes: with other statuses the editor asks again within seconds.",
    parameters=(RequestParameter("scope", "The part of the editor.", {"type": "string", "enum": ["site", "content"]}),),
    responses=(SuccessResponse("Requests, as they come.", "EditorBridgeLine", media_type=NDJSON_CONTENT_TYPE),),
    errors={
        400: "There is no such scope.",
        403: "The workspace has no connector, the user has no right to it, or has too many editors open.",
    },
)
LIST_CONNECTORS = Operation(
    name="listConnectors",
    function="credentials",
    method="GET",
    path=_CONNECTORS_PATH,
    capabilities=CAN_MANAGE_PROVIDERS,
    summary="List one's MCP connectors",
    description="Without their tokens, also those that were revoked within a month.",
    responses=(SuccessResponse("The newest first.", "McpConnectorListResponse"),),
)
CREATE_CONNECTOR = Operation(
    name="createConnector",
    function="credentials",
    method="POST",
    path=_CONNECTORS_PATH,
    capabilities=CAN_MANAGE_PROVIDERS,
    summary="Create an MCP connector",
    description="A token with which an assistant calls the MCP endpoint for the user. It may do no more than the user.",
    body=NewConnector,
    responses=(SuccessResponse("The connector, with its token.", "NewMcpConnectorResponse", 201),),
    errors={404: "There is no such content space."},
)
REVOKE_CONNECTOR = Operation(
    name="revokeConnector",
    function="credentials",
    method="DELETE",
    path=f"{_CONNECTORS_PATH}/{{id}}",
    capabilities=CAN_MANAGE_PROVIDERS,
    summary="Revoke an MCP connector",
    description="It is refused everywhere within a minute.",
    responses=(SuccessResponse("Done.", "McpConnectorRevokedResponse"),),
    errors={404: "The user has no such connector."},
)
ASK_MCP = PublicOperation(
    name="askMcp",
    function="stream_turns",
    method="POST",
    path=MCP_PATH,
    parameters=(_SPACE,),
    summary="Serve an MCP client",
    description=_MCP_DESCRIPTION,
    responses=_MCP_RESPONSES,
    errors=_MCP_ERRORS,
    error_model="McpErrorResponse",
)
ASK_MCP_OF_WORKSPACE = PublicOperation(
    name="askMcpOfWorkspace",
    function="stream_turns",
    method="POST",
    path=f"{MCP_PATH}/{{tenant}}",
    parameters=(_WORKSPACE, _SPACE),
    summary="Serve an MCP client that is told where the workspace issues tokens",
    description=_MCP_DESCRIPTION,
    responses=_MCP_RESPONSES,
    errors=_MCP_ERRORS,
    error_model="McpErrorResponse",
)
ASK_INSTATIC_MCP = PublicOperation(
    name="askInstaticMcp",
    function="stream_turns",
    method="POST",
    path="/_instatic/mcp",
    parameters=(_SPACE,),
    summary="Serve an MCP client that was set up for Instatic",
    description=_MCP_DESCRIPTION,
    responses=_MCP_RESPONSES,
    errors=_MCP_ERRORS,
    error_model="McpErrorResponse",
)
SHOW_RESOURCE_METADATA = PublicOperation(
    name="showResourceMetadata",
    function="stream_turns",
    method="GET",
    path=f"{RESOURCE_METADATA_PATH}{MCP_PATH}/{{tenant}}",
    parameters=(_WORKSPACE,),
    summary="Say who issues the tokens of a workspace (RFC 9728)",
    responses=(SuccessResponse("The metadata.", "ResourceMetadataResponse"),),
    errors={404: "The workspace has no issuer that serves clients by OAuth."},
)
