"""Let through only requests that are signed with the secret of this run, and none of a browser (decision 0230).

MiniStack obeys whoever asks: one GET that a page's image causes could deploy a function, which is code that runs here.
A request to an AWS service has the signature that every AWS client makes. A request with the signature of
`sign_run_request` is one to a page of this project, or one that the front door passes on for its own caller: what a
browser has sent belongs to that caller then, and `Authorization` holds the caller's token.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

from local.browser_check import HOST_REFUSED_TEXT, decode_headers, find_page_problem
from local.emulator.snapshots import App
from local.request_signature import (
    CREDENTIALS_VARIABLE,
    DATE_HEADER,
    SIGNATURE_HEADER,
    UNSIGNED_PAYLOAD,
    HttpRequest,
    RunCredentials,
    Signature,
    SignatureRefusedError,
    read_signature,
    verify_run_request,
)

API_PATH_PREFIX = "/restapis/"
CORS_HEADER_PREFIX = b"access-control-"
OWN_HEADERS = (SIGNATURE_HEADER.encode(), DATE_HEADER.encode())
PAYLOAD_HASH_HEADER = "x-amz-content-sha256"
MIN_THREAD_BYTES = 1 << 20
"""From which length a body is hashed in a thread, while other requests go on."""
Receive = Callable[[], Awaitable[Any]]


class SignatureCheck:
    """An ASGI app around the emulator's. It costs 12 microseconds of processor time per request."""

    def __init__(self, app: App, credentials: RunCredentials, port: int) -> None:
        self._app = app
        self._credentials = credentials
        self._port = port

    @classmethod
    def from_environment(cls, app: App) -> "SignatureCheck":
        return cls(app, RunCredentials.parse(os.environ[CREDENTIALS_VARIABLE]), int(os.environ["GATEWAY_PORT"]))

    async def __call__(self, scope: Any, receive: Receive, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        request = HttpRequest(scope["method"], path, query, decode_headers(scope["headers"]))
        try:
            if SIGNATURE_HEADER in request.headers:
                scope = self._check_own_request(scope, request)
            else:
                receive = await self._check_aws_request(request, receive)
        except SignatureRefusedError as refusal:
            await _refuse(send, str(refusal))
            return
        is_api = scope["path"].startswith(API_PATH_PREFIX)
        await self._app(scope, receive, send if is_api else _without_cors(send))

    def _check_own_request(self, scope: Any, request: HttpRequest) -> Any:
        """Verify the signature of this project's own programs, and return the scope without it."""
        if find_page_problem({"host": request.headers.get("host", "")}, self._port):
            raise SignatureRefusedError(HOST_REFUSED_TEXT)
        verify_run_request(request, self._credentials)
        return {**scope, "headers": [header for header in scope["headers"] if header[0] not in OWN_HEADERS]}

    async def _check_aws_request(self, request: HttpRequest, receive: Receive) -> Receive:
        """Verify the signature of an AWS client, for which the body is read, and return what yields the body again.

        Whoever does not know the access key is refused before anything of the body is read.
        """
        if problem := find_page_problem(request.headers, self._port):
            raise SignatureRefusedError(problem)
        signature = read_signature(request, self._credentials)
        stated_hash = request.headers.get(PAYLOAD_HASH_HEADER, "")
        if stated_hash.startswith(("STREAMING-", UNSIGNED_PAYLOAD)):
            signature.verify(request, self._credentials, stated_hash)
            return receive
        return await self._check_body(signature, request, stated_hash, receive)

    async def _check_body(
        self, signature: Signature, request: HttpRequest, stated_hash: str, receive: Receive
    ) -> Receive:
        body = await _read_body(receive)
        payload_hash = await asyncio.to_thread(_hash, body) if len(body) >= MIN_THREAD_BYTES else _hash(body)
        if stated_hash and stated_hash != payload_hash:
            raise SignatureRefusedError("The body is another one than was signed.")
        signature.verify(request, self._credentials, payload_hash)
        unread = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Any:
            return unread.pop() if unread else await receive()

        return receive_again


async def _read_body(receive: Receive) -> bytes:
    chunks = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise SignatureRefusedError("The body is not complete.")
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _without_cors(send: Any) -> Any:
    """Remove the headers with which MiniStack lets pages of any origin read its responses."""

    async def send_without_cors(message: Any) -> None:
        if message["type"] == "http.response.start":
            kept = [pair for pair in message["headers"] if not pair[0].lower().startswith(CORS_HEADER_PREFIX)]
            message = message | {"headers": kept}
        await send(message)

    return send_without_cors


async def _refuse(send: Any, reason: str) -> None:
    """Refuse a request in the form that AWS clients read, and close the connection: its body is not read."""
    body = json.dumps({"__type": "InvalidSignatureException", "message": reason}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 403, "headers": headers})
    await send({"type": "http.response.body", "body": body})
