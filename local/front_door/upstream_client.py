"""Send requests from the front door to the emulator's API Gateway, over kept-alive connections.

It is written on h11: a general HTTP client costs more per request than everything else in the front door together.
"""

import asyncio
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import h11

from local.front_door.asgi import Headers, find_header
from local.request_signature import DATE_HEADER, SIGNATURE_HEADER, RunCredentials, sign_run_request

READ_CHUNK_BYTES = 1 << 16
MAX_IDLE_CONNECTIONS = 64
REPLACED_HEADERS = frozenset((b"host", b"content-length", SIGNATURE_HEADER.encode(), DATE_HEADER.encode()))


class UpstreamUnavailableError(Exception):
    """The emulator cannot be reached, or closed the connection before it had responded."""


@dataclass(frozen=True)
class UpstreamResponse:
    status: int
    headers: Headers
    body: bytes

    def get_header(self, name: bytes) -> bytes | None:
        return find_header(self.headers, name)


@dataclass
class UpstreamConnection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    state: h11.Connection


class UpstreamClient:
    """A pool of connections to the emulator. A connection that fails is thrown away."""

    def __init__(self, endpoint: str, api: str, timeout_seconds: float, credentials: RunCredentials) -> None:
        self._host = urlsplit(endpoint).hostname or "127.0.0.1"
        self._port = urlsplit(endpoint).port or 80
        api_id, stage = api.split("/")
        self._prefix = f"/restapis/{api_id}/{stage}/_user_request_".encode()
        self._timeout_seconds = timeout_seconds
        self._credentials = credentials
        self._idle: list[UpstreamConnection] = []

    async def send_request(self, scope: MutableMapping[str, Any], body: bytes) -> UpstreamResponse:
        """Send the request of an ASGI scope and read the whole response.

        Raises:
            UpstreamUnavailableError
            TimeoutError: after `timeout_seconds`.
        """
        connection: UpstreamConnection | None = None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                connection = await self._get_connection()
                connection.writer.write(self._encode_request(connection.state, scope, body))
                response = await _read_response(connection)
        except (OSError, h11.RemoteProtocolError) as error:
            _close(connection)
            if isinstance(error, TimeoutError):
                raise
            raise UpstreamUnavailableError from error
        except asyncio.CancelledError:
            _close(connection)
            raise
        self._release(connection)
        return response

    def _encode_request(self, state: h11.Connection, scope: MutableMapping[str, Any], body: bytes) -> bytes:
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        headers = [(name, value) for name, value in scope["headers"] if name not in REPLACED_HEADERS]
        host = f"{self._host}:{self._port}"
        headers.append((b"host", host.encode()))
        headers.append((b"content-length", str(len(body)).encode()))
        target = self._prefix + scope["raw_path"] + query
        signed = sign_run_request(self._credentials, scope["method"], host, target.decode("latin-1"))
        headers.extend((name.encode(), value.encode()) for name, value in signed.items())
        head = state.send(h11.Request(method=scope["method"], target=target, headers=headers))
        data = state.send(h11.Data(data=body)) if body else b""
        return b"".join(part or b"" for part in (head, data, state.send(h11.EndOfMessage())))

    async def _get_connection(self) -> UpstreamConnection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.reader.at_eof():
                return connection
            _close(connection)
        reader, writer = await asyncio.open_connection(self._host, self._port)
        return UpstreamConnection(reader, writer, h11.Connection(h11.CLIENT))

    def _release(self, connection: UpstreamConnection) -> None:
        reusable = connection.state.our_state is h11.DONE and connection.state.their_state is h11.DONE
        if reusable and len(self._idle) < MAX_IDLE_CONNECTIONS:
            connection.state.start_next_cycle()
            self._idle.append(connection)
        else:
            _close(connection)


async def _read_response(connection: UpstreamConnection) -> UpstreamResponse:
    status = 0
    headers: Headers = []
    body = bytearray()
    while True:
        event = connection.state.next_event()
        if event is h11.NEED_DATA:
            connection.state.receive_data(await connection.reader.read(READ_CHUNK_BYTES))
        elif isinstance(event, h11.Response):
            status = event.status_code
            headers = [(bytes(name), bytes(value)) for name, value in event.headers]
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return UpstreamResponse(status, headers, bytes(body))
        elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
            raise h11.RemoteProtocolError("closed before the answer was complete")


def _close(connection: UpstreamConnection | None) -> None:
    if connection is not None:
        connection.writer.close()
