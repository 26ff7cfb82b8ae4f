"""`python -m local.front_door.app`: the address of the local service, in the place of API Gateway's own.

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
from local.aws_clients import CREDENTIALS_ENVIRONMENT, get_client
from local.front_door.api_gateway import (
    INTEGRATION_TIMEOUT_SECONDS,
    MAX_BODY_BYTES,
    ApiGateway,
    GatewayResponse,
    fits_lambda_event,
)
from local.front_door.s3_uploads import BUCKET_PATH_PREFIX, ENTITY_TOO_LARGE, MAX_UPLOAD_BYTES, S3Uploads
from local.front_door.upstream_client import UpstreamClient, UpstreamResponse, UpstreamUnavailableError
from local.parent_watch import announce_ready

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

VALID_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:=+/-]{1,128}")
HOP_BY_HOP_HEADERS = frozenset(
    (b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection", b"expect")
)
MAX_DRAINED_BYTES = 64 * 1024 * 1024
"""How much of a refused body is still read and thrown away, so that its sender gets to hear why."""


class BodyTooLargeError(Exception):
    """The body passes API Gateway's limit, or Lambda's; `is_read` when all of it has come."""

    def __init__(self, *, is_read: bool = False) -> None:
        super().__init__()
        self.is_read = is_read


class FrontDoor:
    """The ASGI app: find the route, hold the limits, then stream here or pass on."""

    def __init__(self, gateway: ApiGateway, stream: App, upstream: UpstreamClient, bucket: S3Uploads) -> None:
        self._gateway = gateway
        self._bucket = bucket
        self._stream = stream
        self._upstream = upstream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"].startswith(f"{BUCKET_PATH_PREFIX}/"):
            await self._into_the_bucket(scope, receive, send)
            return
        host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
        scope = prepare_scope(scope)
        request_id = dict(scope["headers"])[b"x-request-id"].decode()
        route = self._gateway.find_route(scope["method"], scope["path"])
        if route is None:
            await send_gateway_response(
                send, self._gateway.gateway_response("MISSING_AUTHENTICATION_TOKEN", request_id)
            )
            return
        try:
            body = await read_body(scope, receive)
        except BodyTooLargeError as error:
            refusal = self._gateway.gateway_response("REQUEST_TOO_LARGE", request_id)
            await (
                send_gateway_response(send, refusal)
                if error.is_read
                else send_gateway_response_and_drain(receive, send, refusal)
            )
            return
        if body is None:
            return
        if route.is_streamed:
            await self._stream(scope, replay_body(body, receive), send)
        else:
            await self._pass_on(scope, body, send, request_id, host)

    async def _into_the_bucket(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await read_limited_body(scope, receive, MAX_UPLOAD_BYTES)
        except BodyTooLargeError as error:
            refusal = GatewayResponse(*ENTITY_TOO_LARGE)
            await (
                send_gateway_response(send, refusal)
                if error.is_read
                else send_gateway_response_and_drain(receive, send, refusal)
            )
            return
        if body is not None:
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
            path, query = (
                scope["raw_path"].decode().removeprefix(BUCKET_PATH_PREFIX),
                scope["query_string"].decode("latin-1"),
            )
            said = await self._bucket.handle_upload(scope["method"], path, query, headers, body)
            await send_gateway_response(send, GatewayResponse(*said))

    async def _pass_on(self, scope: Scope, body: bytes, send: Send, request_id: str, host: str) -> None:
        try:
            said = await self._upstream.send_request(scope, body)
        except TimeoutError:
            await send_gateway_response(send, self._gateway.gateway_response("INTEGRATION_TIMEOUT", request_id))
            return
        except UpstreamUnavailableError:
            await send_gateway_response(send, self._gateway.gateway_response("INTEGRATION_FAILURE", request_id))
            return
        if kind := gateway_error_kind(said):
            await send_gateway_response(
                send, self._gateway.gateway_response(kind, request_id, json.loads(said.body)["message"])
            )
            return
        told = self._bucket.rewrite_signed_urls(said.body, host)
        headers = visible_headers(said.headers)
        if told != said.body:
            headers = [pair for pair in headers if pair[0] != b"content-length"]
            headers.append((b"content-length", str(len(told)).encode()))
        if said.get_header(b"x-request-id") is None:
            headers.append((b"x-request-id", request_id.encode()))
        await send({"type": "http.response.start", "status": said.status, "headers": headers})
        await send({"type": "http.response.body", "body": told})


def prepare_scope(scope: Scope) -> Scope:
    """The request as a function may see it: with an id, who sent it, and nothing that only the platform may say."""
    given: Headers = [(name.lower(), value) for name, value in scope["headers"]]
    offered = next((value for name, value in given if name == b"x-request-id"), b"")
    request_id = offered if VALID_REQUEST_ID.fullmatch(offered) else str(uuid.uuid4()).encode()
    dropped = {b"x-request-id", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-port"} | HOP_BY_HOP_HEADERS
    kept = [pair for pair in given if pair[0] not in dropped and not pair[0].startswith(b"x-amzn-")]
    host, _ = scope.get("client") or ("127.0.0.1", 0)
    added = [(b"x-request-id", request_id), (b"x-forwarded-for", host.encode()), (b"x-forwarded-proto", b"http")]
    return {**scope, "headers": kept + added}


async def read_body(scope: Scope, receive: Receive) -> bytes | None:
    """The whole body, at most what the platform takes; None when the caller went away while sending it."""
    whole = await read_limited_body(scope, receive, MAX_BODY_BYTES)
    if whole is not None and not fits_lambda_event(scope["headers"], scope["query_string"], whole):
        raise BodyTooLargeError(is_read=True)
    return whole


async def read_limited_body(scope: Scope, receive: Receive, max_bytes: int) -> bytes | None:
    declared = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    if int(declared) > max_bytes:
        raise BodyTooLargeError
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > max_bytes:
            raise BodyTooLargeError(is_read=not more)
    return bytes(body)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """A body that was read, handed on as if it came just now; then whatever else happens to the connection."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return pending.pop() if pending else await receive()

    return again


