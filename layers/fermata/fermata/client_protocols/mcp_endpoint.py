"""Serve MCP clients: streamable HTTP without sessions, so that any instance answers any request (decision 0378)."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import fermata
from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.aws.security_events import log_refusal
from fermata.client_protocols.log_response import handler_pool
from fermata.client_protocols.mcp_calls import McpCall, UnknownTool, open_mcp_call
from fermata.client_protocols.mcp_tools import list_mcp_tool_views
from fermata.content.content_space import DEFAULT_ENVIRONMENT
from fermata.domain.caller import Caller
from fermata.domain.errors import ApiError, InvalidRequest, NotFound, OriginRefused, Unauthorized
from fermata.wire.auth.authentication import authenticate
from fermata.wire.auth.mcp_connector import looks_like_connector_token
from fermata.wire.auth.mcp_connector_store import authenticate_connector
from fermata.wire.auth.tenant import normalize_origin
from fermata.wire.auth.tenant_store import find_tenant, get_tenant
from fermata.wire.http.json_body import parse_json_body
from fermata.wire.http.messages import EVENT_STREAM, EVENT_STREAM_HEARTBEAT, HttpRequest, Response
from fermata.wire.http.routing import RequestContext
from fermata.wire.operations.mcp import MCP_PATH, RESOURCE_METADATA_PATH, SPACE_PARAMETER

PROTOCOL_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The versions that are spoken here, the newest first. They do not differ in what is used of them."""
VERSION_HEADER = "mcp-protocol-version"
INSTRUCTIONS = (
    "Tools that begin with site_ or content_ act on the document that the user has open in the editor. Read before you "
    "write. Tools that begin with ask_ hand a whole task to an assistant of the workspace, which answers in words."
)
PARSE_ERROR, INVALID_MESSAGE, METHOD_NOT_FOUND, INVALID_PARAMETERS = -32700, -32600, -32601, -32602
UNSUPPORTED_VERSION = -32022
STREAM_HEADERS = {"Content-Type": EVENT_STREAM, "Cache-Control": "private, no-store", "X-Accel-Buffering": "no"}


class RpcError(Exception):
    """An answer of the protocol that is no result."""

    def __init__(self, code: int, message: str, *, data: Any = None, status: int = 200) -> None:
        super().__init__(message)
        self.code, self.message, self.data, self.status = code, message, data, status


def ask_mcp(resources: Resources, request: HttpRequest) -> Response:
    """Answer one message of a client."""
    workspace = request.path_parameters.get("tenant", "")
    try:
        caller, connector_space = _authenticate(resources, request, workspace)
    except Unauthorized as refusal:
        log_refusal(refusal)
        return _challenge(resources, request, workspace, refusal)
    observability.add_log_keys(tenant=caller.tenant, user=caller.user)
    context = RequestContext(resources, request, caller, get_tenant(resources, caller.tenant))
    if request.origin and normalize_origin(request.origin) not in context.tenant.origins:
        raise OriginRefused("Forbidden: invalid origin")
    message_id: Any = None
    try:
        message = _parse_message(request)
        if "method" not in message or "id" not in message:
            return Response(202)  # a notification, or an answer to nothing that was asked
        message_id = message["id"]
        return _answer_request(context, message, _choose_space(request, connector_space))
    except RpcError as error:
        return Response(error.status, _build_error(message_id, error))


def show_resource_metadata(resources: Resources, request: HttpRequest) -> Response:
    """Say who issues the tokens of a workspace (RFC 9728)."""
    tenant = find_tenant(resources, request.path_parameters["tenant"])
    if tenant is None or not tenant.jwks_url or not tenant.issuer.startswith("https://"):
        raise NotFound("This workspace has no issuer that serves clients by OAuth. Create a connector instead.")
    body = {
        "resource": f"{_get_public_url(resources, request)}{MCP_PATH}/{tenant.name}",
        "authorization_servers": [tenant.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": f"Fermata, workspace {tenant.name}",
    }
    return Response(200, body, {"Cache-Control": "public, max-age=300", "Access-Control-Allow-Origin": "*"})


def _authenticate(resources: Resources, request: HttpRequest, workspace: str) -> tuple[Caller, str]:
    """Authenticate the client, and return it with the content space that its connector names.

    A cookie counts for nothing here: no page calls this endpoint for its user.
    """
    space = ""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthorized("Unauthorized", reason="missing")
    if looks_like_connector_token(token.strip()):
        connector = authenticate_connector(resources, token.strip())
        caller, space = connector.to_caller(), connector.space
        if find_tenant(resources, caller.tenant) is None:  # erased, and the connector was still cached
            raise Unauthorized("Unauthorized", reason="api_key")
    else:
        caller = authenticate(resources, {"authorization": request.headers["authorization"]}, request.method)
    if workspace and workspace != caller.tenant:
        raise Unauthorized("Unauthorized: the token is for another workspace.", reason="other_tenant")
    return caller, space


def _choose_space(request: HttpRequest, connector_space: str) -> str:
    """Return the content space that agents work in: that of the connector, or else that of the address.

    No tool has it as an argument: what a page says must not make a model work on another site (decision 0493).
    """
    named = request.query.get(SPACE_PARAMETER, "")
    if named and "/" not in named:
        named = f"{named}/{DEFAULT_ENVIRONMENT}"
    if named and connector_space and named != connector_space:
        raise RpcError(INVALID_PARAMETERS, f"This connector is for the content space {connector_space} only.")
    return connector_space or named


def _challenge(resources: Resources, request: HttpRequest, workspace: str, refusal: Unauthorized) -> Response:
    """Refuse a client, and say where it gets a token, if the workspace of the path has an issuer."""
    value = "Bearer"
    tenant = find_tenant(resources, workspace) if workspace else None
    if tenant is not None and tenant.jwks_url:
        url = f"{_get_public_url(resources, request)}{RESOURCE_METADATA_PATH}{MCP_PATH}/{workspace}"
        value = f'Bearer resource_metadata="{url}"'
    return Response(401, {"error": refusal.message}, {"WWW-Authenticate": value})


def _get_public_url(resources: Resources, request: HttpRequest) -> str:
    configured = resources.settings.public_url.rstrip("/")
    return configured or f"https://{request.headers.get('host', 'localhost')}"


def _parse_message(request: HttpRequest) -> Mapping[str, Any]:
    version = request.headers.get(VERSION_HEADER, PROTOCOL_VERSIONS[0])
    if request.body.lstrip().startswith(b"["):
        raise RpcError(INVALID_MESSAGE, "The body has to be one message, and no list.", status=400)
    try:
        message = parse_json_body(request.body)
    except InvalidRequest as refusal:
        raise RpcError(PARSE_ERROR, refusal.message, status=400) from None
    if message.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_MESSAGE, "The body has to be one message of JSON-RPC 2.0.", status=400)
    if not isinstance(message.get("method", ""), str) or not _is_usable_id(message.get("id", "")):
        text = "A message has a text as its method and, if it is answered, a text or a number as its id."
        raise RpcError(INVALID_MESSAGE, text, status=400)
    if version not in PROTOCOL_VERSIONS and message.get("method") != "initialize":
        data = {"supported": list(PROTOCOL_VERSIONS), "requested": version[:40]}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data=data, status=400)
    return message


