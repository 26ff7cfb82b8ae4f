"""Send the requests of boto3 to the emulator over plain connections of this machine (decisions 0556 and 0600).

The HTTP of boto3 is made for any server: it takes a third of what boto3 takes for a call, and signing with its headers
another third. Both are done here for what a call usually is. All else stays: what boto3 makes of its parameters,
retries, the errors it raises, and what observes its calls. Standard library and what botocore needs only, because
function processes load this file by its path.
"""

import functools
import hashlib
import hmac
import io
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import SplitResult, urlsplit

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, ReadTimeoutError
from botocore.parsers import create_parser
from urllib3.util.wait import wait_for_read

CALLS = ("dynamodb", "sfn", "kms", "s3.PutObject")
"""The services, or calls, whose bodies are in memory. Objects that are read come as streams, which boto3 does."""
JSON_SERVICES = ("dynamodb", "stepfunctions", "kms")
"""Those of them whose calls are one POST of JSON, which is signed here."""
PLAIN_OPERATIONS = frozenset(
    ("GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
)
"""Operations of DynamoDB whose responses boto3 returns as the JSON they are, unless they have binary values."""
BINARY_MARKS = (b'"B"', b'"BS"')
SIGNED_HEADERS = ("content-type", "host", "x-amz-date", "x-amz-target")
"""In the order of their names."""
CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0
RECEIVED_BYTES = 1 << 16
MAX_HEAD_BYTES = 1 << 16
LOOPBACK = "127.0.0.1"
OK = 200
LEFT_OUT_HEADERS = ("host", "content-length", "expect")
"""The first two are written anew. The third asks whether a body is welcome, which takes a message each way."""
HEAD_END = b"\r\n\r\n"


def send_directly(session: Any) -> None:
    """Let all clients that a boto3 session makes from now on send their requests so, where they ask the emulator."""
    sender = DirectSender()
    for calls in CALLS:
        session.events.register(f"before-send.{calls}", sender.send)
    session.events.register_last("before-call", sender.call)  # behind those who count calls, or let them fail


class DirectSender:
    """Connections to one emulator, which threads take and give back. A forked process begins without any."""

    def __init__(self) -> None:
        self._idle: list[DirectConnection] = []
        self._lock = threading.Lock()
        self._outcome = threading.local()
        os.register_at_fork(after_in_child=self._forget_connections)

    def send(self, request: Any, **_: Any) -> AWSResponse | None:
        """Return the response of a request; None for one that boto3 has to send itself.

        Raises:
            EndpointConnectionError: Nothing listens.
            ReadTimeoutError: No response came in time.
            ConnectionClosedError: The connection ended before the whole response came.
        """
        url = urlsplit(request.url)
        if not is_on_this_machine(url) or request.stream_output:
            return None
        if (outcome := self._take_outcome(request)) is not None:
            if isinstance(outcome, Exception):
                raise outcome
            return outcome
        message = encode_request(request, url)
        return None if message is None else self._exchange(message, url, request.url, request)

    def call(self, model: Any, params: dict[str, Any], request_signer: Any, **_: Any) -> tuple[Any, Any] | None:
        """Make a call whose parameters boto3 has encoded, and return its response as boto3 would.

        Returns:
            The response and what was parsed of it. None for anything but a usual success: boto3 then makes a request
            of the call, for which `send` has the response or the error that came already. So boto3 treats errors,
            and repeats a call as often, as if it had sent it.
        """
        self._outcome.kept = None
        address, body = params["url"], params["body"]
        url = urlsplit(address)
        service = model.service_model
        if service.service_name not in JSON_SERVICES or not is_on_this_machine(url) or not isinstance(body, bytes):
            return None
        message = encode_call(url.netloc, params["headers"], body, service.signing_name, request_signer)
        if message is None:
            return None
        try:
            response = self._exchange(message, url, address, None)
        except (EndpointConnectionError, ReadTimeoutError, ConnectionClosedError) as error:
            self._outcome.kept = (body, error)
            return None
        if response.status_code == OK:
            return response, parse_success(model, response)
        self._outcome.kept = (body, response)
        return None

    def _take_outcome(self, request: Any) -> AWSResponse | Exception | None:
        """Return what came of the call that this thread has made, if the request is that call."""
        kept, self._outcome.kept = getattr(self._outcome, "kept", None), None
        return kept[1] if kept is not None and kept[0] == request.body else None

    def _exchange(self, message: bytes, url: SplitResult, address: str, request: Any) -> AWSResponse:
        connection = self._take(url, address)
        try:
            status, headers, body = connection.exchange(message)
        except TimeoutError as error:
            connection.close()
            raise ReadTimeoutError(endpoint_url=address, error=error) from error
        except (OSError, ValueError) as error:
            connection.close()
            raise ConnectionClosedError(endpoint_url=address, request=request, error=error) from error
        if headers.get("connection") == "close":
            connection.close()
        else:
            self._give_back(connection)
        return AWSResponse(address, status, headers, RawBody(body))  # type: ignore[arg-type]  # any mapping will do

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


def is_on_this_machine(url: SplitResult) -> bool:
    return url.scheme == "http" and url.hostname == LOOPBACK


def encode_call(host: str, headers: Any, body: bytes, service: str, request_signer: Any) -> bytes | None:
    """Return the bytes of a POST of JSON to `/`, signed with AWS Signature Version 4.

    Args:
        host: Name and port of the server.
        headers: Those of boto3, of which two are needed.
        body: The JSON.
        service: The name under which the service verifies signatures.
        request_signer: The client's, which has its key and its region.

    Returns:
        None for temporary credentials, which need another header.
    """
    region = request_signer.region_name
    key = request_signer.get_auth_instance(service, region, "v4").credentials
    if key.token:
        return None
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    values = (headers["Content-Type"], host, now, headers["X-Amz-Target"])
    lines = [f"{name}:{value}\n" for name, value in zip(SIGNED_HEADERS, values, strict=True)]
    canonical = f"POST\n/\n\n{''.join(lines)}\n{';'.join(SIGNED_HEADERS)}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{now[:8]}/{region}/{service}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    digest = hmac.digest(derive_key(key.secret_key, now[:8], region, service), text.encode(), "sha256").hex()
    head = (
        f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: {values[0]}\r\nX-Amz-Date: {now}\r\n"
        f"X-Amz-Target: {values[3]}\r\nContent-Length: {len(body)}\r\n"
        f"Authorization: AWS4-HMAC-SHA256 Credential={key.access_key}/{scope}, "
        f"SignedHeaders={';'.join(SIGNED_HEADERS)}, Signature={digest}\r\n\r\n"
    )
    return head.encode("latin-1") + body


@functools.lru_cache(maxsize=16)
def derive_key(secret: str, date: str, region: str, service: str) -> bytes:
    """Return the key that signs the requests of a day."""
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key


def parse_success(model: Any, response: AWSResponse) -> Any:
    """Parse the response of a call that succeeded, as boto3 does."""
    body, headers = response.content, response.headers
    if model.name in PLAIN_OPERATIONS and not any(mark in body for mark in BINARY_MARKS):
        metadata = {"HTTPStatusCode": OK, "HTTPHeaders": headers, "RetryAttempts": 0}
        if "x-amzn-requestid" in headers:
            metadata["RequestId"] = headers["x-amzn-requestid"]
        return json.loads(body) | {"ResponseMetadata": metadata}
    received = {"body": body, "headers": headers, "status_code": OK, "context": {"operation_name": model.name}}
    return create_parser(model.service_model.resolved_protocol).parse(received, model.output_shape)


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
