"""Open a session with an MCP server by the `mcp` package, which knows the transports and versions of the protocol.

Importing this module takes as long as most of a function's other imports, so only what asks a server imports it
(decision 0374).
"""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import httpx2
import mcp_types
from mcp.client.session import ClientSession
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

import fermata
from fermata.agents.tool_sources.mcp_tools import McpAgreement
from fermata.domain.errors import ApiError
from fermata.mcp_sources.guarded_http_client import open_guarded_http_client
from fermata.mcp_sources.mcp_server import McpServer
from fermata.remote_tools.signed_tool_attempt import is_refused_status

SESSION_HEADER = "mcp-session-id"
MAX_EVENT_BYTES = 4 * 1024 * 1024
MAX_FAILURE_CHARS = 300
for _name in ("mcp", "httpx2", "httpcore2"):
    # These packages log what servers say, which is content of tenants.
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


class McpFailure(Exception):
    """The server could not be asked, or refused. The message is for users and models, and holds no secret.

    Attributes:
        was_refused: Whether the server has certainly not begun with a call.
    """

    def __init__(self, message: str, *, was_refused: bool = False) -> None:
        super().__init__(message)
        self.was_refused = was_refused


@dataclass
class KeptSession:
    """What a turn keeps of a session, so that its later requests go on with it."""

    id: str = ""
    agreement: McpAgreement | None = None
    is_lost: bool = False
    """Whether the server knows the session no longer."""
    failed_status: int = 0
    """The status of HTTP with which the server has answered the last request of the protocol, if that is an error."""


@asynccontextmanager
async def open_mcp_session(server: McpServer, kept: KeptSession, seconds: float) -> AsyncIterator[ClientSession]:
    """Open a session, or go on with a kept one. What is agreed on is written to `kept`.

    Args:
        server: The server.
        kept: What was agreed on before; empty for a new session.
        seconds: How long a response may take.

    Raises:
        McpFailure: The server cannot be reached, or speaks no version that is known here.
    """
    async with AsyncExitStack() as stack:
        streams = await stack.enter_async_context(_open_transport(server, kept, seconds))
        info = mcp_types.Implementation(name="fermata", version=fermata.__version__)
        session = await stack.enter_async_context(
            ClientSession(streams[0], streams[1], read_timeout_seconds=seconds, client_info=info)
        )
        await _agree(session, kept)
        yield session


def _open_transport(server: McpServer, kept: KeptSession, seconds: float) -> AbstractAsyncContextManager[Any]:
    match server.transport:
        case "stdio":
            return _open_program(server)
        case "sse":
            return sse_client(
                server.url,
                timeout=seconds,
                sse_read_timeout=seconds,
                httpx_client_factory=lambda headers=None, timeout=None, auth=None: open_guarded_http_client(
                    server.headers, seconds=seconds, is_local=server.is_local
                ),
            )
    return _open_streamable_http(server, kept, seconds)


@asynccontextmanager
async def _open_streamable_http(server: McpServer, kept: KeptSession, seconds: float) -> AsyncIterator[Any]:
    """Open the transport. The session is not ended with it, because the turn's later requests need it."""

    async def note_session(response: httpx2.Response) -> None:
        if response.status_code == 404 and kept.id:
            kept.is_lost = True
        if response.status_code >= 400 and is_protocol_request(response.request):
            kept.failed_status = response.status_code
        elif response.status_code < 400 and response.request.method == "POST":
            kept.failed_status = 0
        kept.id = response.headers.get(SESSION_HEADER) or kept.id

    headers = {**server.headers, **({SESSION_HEADER: kept.id} if kept.id else {})}
    async with (
        open_guarded_http_client(
            headers, seconds=seconds, is_local=server.is_local, on_response=note_session
        ) as http_client,
        streamable_http_client(
            server.url, http_client=http_client, terminate_on_close=False, max_sse_event_size=MAX_EVENT_BYTES
        ) as streams,
    ):
        yield streams


def is_protocol_request(request: httpx2.Request) -> bool:
    """Return whether it asks for something. A notification does not, nor an answer to what the server has asked."""
    if request.method != "POST":
        return False
    message = json.loads(request.content)
    return "method" in message and "id" in message


@asynccontextmanager
async def _open_program(server: McpServer) -> AsyncIterator[Any]:
    parameters = StdioServerParameters(command=server.command, args=list(server.args), env=dict(server.env))
    with Path("/dev/null").open("w") as null:
        assert isinstance(null, TextIOWrapper)
        async with stdio_client(parameters, errlog=null) as streams:
            yield streams


async def _agree(session: ClientSession, kept: KeptSession) -> None:
    """Agree on a version: as before, or by `initialize`, or by the way of servers without sessions."""
    if kept.agreement is not None:
        session.adopt(_read_agreement(kept.agreement))
        return
    result: BaseModel
    try:
        result, kind = await session.initialize(), "initialize"
    except MCPError:
        result, kind = await session.discover(), "discover"
    members = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    kept.agreement = McpAgreement.from_wire({"kind": kind, "result": members})


def _read_agreement(agreement: McpAgreement) -> mcp_types.InitializeResult | mcp_types.DiscoverResult:
    if agreement.kind == "discover":
        return mcp_types.DiscoverResult.model_validate(agreement.result)
    return mcp_types.InitializeResult.model_validate(agreement.result)


MCP_ERRORS = (
    McpFailure, MCPError, ApiError, httpx2.HTTPError, httpx2.InvalidURL, OSError, RuntimeError, ValueError,
)  # fmt: skip
"""What asking a server raises, alone or in groups."""


def describe_mcp_failure(server: McpServer, error: BaseException, failed_status: int = 0) -> McpFailure:
    """Return what a user reads of an error: whose fault, and no detail of the connection.

    Args:
        server: The server. The secrets that it was sent are veiled in its words.
        error: One of MCP_ERRORS, or a group of them.
        failed_status: The status of HTTP with which the server has refused; 0 if it has not.
    """
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    label = server.label
    match error:
        case McpFailure():
            return error
        case ApiError():
            return McpFailure(f"{label}: {error.message}", was_refused=True)
        case MCPError() if error.error.code == mcp_types.PARSE_ERROR:
            return McpFailure(f"{label} answered with what is no valid MCP.")
        case MCPError():
            words = server.veil_secrets(error.error.message)[:MAX_FAILURE_CHARS].strip().rstrip(".")
            status = f" with status {failed_status}" if failed_status else ""
            return McpFailure(f"{label} refused{status}: {words}.", was_refused=is_refused_status(failed_status))
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return McpFailure(f"{label} could not be reached.", was_refused=True)
        case httpx2.HTTPStatusError():
            return McpFailure(f"{label} answered with status {error.response.status_code}.")
        case httpx2.TimeoutException():
            return McpFailure(f"{label} did not answer in time.")
        case FileNotFoundError() | PermissionError():
            return McpFailure(f"{label} could not be started.", was_refused=True)
        case ValidationError():
            return McpFailure(f"{label} answered with what is no valid MCP.")
        case _:
            words = server.veil_secrets(str(error))[:MAX_FAILURE_CHARS]
            return McpFailure(f"{label} failed: {words or type(error).__name__}.")
