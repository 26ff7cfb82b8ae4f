"""The way from the front door to the emulator's API Gateway: HTTP over connections that stay open.

Written on h11, because a general client costs more per request than everything else in the front door together.
"""

import asyncio
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import h11

READ_CHUNK_BYTES = 1 << 16
MAX_IDLE_CONNECTIONS = 64
REPLACED_HEADERS = frozenset((b"host", b"content-length"))


class UpstreamUnavailableError(Exception):
    """The emulator cannot be reached, or hung up before it had answered."""


@dataclass(frozen=True)
class UpstreamResponse:
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def get_header(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.headers if key == name), None)


@dataclass
class UpstreamConnection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    state: h11.Connection


class UpstreamClient:
    """Raises NoAnswerError, or TimeoutError after `seconds`; the connection is then thrown away."""

    def __init__(self, endpoint: str, api: str, timeout_seconds: float) -> None:
        self._host = urlsplit(endpoint).hostname or "127.0.0.1"
        self._port = urlsplit(endpoint).port or 80
        identity, stage = api.split("/")
        self._prefix = f"/restapis/{identity}/{stage}/_user_request_".encode()
        self._seconds = timeout_seconds
        self._idle: list[UpstreamConnection] = []

    async def send_request(self, scope: MutableMapping[str, Any], body: bytes) -> UpstreamResponse:
        connection: UpstreamConnection | None = None
        try:
            async with asyncio.timeout(self._seconds):
                connection = await self._connection()
                connection.writer.write(self._request(connection.state, scope, body))
                answer = await _read(connection)
        except (OSError, h11.RemoteProtocolError) as error:
            _close(connection)
            if isinstance(error, TimeoutError):
                raise
            raise UpstreamUnavailableError from error
        except asyncio.CancelledError:
            _close(connection)
            raise
        self._keep(connection)
        return answer

    def _request(self, state: h11.Connection, scope: MutableMapping[str, Any], body: bytes) -> bytes:
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        headers = [pair for pair in scope["headers"] if pair[0] not in REPLACED_HEADERS]
        headers.append((b"host", f"{self._host}:{self._port}".encode()))
        headers.append((b"content-length", str(len(body)).encode()))
        target = self._prefix + scope["raw_path"] + query
        head = state.send(h11.Request(method=scope["method"], target=target, headers=headers))
        data = state.send(h11.Data(data=body)) if body else b""
        return b"".join(part or b"" for part in (head, data, state.send(h11.EndOfMessage())))

    async def _connection(self) -> UpstreamConnection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.reader.at_eof():
                return connection
            _close(connection)
        reader, writer = await asyncio.open_connection(self._host, self._port)
        return UpstreamConnection(reader, writer, h11.Connection(h11.CLIENT))

    def _keep(self, connection: UpstreamConnection) -> None:
        reusable = connection.state.our_state is h11.DONE and connection.state.their_state is h11.DONE
        if reusable and len(self._idle) < MAX_IDLE_CONNECTIONS:
            connection.state.start_next_cycle()
            self._idle.append(connection)
        else:
            _close(connection)


async def _read(connection: UpstreamConnection) -> UpstreamResponse:
    status, headers, body = 0, [], bytearray()
    while True:
        event = connection.state.next_event()
        if event is h11.NEED_DATA:
            connection.state.receive_data(await connection.reader.read(READ_CHUNK_BYTES))
        elif isinstance(event, h11.Response):
            status, headers = event.status_code, [(bytes(name), bytes(value)) for name, value in event.headers]
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return UpstreamResponse(status, headers, bytes(body))
        elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
            raise h11.RemoteProtocolError("closed before the answer was complete")


def _close(connection: UpstreamConnection | None) -> None:
    if connection is not None:
        connection.writer.close()
