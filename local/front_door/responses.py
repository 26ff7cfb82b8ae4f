"""Send responses of the gateway itself, and clean up those of the emulator."""

from http import HTTPStatus

from local.front_door.api_gateway_routing import GatewayResponse
from local.front_door.asgi import Headers, Receive, Send
from local.front_door.upstream_client import UpstreamResponse

HOP_BY_HOP_HEADERS = frozenset(
    (b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection", b"expect")
)
MAX_DRAINED_BYTES = 64 * 1024 * 1024
"""How much of a refused body is read and thrown away."""
ERROR_TYPES = {502: "INTEGRATION_FAILURE", 504: "INTEGRATION_TIMEOUT", 429: "THROTTLED"}
"""Gateway response types by status of the emulator's API Gateway."""


async def send_gateway_response(send: Send, response: GatewayResponse, *, more_body: bool = False) -> None:
    headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
    headers.append((b"content-length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": more_body})


async def send_gateway_response_and_drain(receive: Receive, send: Send, response: GatewayResponse) -> None:
    """Respond, then read and drop the rest of the body: most clients read only after they have sent everything."""
    await send_gateway_response(send, response, more_body=True)
    drained_bytes = 0
    more_body = True
    while more_body and drained_bytes < MAX_DRAINED_BYTES:
        message = await receive()
        drained_bytes += len(message.get("body", b""))
        more_body = message.get("more_body", False)
    await send({"type": "http.response.body", "body": b""})


def gateway_error_type(response: UpstreamResponse) -> str | None:
    """Get the gateway response type for an error of the emulator's own gateway; None for a function's response."""
    is_error = response.status >= HTTPStatus.BAD_REQUEST and response.body.startswith(b'{"message"')
    if not is_error or response.get_header(b"x-request-id") is not None:
        return None
    is_server_error = response.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return ERROR_TYPES.get(response.status) or ("DEFAULT_5XX" if is_server_error else "DEFAULT_4XX")


def remove_emulator_headers(headers: Headers) -> Headers:
    """Keep the headers that the function has set."""
    emulator_headers = (b"date", b"server", *HOP_BY_HOP_HEADERS)
    return [
        (name, value)
        for name, value in headers
        if name not in emulator_headers and not name.startswith((b"x-amzn-", b"x-amz-"))
    ]


def replace_content_length(headers: Headers, length: int) -> Headers:
    kept = [(name, value) for name, value in headers if name != b"content-length"]
    return [*kept, (b"content-length", str(length).encode())]
