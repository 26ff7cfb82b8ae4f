"""Send the requests of boto3 to the emulator over plain connections of this machine (decision 0556).

The HTTP of boto3 is made for any server: it takes a third of what boto3 takes for a call. All else stays: signing,
retries, the errors it raises, and what observes its calls. Standard library and what botocore needs only, because
function processes load this file by its path.
"""

import io
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import SplitResult, urlsplit

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, ReadTimeoutError
from urllib3.util.wait import wait_for_read

CALLS = ("dynamodb", "sfn", "kms", "s3.PutObject")
"""The services, or calls, whose bodies are in memory. Objects that are read come as streams, which boto3 does."""
CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0
RECEIVED_BYTES = 1 << 16
MAX_HEAD_BYTES = 1 << 16
LOOPBACK = "127.0.0.1"
LEFT_OUT_HEADERS = ("host", "content-length", "expect")
"""The first two are written anew. The third asks whether a body is welcome, which takes a message each way."""
HEAD_END = b"\r\n\r\n"


def send_directly(session: Any) -> None:
    """Let all clients that a boto3 session makes from now on send their requests so, where they ask the emulator."""
    sender = DirectSender()
    for calls in CALLS:
        session.events.register(f"before-send.{calls}", sender.send)


class DirectSender:
    """Connections to one emulator, which threads take and give back. A forked process begins without any."""

    def __init__(self) -> None:
        self._idle: list[DirectConnection] = []
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._forget_connections)

    def send(self, request: Any, **_: Any) -> AWSResponse | None:
        """Return the response of a request; None for one that boto3 has to send itself.

        Raises:
            EndpointConnectionError: Nothing listens.
            ReadTimeoutError: No response came in time.
            ConnectionClosedError: The connection ended before the whole response came.
        """
        url = urlsplit(request.url)
        if url.scheme != "http" or url.hostname != LOOPBACK or request.stream_output:
            return None
        message = encode_request(request, url)
        if message is None:
            return None
        connection = self._take(url, request.url)
        try:
            status, headers, body = connection.exchange(message)
        except TimeoutError as error:
            connection.close()
            raise ReadTimeoutError(endpoint_url=request.url, error=error) from error
        except (OSError, ValueError) as error:
            connection.close()
            raise ConnectionClosedError(endpoint_url=request.url, request=request, error=error) from error
        if headers.get("connection") == "close":
            connection.close()
        else:
            self._give_back(connection)
        return AWSResponse(request.url, status, headers, RawBody(body))  # type: ignore[arg-type]  # any mapping will do

    def _take(self, url: SplitResult, endpoint: str) -> "DirectConnection":
        address = (LOOPBACK, url.port or 80)
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                try:
                    return DirectConnection(address)
                except OSError as error:
                    raise EndpointConnectionError(endpoint_url=endpoint, error=error) from error
            if connection.address == address and not connection.is_dropped():
                return connection
            connection.close()

    def _give_back(self, connection: "DirectConnection") -> None:
        with self._lock:
            self._idle.append(connection)

    def _forget_connections(self) -> None:
        self._idle = []
        self._lock = threading.Lock()


class DirectConnection:
    """A connection that carries one request at a time."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self._socket = socket.create_connection(address, CONNECT_SECONDS)
        self._socket.settimeout(READ_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def is_dropped(self) -> bool:
        """Return whether the emulator has closed it, or has sent what nobody asked for."""
        return wait_for_read(self._socket, 0)

    def exchange(self, message: bytes) -> tuple[int, dict[str, str], bytes]:
        """Send a request, and return the status, the headers by name in lower case, and the body of its response.

        Raises:
            OSError: The connection failed, or took too long.
            ValueError: The response is none of the emulator's.
        """
        self._socket.sendall(message)
        received = bytearray()
        while (end := received.find(HEAD_END)) < 0:
            if len(received) > MAX_HEAD_BYTES:
                raise ValueError("The head of the response does not end.")
            received += self._receive()
        status, headers = parse_head(bytes(received[:end]))
        length = int(headers["content-length"]) if "content-length" in headers else -1
        if length < 0:
            raise ValueError("The response does not say how long it is.")
        start = end + len(HEAD_END)
        while len(received) < start + length:
            received += self._receive()
        return status, headers, bytes(received[start : start + length])

    def _receive(self) -> bytes:
        chunk = self._socket.recv(RECEIVED_BYTES)
        if not chunk:
            raise ConnectionError("The emulator closed the connection.")
        return chunk

    def close(self) -> None:
        self._socket.close()


class RawBody(io.BytesIO):
    """A body that was read, as boto3 reads those of its own connections."""

    def stream(self) -> Iterator[bytes]:
        yield self.getvalue()


def encode_request(request: Any, url: SplitResult) -> bytes | None:
    """Return the bytes of a request; None if its body is not in memory."""
    body = request.body or b""
    if isinstance(body, io.BytesIO):  # in which boto3 puts what is stored in S3
        body = body.getbuffer()[body.tell() :].tobytes()
    elif isinstance(body, str):
        body = body.encode()
    if not isinstance(body, bytes | bytearray):
        return None
    target = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
    lines = [f"{request.method} {target} HTTP/1.1", f"Host: {url.netloc}"]
    for name, value in request.headers.items():
        if name.lower() not in LEFT_OUT_HEADERS:
            lines.append(f"{name}: {value.decode('latin-1') if isinstance(value, bytes) else value}")
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "\r\n"]).encode("latin-1") + body


def parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    """Return the status and the headers of a response.

    Raises:
        ValueError: It is no head of HTTP.
    """
    first, *lines = head.decode("latin-1").split("\r\n")
    protocol, _, status = first.partition(" ")
    if not protocol.startswith("HTTP/1."):
        raise ValueError(f"This is no response: {first[:100]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(status[:3]), headers