def _is_usable_id(message_id: Any) -> bool:
    return isinstance(message_id, str | int | float) and not isinstance(message_id, bool)


def _answer_request(context: RequestContext, message: Mapping[str, Any], space: str) -> Response:
    parameters = message.get("params") or {}
    if not isinstance(parameters, dict):
        raise RpcError(INVALID_PARAMETERS, "params has to be an object.")
    match message["method"]:
        case "initialize":
            result = _initialize(parameters)
        case "ping":
            result = {}
        case "tools/list":
            result = {"tools": list_mcp_tool_views(context.resources, context.caller, space)}
        case "tools/call":
            return _call_tool(context, message["id"], parameters, space)
        case other:
            raise RpcError(METHOD_NOT_FOUND, f"There is no method {str(other)[:60]!r} here.")
    return Response(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})


def _initialize(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Agree on the version that the client asks for, or on the newest one that is spoken here."""
    asked = parameters.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in PROTOCOL_VERSIONS else PROTOCOL_VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "fermata", "title": "Fermata", "version": fermata.__version__},
        "instructions": INSTRUCTIONS,
    }


def _call_tool(context: RequestContext, message_id: Any, parameters: Mapping[str, Any], space: str) -> Response:
    """Answer a call by a stream, because it may take longer than a response without one may."""
    name, arguments = parameters.get("name"), parameters.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMETERS, "A call has a name and arguments.")
    try:
        call = open_mcp_call(context, name, arguments, space)
    except UnknownTool as error:
        raise RpcError(INVALID_PARAMETERS, f"Unknown tool: {str(error)[:100]}") from None
    except ApiError as refusal:
        log_refusal(refusal)
        failed = {"content": [{"type": "text", "text": refusal.message}], "isError": True}
        return Response(200, {"jsonrpc": "2.0", "id": message_id, "result": failed})
    answers: list[dict[str, Any]] = []
    stream = _stream_call(context.resources, call, message_id, answers)
    if EVENT_STREAM in context.request.headers.get("accept", EVENT_STREAM):
        return Response(200, stream=stream, headers=STREAM_HEADERS, on_close=call.close)
    return Response(200, stream=stream, on_close=call.close, build_whole=lambda: Response(200, answers[0]))


async def _stream_call(
    resources: Resources, call: McpCall, message_id: Any, answers: list[dict[str, Any]]
) -> AsyncIterator[bytes]:
    """Send comments until the answer is there, then the answer, which is added to `answers` as well."""
    settings, monotonic = resources.settings, resources.clock.monotonic
    sent_at = monotonic()
    loop = asyncio.get_running_loop()
    interval = settings.poll_ms / 1000
    while (result := await loop.run_in_executor(handler_pool, partial(call.advance))) is None:
        if monotonic() - sent_at >= settings.reader_heartbeat_seconds:
            sent_at = monotonic()
            yield EVENT_STREAM_HEARTBEAT
        await asyncio.sleep(interval)
        interval = min(interval * 1.25, settings.idle_poll_ms / 1000)
    body = {"jsonrpc": "2.0", "id": message_id, "result": result}
    answers.append(body)
    yield b"event: message\ndata: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def _build_error(message_id: Any, error: RpcError) -> dict[str, Any]:
    described = {"code": error.code, "message": error.message} | ({"data": error.data} if error.data else {})
    return {"jsonrpc": "2.0", "id": message_id, "error": described}
