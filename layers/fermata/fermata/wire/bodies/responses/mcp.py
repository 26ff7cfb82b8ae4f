"""Define the response bodies of operations for assistants that speak MCP."""

from typing import Any, Literal

from fermata.wire.bodies.responses.common import InstantField, ResponseModel


class McpConnectorView(ResponseModel):
    """A connector without its token."""

    id: str
    label: str
    type: Literal["local", "remote"]
    auth_mode: Literal["bearer"]
    capabilities: list[str]
    created_at: InstantField
    last_used_at: InstantField | None
    revoked: bool
    expires_at: InstantField | None
    space: str | None = None


class McpConnectorListResponse(ResponseModel):
    connectors: list[McpConnectorView]


class NewMcpConnectorResponse(ResponseModel):
    """A connector with its token, which is never shown again."""

    connector: McpConnectorView
    token: str


class McpConnectorRevokedResponse(ResponseModel):
    revoked: Literal[True]


class McpError(ResponseModel):
    """What is wrong with a message of JSON-RPC."""

    code: int
    message: str
    data: Any = None


class McpErrorResponse(ResponseModel):
    """An error of JSON-RPC for a message that cannot be read; else a sentence, as for all other operations."""

    error: McpError | str
    jsonrpc: Literal["2.0"] | None = None
    id: str | int | None = None


class McpResponse(ResponseModel):
    """A response of JSON-RPC: `result`, or `error`."""

    jsonrpc: Literal["2.0"]
    id: str | int | None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


class EditorBridgeLine(ResponseModel):
    """A line of the editor's bridge: `bridgeReady` with `bridgeId`, or `toolRequest` with the other members."""

    type: Literal["bridgeReady", "toolRequest"]
    bridge_id: str | None = None
    request_id: str | None = None
    tool_name: str | None = None
    input: Any = None


class ResourceMetadataResponse(ResponseModel):
    """The metadata of RFC 9728. Its members have the names of that document."""

    resource: str
    authorization_servers: list[str]
    bearer_methods_supported: list[str]
    resource_name: str
