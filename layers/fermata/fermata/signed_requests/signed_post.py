"""Send one signed POST request to the server of a tenant: guarded address, limited time and size, no redirects."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fermata.aws.security_events import log_refused_address
from fermata.domain.errors import ProviderError
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.transport.connection_interface import ProviderConnection
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.signed_requests.signature import SIGNATURE_HEADERS, sign_request

if TYPE_CHECKING:
    from fermata.drivers.transport.http_connection import HttpConnection

MAX_RESPONSE_BYTES = 1024 * 1024
"""A larger response is refused: a model reads far less, and each call holds its response in memory."""
IDEMPOTENCY_HEADER = "idempotency-key"
RESERVED_HEADERS = SIGNATURE_HEADERS | {
    "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "cookie", "expect", "host",
    "http2-settings", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding",
    "upgrade", IDEMPOTENCY_HEADER,
}  # fmt: skip
"""Headers that a tenant cannot set: the service sends them, or they belong to the connection."""


@value_dataclass(frozen=True)
class SignedMessage:
    """A message and how it is sent.

    Attributes:
        message_id: Identifies the message; repetitions have the same. It is the Idempotency-Key too.
        headers: Further headers, such as the tenant's own.
    """

    url: str
    message_id: str
    payload: Mapping[str, Any]
    signing_secrets: Sequence[str]
    headers: Mapping[str, str]

    @property
    def body(self) -> bytes:
        """The payload as JSON. Characters beyond ASCII are escaped, so that lone surrogates do no harm."""
        return json.dumps(self.payload, separators=(",", ":"), ensure_ascii=True).encode()


@value_dataclass(frozen=True)
class SignedPostResponse:
    """The response. `body` is cut at one byte more than MAX_RESPONSE_BYTES."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status says that the message was taken."""
        return 200 <= self.status < 300

    @property
    def is_too_large(self) -> bool:
        """Whether the body has more than MAX_RESPONSE_BYTES, and was cut."""
        return len(self.body) > MAX_RESPONSE_BYTES


def send_signed_post(connection: ProviderConnection, message: SignedMessage, now: float) -> SignedPostResponse:
    """Send a message once.

    Args:
        connection: From `open_guarded_connection`.
        message: The message.
        now: Epoch seconds, which the signature covers.

    Raises:
        ProviderError: The address is not allowed, or no whole response arrived in time.
    """
    body = message.body
    headers = {
        **{name: value for name, value in message.headers.items() if name.lower() not in RESERVED_HEADERS},
        "content-type": "application/json",
        "accept": "application/json",
        "accept-encoding": "identity",
        IDEMPOTENCY_HEADER: message.message_id,
        **sign_request(message.signing_secrets, message.message_id, now, body),
    }
    with connection.post("endpoint", message.url, headers, body) as response:
        return SignedPostResponse(response.status, response.headers, response.read_body(MAX_RESPONSE_BYTES + 1))


@contextlib.contextmanager
def open_guarded_connection(*, loopback: bool, seconds: float) -> Iterator["HttpConnection"]:
    """Open a connection for one call, which checks the addresses that a name has at that moment (decision 0041).

    Args:
        loopback: Whether this machine may be reached, as on the local stage.
        seconds: The time limit of one request.
    """
    from fermata.drivers.transport.http_connection import HttpConnection  # functions that send nothing load no httpx

    guard = UrlGuard(loopback=loopback, on_refusal=log_refused_address)
    connection = HttpConnection(stall_seconds=seconds, total_seconds=seconds, guard=guard)
    try:
        yield connection
    finally:
        connection.close()


def is_transient_transport_error(error: ProviderError) -> bool:
    """Return whether a request that got no response may get one later: not where its address is refused."""
    return error.code in ("provider_unreachable", "provider_stalled")
