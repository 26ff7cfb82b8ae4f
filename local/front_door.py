"""`python -m local.front_door`: the address of the local service, in the place of API Gateway's own.

The emulator can route but not stream, and takes bodies of any size. So this stands before it: with the routes, limits
and gateway responses of template.yaml it serves the streaming function's app itself, and passes everything else on.

Settings from the environment: `FERMATA_PORT` (0: any free port), `FERMATA_ENDPOINT` (the emulator), `FERMATA_API`
(the API's id and stage, `id/stage`), `FERMATA_STREAM` (name of the deployed streaming function), `FERMATA_TEMPLATE`
(default: the project's).
"""

import importlib
import json
import os
import re
import socket
import sys
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import uvicorn

from local import template
from local.bucket import MOST_BYTES, PREFIX, TOO_LARGE, Bucket
from local.clients import KEYS, client
from local.gateway import INTEGRATION_SECONDS, REST_LIMIT, Gateway, Refusal, event_fits
from local.tethered import announce
from local.upstream import Answer, NoAnswerError, Upstream

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

SANE_ID = re.compile(rb"[A-Za-z0-9._:=+/-]{1,128}")
HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection", b"expect")
)
DRAINED = 64 * 1024 * 1024
"""How much of a refused body is still read and thrown away, so that its sender gets to hear why."""


class TooLargeError(Exception):
    """The body passes API Gateway's limit, or Lambda's; `is_read` when all of it has come."""

    def __init__(self, *, is_read: bool = False) -> None:
        super().__init__()
        self.is_read = is_read


class FrontDoor:
    """The ASGI app: find the route, hold the limits, then stream here or pass on."""

    def __init__(self, gateway: Gateway, stream: App, upstream: Upstream, bucket: Bucket) -> None:
        self._gateway = gateway
        self._bucket = bucket
        self._stream = stream
        self._upstream = upstream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"].startswith(f"{PREFIX}/"):
            await self._into_the_bucket(scope, receive, send)
            return
        host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
        scope = prepared(scope)
        request_id = dict(scope["headers"])[b"x-request-id"].decode()
        route = self._gateway.route(scope["method"], scope["path"])
        if route is None:
            await answer(send, self._gateway.refusal("MISSING_AUTHENTICATION_TOKEN", request_id))
            return
        try:
            body = await read_body(scope, receive)
        except TooLargeError as error:
            refusal = self._gateway.refusal("REQUEST_TOO_LARGE", request_id)
            await (answer(send, refusal) if error.is_read else answer_and_drain(receive, send, refusal))
            return
        if body is None:
            return
        if route.streams:
            await self._stream(scope, replayed(body, receive), send)
        else:
            await self._pass_on(scope, body, send, request_id, host)

    async def _into_the_bucket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await read_whole(scope, receive, MOST_BYTES)
        except TooLargeError as error:
            refusal = Refusal(*TOO_LARGE)
            await (answer(send, refusal) if error.is_read else answer_and_drain(receive, send, refusal))
            return
        if body is not None:
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
            path, query = scope["raw_path"].decode().removeprefix(PREFIX), scope["query_string"].decode("latin-1")
            said = await self._bucket.answer(scope["method"], path, query, headers, body)
            await answer(send, Refusal(*said))

    async def _pass_on(self, scope: Scope, body: bytes, send: Send, request_id: str, host: str) -> None:
        try:
            said = await self._upstream.ask(scope, body)
        except TimeoutError:
            await answer(send, self._gateway.refusal("INTEGRATION_TIMEOUT", request_id))
            return
        except NoAnswerError:
            await answer(send, self._gateway.refusal("INTEGRATION_FAILURE", request_id))
            return
        if kind := gateway_error(said):
            await answer(send, self._gateway.refusal(kind, request_id, json.loads(said.body)["message"]))
            return
        told = self._bucket.shown(said.body, host)
        headers = shown(said.headers)
        if told != said.body:
            headers = [pair for pair in headers if pair[0] != b"content-length"]
            headers.append((b"content-length", str(len(told)).encode()))
        if said.header(b"x-request-id") is None:
            headers.append((b"x-request-id", request_id.encode()))
        await send({"type": "http.response.start", "status": said.status, "headers": headers})
        await send({"type": "http.response.body", "body": told})