async def send_gateway_response(send: Send, refusal: GatewayResponse, *, more: bool = False) -> None:
    headers = [(name.encode(), value.encode()) for name, value in refusal.headers.items()]
    headers.append((b"content-length", str(len(refusal.body)).encode()))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": refusal.body, "more_body": more})


async def send_gateway_response_and_drain(receive: Receive, send: Send, refusal: GatewayResponse) -> None:
    """Most clients listen only once they have sent everything. So the rest is read, up to a point, and dropped."""
    await send_gateway_response(send, refusal, more=True)
    drained, more = 0, True
    while more and drained < MAX_DRAINED_BYTES:
        message = await receive()
        drained += len(message.get("body", b""))
        more = message.get("more_body", False)
    await send({"type": "http.response.body", "body": b""})


def gateway_error_kind(said: UpstreamResponse) -> str | None:
    """The gateway response that stands for an error of the emulator's gateway, not of a function."""
    is_error = said.status >= HTTPStatus.BAD_REQUEST and said.body.startswith(b'{"message"')
    if not is_error or said.get_header(b"x-request-id") is not None:
        return None
    known = {502: "INTEGRATION_FAILURE", 504: "INTEGRATION_TIMEOUT", 429: "THROTTLED"}
    is_ours = said.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return known.get(said.status) or ("DEFAULT_5XX" if is_ours else "DEFAULT_4XX")


def visible_headers(headers: Headers) -> Headers:
    """The function's headers, without those of the emulator."""
    own = (b"date", b"server", *HOP_BY_HOP_HEADERS)
    return [pair for pair in headers if pair[0] not in own and not pair[0].startswith((b"x-amzn-", b"x-amz-"))]


def load_stream_app(endpoint: str, function: str, folder: Path) -> App:
    """The streaming function's ASGI app, in this process, with the configuration it was deployed with."""
    config = get_client("lambda", endpoint).get_function_configuration(FunctionName=function)
    os.environ.update(config["Environment"]["Variables"])
    os.environ.update(
        CREDENTIALS_ENVIRONMENT, AWS_ENDPOINT_URL=endpoint, AWS_REGION=CREDENTIALS_ENVIRONMENT["AWS_DEFAULT_REGION"]
    )
    sys.path.insert(0, str(folder))
    app: App = importlib.import_module("app").app
    return app


def open_listener(port: int) -> socket.socket:
    """Named as TCP: asyncio sends small packets at once only on a socket that says so, else 40 ms late."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(512)
    return listener


def main() -> None:
    endpoint, path = os.environ["FERMATA_ENDPOINT"], Path(os.environ.get("FERMATA_TEMPLATE", template.TEMPLATE_PATH))
    document = template.load_template(path)
    gateway = ApiGateway(document)
    (name,) = gateway.streaming_functions()
    folder = path.parent / document["Resources"][name]["Properties"]["CodeUri"]
    stream = load_stream_app(endpoint, os.environ["FERMATA_STREAM"], folder)
    upstream = UpstreamClient(endpoint, os.environ["FERMATA_API"], INTEGRATION_TIMEOUT_SECONDS)
    app = FrontDoor(gateway, stream, upstream, S3Uploads(endpoint))
    listener = open_listener(int(os.environ.get("FERMATA_PORT", "8787")))
    config = uvicorn.Config(
        app,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        log_level="warning",
        timeout_graceful_shutdown=1,
    )
    announce_ready(f"http://127.0.0.1:{listener.getsockname()[1]}")
    uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
