"""Route requests as API Gateway does: refuse them, stream the answer, or pass them on to the emulator.

The emulator routes but cannot stream, and accepts bodies of any size. The front door stands before it with the
routes, limits and gateway responses of template.yaml, and serves the streaming function's app in its own process.
"""

import json
import re
import uuid

from local.browser_check import decode_headers
from local.front_door.api_gateway_routing import ApiGateway, GatewayResponse
from local.front_door.asgi import App, Headers, Receive, Scope, Send, find_header
from local.front_door.oversized_results import is_result_of_browser, shorten_result
from local.front_door.request_bodies import (
    BodyTooLargeError,
    read_api_body,
    read_limited_body,
    read_rest_of_body,
    replay_body,
)
from local.front_door.responses import (
    HOP_BY_HOP_HEADERS,
    MAX_DRAINED_BYTES,
    gateway_error_type,
    remove_emulator_headers,
    replace_content_length,
    send_gateway_response,
    send_gateway_response_and_drain,
)
from local.front_door.s3_uploads import BUCKET_PATH_PREFIX, MAX_UPLOAD_BYTES, S3Uploads
from local.front_door.upstream_client import UpstreamClient, UpstreamUnavailableError

VALID_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:=+/-]{1,128}")
PLATFORM_HEADERS = frozenset((b"x-request-id", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-port"))
"""Headers that only the platform may set."""


class FrontDoor:
    """The ASGI app."""

    def __init__(self, gateway: ApiGateway, streaming_app: App, upstream: UpstreamClient, uploads: S3Uploads) -> None:
        self._gateway = gateway
        self._streaming_app = streaming_app
        self._upstream = upstream
        self._uploads = uploads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["path"].startswith(f"{BUCKET_PATH_PREFIX}/"):
            await self._upload(scope, receive, send)
        else:
            await self._call_api(prepare_scope(scope), receive, send)

    async def _call_api(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._gateway.find_route(scope["method"], scope["path"])
        if route is None:
            await self._send_error(send, "MISSING_AUTHENTICATION_TOKEN", scope)
            return
        try:
            body = await read_api_body(scope, receive)
        except BodyTooLargeError as error:
            await self._handle_oversized_request(scope, receive, send, error)
            return
        if body is None:
            return
        if route.is_streamed:
            await self._streaming_app(scope, replay_body(body, receive), send)
        else:
            await self._pass_on(scope, body, send)

    async def _handle_oversized_request(
        self, scope: Scope, receive: Receive, send: Send, error: BodyTooLargeError
    ) -> None:
        """Refuse it; or shorten it, if it is a tool result of a browser (decision 0215)."""
        is_read = error.is_read
        if is_result_of_browser(scope):
            body = await read_rest_of_body(error, receive, MAX_DRAINED_BYTES)
            if body is not None and (shortened := shorten_result(body)) is not None:
                await self._pass_on(scope, shortened, send)
                return
            is_read = True
        response = self._gateway.gateway_response("REQUEST_TOO_LARGE", request_id(scope))
        await _refuse_body(receive, send, response, is_read=is_read)

    async def _upload(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = decode_headers(scope["headers"])
        try:
            body = await read_limited_body(scope, receive, MAX_UPLOAD_BYTES)
        except BodyTooLargeError as error:
            response = self._uploads.refuse_oversized_upload(headers)
            await _refuse_body(receive, send, GatewayResponse(*response), is_read=error.is_read)
            return
        if body is None:
            return
        path = scope["raw_path"].decode().removeprefix(BUCKET_PATH_PREFIX)
        query = scope["query_string"].decode("latin-1")
        response = await self._uploads.handle_upload(scope["method"], path, query, headers, body)
        await send_gateway_response(send, GatewayResponse(*response))

    async def _pass_on(self, scope: Scope, body: bytes, send: Send) -> None:
        try:
            response = await self._upstream.send_request(scope, body)
        except TimeoutError:
            await self._send_error(send, "INTEGRATION_TIMEOUT", scope)
            return
        except UpstreamUnavailableError:
            await self._send_error(send, "INTEGRATION_FAILURE", scope)
            return
        if error_type := gateway_error_type(response):
            await self._send_error(send, error_type, scope, json.loads(response.body)["message"])
            return
        host = (find_header(scope["headers"], b"host") or b"").decode("latin-1")
        response_body = self._uploads.rewrite_signed_urls(response.body, host)
        headers = self._uploads.rewrite_location(remove_emulator_headers(response.headers), host)
        if response_body != response.body:
            headers = replace_content_length(headers, len(response_body))
        if response.get_header(b"x-request-id") is None:
            headers.append((b"x-request-id", request_id(scope).encode()))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        await send({"type": "http.response.body", "body": response_body})

    async def _send_error(self, send: Send, response_type: str, scope: Scope, message: str = "") -> None:
        response = self._gateway.gateway_response(response_type, request_id(scope), message)
        await send_gateway_response(send, response)


def prepare_scope(scope: Scope) -> Scope:
    """Set what the platform sets: the request's id and its sender. Remove platform headers that the caller has sent."""
    received: Headers = [(name.lower(), value) for name, value in scope["headers"]]
    offered_id = find_header(received, b"x-request-id") or b""
    accepted_id = offered_id if VALID_REQUEST_ID.fullmatch(offered_id) else str(uuid.uuid4()).encode()
    removed = PLATFORM_HEADERS | HOP_BY_HOP_HEADERS
    kept = [(name, value) for name, value in received if name not in removed and not name.startswith(b"x-amzn-")]
    client_address, _ = scope.get("client") or ("127.0.0.1", 0)
    added = [
        (b"x-request-id", accepted_id),
        (b"x-forwarded-for", client_address.encode()),
        (b"x-forwarded-proto", b"http"),
    ]
    return {**scope, "headers": kept + added}


def request_id(scope: Scope) -> str:
    """Get the id that `prepare_scope` has set."""
    return (find_header(scope["headers"], b"x-request-id") or b"").decode()


async def _refuse_body(receive: Receive, send: Send, response: GatewayResponse, *, is_read: bool) -> None:
    if is_read:
        await send_gateway_response(send, response)
    else:
        await send_gateway_response_and_drain(receive, send, response)