def prepared(scope: Scope) -> Scope:
    """The request as a function may see it: with an id, who sent it, and nothing that only the platform may say."""
    given: Headers = [(name.lower(), value) for name, value in scope["headers"]]
    offered = next((value for name, value in given if name == b"x-request-id"), b"")
    request_id = offered if SANE_ID.fullmatch(offered) else str(uuid.uuid4()).encode()
    dropped = {b"x-request-id", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-port"} | HOP_BY_HOP
    kept = [pair for pair in given if pair[0] not in dropped and not pair[0].startswith(b"x-amzn-")]
    host, _ = scope.get("client") or ("127.0.0.1", 0)
    added = [(b"x-request-id", request_id), (b"x-forwarded-for", host.encode()), (b"x-forwarded-proto", b"http")]
    return {**scope, "headers": kept + added}


async def read_body(scope: Scope, receive: Receive) -> bytes | None:
    """The whole body, at most what the platform takes; None when the caller went away while sending it."""
    whole = await read_whole(scope, receive, REST_LIMIT)
    if whole is not None and not event_fits(scope["headers"], scope["query_string"], whole):
        raise TooLargeError(is_read=True)
    return whole


async def read_whole(scope: Scope, receive: Receive, most: int) -> bytes | None:
    declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if int(declared) > most:
        raise TooLargeError
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise TooLargeError(is_read=not more)
    return bytes(body)


def replayed(body: bytes, receive: Receive) -> Receive:
    """A body that was read, handed on as if it came just now; then whatever else happens to the connection."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return pending.pop() if pending else await receive()

    return again


async def answer(send: Send, refusal: Refusal, *, more: bool = False) -> None:
    headers = [(name.encode(), value.encode()) for name, value in refusal.headers.items()]
    headers.append((b"content-length", str(len(refusal.body)).encode()))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": refusal.body, "more_body": more})


async def answer_and_drain(receive: Receive, send: Send, refusal: Refusal) -> None:
    """Most clients listen only once they have sent everything. So the rest is read, up to a point, and dropped."""
    await answer(send, refusal, more=True)
    drained, more = 0, True
    while more and drained < DRAINED:
        message = await receive()
        drained += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.body", "body": b""})


def gateway_error(said: Answer) -> str | None:
    """The gateway response that stands for an error of the emulator's gateway, not of a function."""
    is_error = said.status >= HTTPStatus.BAD_REQUEST and said.body.startswith(b'{"message"')
    if not is_error or said.header(b"x-request-id") is not None:
        return None
    known = {502: "INTEGRATION_FAILURE", 504: "INTEGRATION_TIMEOUT", 429: "THROTTLED"}
    is_ours = said.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return known.get(said.status) or ("DEFAULT_5XX" if is_ours else "DEFAULT_4XX")


def shown(headers: Headers) -> Headers:
    """The function's headers, without those of the emulator."""
    own = (b"date", b"server", *HOP_BY_HOP)
    return [pair for pair in headers if pair[0] not in own and not pair[0].startswith((b"x-amzn-", b"x-amz-"))]


def stream_app(endpoint: str, function: str, folder: Path) -> App:
    """The streaming function's ASGI app, in this process, with the configuration it was deployed with."""
    config = client("lambda", endpoint).get_function_configuration(FunctionName=function)
    os.environ.update(config["Environment"]["Variables"])
    os.environ.update(KEYS, AWS_ENDPOINT_URL=endpoint, AWS_REGION=KEYS["AWS_DEFAULT_REGION"])
    sys.path.insert(0, str(folder))
    app: App = importlib.import_module("app").app
    return app


def listen(port: int) -> socket.socket:
    """Named as TCP: asyncio sends small packets at once only on a socket that says so, else 40 ms late."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(512)
    return listener


def main() -> None:
    endpoint, path = os.environ["FERMATA_ENDPOINT"], Path(os.environ.get("FERMATA_TEMPLATE", template.TEMPLATE))
    document = template.load(path)
    gateway = Gateway(document)
    (name,) = gateway.stream_functions()
    folder = path.parent / document["Resources"][name]["Properties"]["CodeUri"]
    stream = stream_app(endpoint, os.environ["FERMATA_STREAM"], folder)
    upstream = Upstream(endpoint, os.environ["FERMATA_API"], INTEGRATION_SECONDS)
    app = FrontDoor(gateway, stream, upstream, Bucket(endpoint))
    listener = listen(int(os.environ.get("FERMATA_PORT", "8787")))
    config = uvicorn.Config(
        app,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        log_level="warning",
        timeout_graceful_shutdown=1,
    )
    announce(f"http://127.0.0.1:{listener.getsockname()[1]}")
    uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
