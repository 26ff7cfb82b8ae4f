"""Send requests to a provider over one kept-alive connection that another thread can abort (decision 0061)."""

import contextlib
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpcore
import httpx

from fermata.domain.errors import InvalidRequest, ProviderError
from fermata.drivers.adjustments import LearnedAdjustments
from fermata.drivers.retry_policy import Failure
from fermata.drivers.transport.cancellation import CancellableNetworkBackend, CancelScope
from fermata.drivers.transport.connection_interface import ProviderResponse
from fermata.drivers.transport.content_decoding import decode_chunks
from fermata.drivers.transport.url_guard import UrlGuard

CONNECT_TIMEOUT_SECONDS = 10.0
KEEPALIVE_SECONDS = 60.0
MAX_DRAIN_SECONDS = 0.25
_UNSENT_ERRORS = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
    httpx.LocalProtocolError,
)
REQUEST_NAME_HEADER = "x-fermata-request"
"""Which request of which turn this is. It is sent only to servers of the deployment itself (decision 0171)."""


class HttpConnection:
    """Send one request at a time, from one thread; any other thread may call `abort` at any moment.

    A stall (no byte for `stall_seconds`), a call longer than `total_seconds` and an abort each end the request with a
    `ProviderError`. Afterwards the connection serves the next request. With a guard, it goes only where the guard
    allows.

    Args:
        named_origins: Beginnings of the URLs at which requests carry their name (REQUEST_NAME_HEADER).
    """

    def __init__(
        self,
        *,
        stall_seconds: float = 120.0,
        total_seconds: float = 480.0,
        guard: UrlGuard | None = None,
        named_origins: Sequence[str] = (),
    ) -> None:
        self.learned_adjustments = LearnedAdjustments()
        """What servers have refused; providers read and extend it."""
        self._stall_seconds = stall_seconds
        self._total_seconds = total_seconds
        self._guard = guard
        self._named_origins = tuple(f"{origin.rstrip('/')}/" for origin in named_origins)
        self._scope = CancelScope()
        self._lock = threading.Lock()
        self._depth = 0
        timeout = httpx.Timeout(stall_seconds, connect=CONNECT_TIMEOUT_SECONDS)
        # No cookies: one connection serves many tenants, and a cookie of one must not reach the next.
        cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        self._client = httpx.Client(transport=_Transport(self._scope, guard), timeout=timeout, cookies=cookies)

    def open_sibling(self, seconds: float) -> "HttpConnection":
        """Open a connection to the same servers, for a request beside those of this one.

        Args:
            seconds: The limit of a request, and of the wait for its next byte.
        """
        sibling = HttpConnection(stall_seconds=seconds, total_seconds=seconds, guard=self._guard)
        sibling._named_origins = self._named_origins
        sibling.learned_adjustments = self.learned_adjustments
        return sibling

    @contextlib.contextmanager
    def call_scope(self) -> Iterator[None]:
        """Enclose one call, which may be several requests with delays in between; `total_seconds` count from here.

        Scopes nest, and the outermost counts. An abort outside of a call stops nothing, and not the next call either.
        """
        with self._lock:
            if not self._depth:
                self._scope.reset()
                self._scope.deadline = time.monotonic() + self._total_seconds
            self._depth += 1
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1

    @contextlib.contextmanager
    def post(
        self, label: str, url: str, headers: Mapping[str, str], body: bytes, *, request_name: str = ""
    ) -> Iterator[ProviderResponse]:
        """Send one POST request.

        Args:
            label: How error messages call the provider.
            request_name: `ModelRequest.name`, which is sent to `named_origins` only.

        Raises:
            ProviderError: The guard refused the URL, or the connection failed, stalled or was aborted.
        """
        if request_name and url.startswith(self._named_origins):
            headers = {**headers, REQUEST_NAME_HEADER: request_name}
        with self._send_request(label, "POST", url, headers, body) as response:
            yield response

    @contextlib.contextmanager
    def get(self, label: str, url: str, headers: Mapping[str, str]) -> Iterator[ProviderResponse]:
        """Send one GET request. It raises what `post` raises.

        Args:
            label: How error messages call the provider.
            url: The address, with its query.
            headers: Sent in addition to those of the client.
        """
        with self._send_request(label, "GET", url, headers, None) as response:
            yield response

    @contextlib.contextmanager
    def request(
        self, label: str, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Iterator[ProviderResponse]:
        """Send one request of any method. It raises what `post` raises.

        Args:
            label: How error messages call the server.
            method: The HTTP method.
            url: The address, with its query.
            headers: Sent in addition to those of the client.
            body: None for none.
        """
        with self._send_request(label, method, url, headers, body) as response:
            yield response

    @contextlib.contextmanager
    def _send_request(
        self, label: str, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> Iterator[ProviderResponse]:
        with self.call_scope(), self._provider_errors(label):
            if self._guard is not None:
                self._guard.check_url(url)
            with self._client.stream(method, url, headers=dict(headers), content=body) as response:
                chunks = decode_chunks(label, response.headers.get("content-encoding", ""), self._iter_chunks(response))
                yield ProviderResponse(response.status_code, response.headers, chunks)

    def sleep(self, seconds: float) -> None:
        """Wait between two requests of a call.

        Raises:
            ProviderError: The call was aborted meanwhile.
        """
        with self.call_scope():
            if self._scope.sleep(seconds):
                raise _aborted_error()

    def remaining_seconds(self) -> float:
        """Return the seconds that the current call may still take."""
        return self._scope.deadline - time.monotonic() if self._depth else self._total_seconds

    def run_before_wait(self, action: Callable[[], object]) -> bool:
        """Call `action` once, in the thread that reads the response, before it waits for more of it. Returns True."""
        self._scope.before_wait = action
        return True

    def abort(self) -> bool:
        """Stop the current call, wherever it is. Returns False if there is none."""
        with self._lock:
            if self._depth:
                self._scope.cancel()
            return bool(self._depth)

    def drain_response(self, response: ProviderResponse) -> None:
        """Read on to the end of the response, so that the connection can be reused; for a moment at most."""
        deadline = self._scope.deadline
        self._scope.deadline = min(deadline, time.monotonic() + MAX_DRAIN_SECONDS)
        with contextlib.suppress(httpx.TransportError, ProviderError):
            for _ in response.chunks:
                pass
        self._scope.deadline = deadline

    def close(self) -> None:
        """Close the sockets."""
        self._client.close()

    def _iter_chunks(self, response: httpx.Response) -> Iterator[bytes]:
        yield from response.iter_raw()
        if self._scope.is_cancelled:  # a body without a length ends without an error when its socket is shut down
            raise _aborted_error()

    @contextlib.contextmanager
    def _provider_errors(self, label: str) -> Iterator[None]:
        try:
            yield
        except InvalidRequest as error:
            refused = Failure.BAD_REQUEST.to_error(f"{label} request failed: {error.message}")
            refused.is_unsent = True
            raise refused from None
        except (httpx.TransportError, httpx.InvalidURL) as error:
            failure = self._to_provider_error(label, error)
            failure.is_unsent = isinstance(error, _UNSENT_ERRORS)
            raise failure from error

    def _to_provider_error(self, label: str, error: Exception) -> ProviderError:
        if self._scope.is_cancelled:
            return _aborted_error()
        if self.remaining_seconds() <= 0:
            message = f"{label} request failed: no whole answer within {self._total_seconds:g} s."
            return Failure.STALLED.to_error(message)
        match error:
            case httpx.ConnectError() | httpx.ConnectTimeout():
                return Failure.UNREACHABLE.to_error(f"{label} request failed: it could not be reached.")
            case httpx.TimeoutException():
                message = f"{label} request failed: it sent nothing for {self._stall_seconds:g} s."
                return Failure.STALLED.to_error(message)
            case httpx.UnsupportedProtocol() | httpx.InvalidURL() | httpx.LocalProtocolError():
                message = f"{label} request failed: check its address and key in /admin/ai/providers."
                return Failure.BAD_REQUEST.to_error(message)
            case _:
                return Failure.UNREACHABLE.to_error(f"{label} request failed: the connection was lost.")


def _aborted_error() -> ProviderError:
    return Failure.ABORTED.to_error("The request was stopped.")


class _Transport(httpx.HTTPTransport):
    """httpx's own transport, over a pool whose sockets belong to a `CancelScope`."""

    def __init__(self, scope: CancelScope, guard: UrlGuard | None) -> None:
        # Not super().__init__(): it would build a pool whose sockets cannot be cancelled.
        self._pool = _SharedTlsPool(
            max_keepalive_connections=1,
            keepalive_expiry=KEEPALIVE_SECONDS,
            network_backend=CancellableNetworkBackend(scope, guard),
        )


class _SharedTlsPool(httpcore.ConnectionPool):
    """A pool whose connections share the TLS context of the process. httpcore loads all certificates for each."""

    def create_connection(self, origin: httpcore.Origin) -> httpcore.ConnectionInterface:
        if origin.scheme == b"https":
            self._ssl_context = get_tls_context()
        return super().create_connection(origin)


@cache
def get_tls_context() -> ssl.SSLContext:
    """Return the TLS context of this process. Creating it takes as long as several rounds' work (decision 0247)."""
    return httpx.create_ssl_context(trust_env=False)
