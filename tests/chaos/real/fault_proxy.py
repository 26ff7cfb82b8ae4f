"""A proxy between functions and the emulated AWS, through which every request passes and where it can be disturbed.

    proxy = FaultProxy(lambda: endpoint, treat)
    await proxy.start()            # functions get proxy.url as their AWS endpoint

`treat(request, forward)` is called for each request and returns the response, or None to close the connection without
one. `await forward(request)` sends it to the emulator.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import h11
import httpx

from local.listening_sockets import open_listener
from local.signed_pages import RunSignature

Headers = list[tuple[bytes, bytes]]
CREDENTIAL_SCOPE = re.compile(rb"Credential=[^/]+/\d+/[^/]+/([^/]+)/aws4_request")
SERVICE_NAMES = {"states": "stepfunctions"}
S3_OPERATIONS = {"PUT": "PutObject", "GET": "GetObject", "HEAD": "HeadObject", "DELETE": "DeleteObject"}
HOP_BY_HOP_HEADERS = (b"connection", b"expect", b"transfer-encoding", b"content-length", b"host", b"keep-alive")
READ_CHUNK_BYTES = 1 << 16
UPSTREAM_TIMEOUT_SECONDS = 300.0


@dataclass(frozen=True)
class ProxiedRequest:
    method: str
    target: str
    headers: Headers
    body: bytes
    client_port: int
    """The port of the connection at its sender, by which the sending process can be found."""

    @cached_property
    def call(self) -> str:
        """Service and operation, such as `dynamodb.PutItem`."""
        headers = dict(self.headers)
        scope = CREDENTIAL_SCOPE.search(headers.get(b"authorization", b""))
        service = scope[1].decode() if scope else "unknown"
        operation = headers.get(b"x-amz-target", b"").decode().rpartition(".")[2]
        if service == "s3":
            operation = self._s3_operation()
        return f"{SERVICE_NAMES.get(service, service)}.{operation}"

    @cached_property
    def text(self) -> bytes:
        """Everything a request says: its path, and its body unless that is an object."""
        return self.target.encode() if self.call.startswith("s3.") else self.target.encode() + b" " + self.body

    @cached_property
    def json(self) -> Any:
        return json.loads(self.body or b"{}")

    def _s3_operation(self) -> str:
        _, _, query = self.target.partition("?")
        if "list-type=" in query:
            return "ListObjectsV2"
        return "DeleteObjects" if self.method == "POST" and "delete" in query else S3_OPERATIONS[self.method]


@dataclass(frozen=True)
class ProxiedResponse:
    status: int
    headers: Headers
    body: bytes


Forward = Callable[[ProxiedRequest], Awaitable[ProxiedResponse | None]]
Treat = Callable[[ProxiedRequest, Forward], Awaitable[ProxiedResponse | None]]


class FaultProxy:
    """A server on a free port of this machine, in the running event loop."""

    def __init__(self, upstream: Callable[[], str], treat: Treat) -> None:
        """
        Args:
            upstream: returns the URL of the emulator, which starts later than the proxy.
        """
        self._upstream, self._treat = upstream, treat
        self._listener = open_listener(0)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=32)
        self._http = httpx.AsyncClient(trust_env=False, timeout=UPSTREAM_TIMEOUT_SECONDS, limits=limits)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve_connection, sock=self._listener)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._open:
            writer.close()
        await self._http.aclose()

    async def forward(self, request: ProxiedRequest) -> ProxiedResponse | None:
        """Send a request to the emulator. Return None if it cannot be reached."""
        headers = [(name, value) for name, value in request.headers if name not in HOP_BY_HOP_HEADERS]
        try:
            url = self._upstream() + request.target
            upstream = self._http.build_request(request.method, url, headers=headers, content=request.body)
            response = await self._http.send(upstream, auth=RunSignature(), stream=True)
            body = b"".join([chunk async for chunk in response.aiter_raw()])
        except httpx.TransportError:
            return None
        kept = [(name, value) for name, value in response.headers.raw if name.lower() not in HOP_BY_HOP_HEADERS]
        return ProxiedResponse(response.status_code, kept, body)

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=READ_CHUNK_BYTES)
        port = int(writer.get_extra_info("peername")[1])
        self._open.add(writer)
        with contextlib.suppress(OSError, h11.ProtocolError):
            while (request := await read_request(connection, reader, writer, port)) is not None:
                response = await self._treat(request, self.forward)
                if response is None:
                    break
                writer.write(encode_response(connection, request, response))
                await writer.drain()
                if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                    break
                connection.start_next_cycle()
        self._open.discard(writer)
        writer.close()


async def read_request(
    connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int
) -> ProxiedRequest | None:
    """Read the next request of a connection; None when the client has closed it."""
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            if connection.they_are_waiting_for_100_continue:
                writer.write(connection.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            connection.receive_data(await reader.read(READ_CHUNK_BYTES))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            headers = [(bytes(name).lower(), bytes(value)) for name, value in head.headers]
            return ProxiedRequest(head.method.decode(), head.target.decode(), headers, bytes(body), port)
        else:
            return None


def encode_response(connection: h11.Connection, request: ProxiedRequest, response: ProxiedResponse) -> bytes:
    headers = [*response.headers, (b"content-length", str(len(response.body)).encode())]
    parts = [connection.send(h11.Response(status_code=response.status, headers=headers))]
    if request.method != "HEAD":
        parts.append(connection.send(h11.Data(data=response.body)))
    parts.append(connection.send(h11.EndOfMessage()))
    return b"".join(part or b"" for part in parts)
