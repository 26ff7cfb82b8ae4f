"""The wire to a provider: one kept-alive connection, bounded in time, that another thread may hang up."""

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpcore
import httpx

from fermata.domain.errors import InvalidRequest, ProviderError
from fermata.drivers.transport.cancellation import CancellableNetworkBackend, CancelScope
from fermata.drivers.transport.url_guard import UrlGuard

CONNECT_TIMEOUT_SECONDS = 10.0
KEEPALIVE_SECONDS = 60.0
MAX_DRAIN_SECONDS = 0.25


@dataclass(frozen=True)
class ProviderResponse:
    """A provider's response: its body comes as it arrives."""

    status: int
    headers: Mapping[str, str]
    chunks: Iterator[bytes]

    def read_body(self, limit: int = 65536) -> bytes:
        """The start of a body that is no stream, enough to understand an error."""
        body = b""
        for chunk in self.chunks:
            body += chunk
            if len(body) >= limit:
                break
        return body[:limit]


class ProviderConnection:
    """One request at a time, from one thread; `hang_up` may come from any other at any moment.

    A stall (no byte for `stall_seconds`), a call longer than `total_seconds` and a hang-up each end the request with a
    `ProviderError`. Afterwards the line serves the next one. With a guard, it goes only where that lets it.
    """

    def __init__(
        self, *, stall_seconds: float = 120.0, total_seconds: float = 480.0, guard: UrlGuard | None = None
    ) -> None:
        self._stall = stall_seconds
        self._total = total_seconds
        self._guard = guard
        self._cord = CancelScope()
        self._lock = threading.Lock()
        self._depth = 0
        timeout = httpx.Timeout(stall_seconds, connect=CONNECT_TIMEOUT_SECONDS)
        # No cookies: a line serves one tenant after another, and what one was told is none of the next one's.
        jar = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        self._client = httpx.Client(transport=_Transport(self._cord, guard), timeout=timeout, cookies=jar)

    @contextlib.contextmanager
    def call_scope(self) -> Iterator[None]:
        """One call, which may take several requests with waits in between: `total_seconds` count from here.

        A hang-up outside of a call has nothing to stop, and does not touch the next one.
        """
        with self._lock:
            if not self._depth:
                self._cord.reset()
                self._cord.deadline = time.monotonic() + self._total
            self._depth += 1
        try:
            yield
        finally:
            with self._lock:
                self._depth -= 1

    @contextlib.contextmanager
    def post(self, label: str, url: str, headers: Mapping[str, str], body: bytes) -> Iterator[ProviderResponse]:
        """Send one request; what fails on the way is told under the provider's `label`."""
        with self._send_request(label, "POST", url, headers, body) as answer:
            yield answer

    @contextlib.contextmanager
    def get(self, label: str, url: str, headers: Mapping[str, str]) -> Iterator[ProviderResponse]:
        """Like `post`."""
        with self._send_request(label, "GET", url, headers, None) as answer:
            yield answer

    @contextlib.contextmanager
    def _send_request(
        self, label: str, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> Iterator[ProviderResponse]:
        with self.call_scope(), self._provider_errors(label):
            if self._guard is not None:
                self._guard.check_url(url)
            with self._client.stream(method, url, headers=dict(headers), content=body) as response:
                yield ProviderResponse(response.status_code, response.headers, self._iter_chunks(response))

    def sleep(self, seconds: float) -> None:
        """Sleep between two tries of a call; a hang-up ends both."""
        with self.call_scope():
            if self._cord.sleep(seconds):
                raise _aborted_error()

    def remaining_seconds(self) -> float:
        """Seconds the call under way may still take."""
        return self._cord.deadline - time.monotonic() if self._depth else self._total

    def abort(self) -> bool:
        """Stop the call under way, wherever it is. False when there is none."""
        with self._lock:
            if self._depth:
                self._cord.cancel()
            return bool(self._depth)

    def drain_response(self, response: ProviderResponse) -> None:
        """After the last word: read on to the end of the response, so that the connection can be used again."""
        deadline = self._cord.deadline
        self._cord.deadline = min(deadline, time.monotonic() + MAX_DRAIN_SECONDS)
        with contextlib.suppress(httpx.TransportError, ProviderError):
            for _ in response.chunks:
                pass
        self._cord.deadline = deadline

    def close(self) -> None:
        self._client.close()

    def _iter_chunks(self, response: httpx.Response) -> Iterator[bytes]:
        yield from response.iter_raw()
        if self._cord.is_cancelled:  # a body without a length ends in silence when its connection is shut
            raise _aborted_error()

    @contextlib.contextmanager
    def _provider_errors(self, label: str) -> Iterator[None]:
        try:
            yield
        except InvalidRequest as refusal:
            raise ProviderError(
                "provider_request", f"{label} request failed: {refusal.message}", retryable=False
            ) from None
        except (httpx.TransportError, httpx.InvalidURL) as problem:
            raise self._to_provider_error(label, problem) from problem

    def _to_provider_error(self, label: str, problem: Exception) -> ProviderError:
        if self._cord.is_cancelled:
            return _aborted_error()
        if self.remaining_seconds() <= 0:
            return _retryable_error(
                "provider_stalled", f"{label} request failed: no whole answer within {self._total:g} s."
            )
        match problem:
            case httpx.ConnectError() | httpx.ConnectTimeout():
                return _retryable_error("provider_unreachable", f"{label} request failed: it could not be reached.")
            case httpx.TimeoutException():
                return _retryable_error(
                    "provider_stalled", f"{label} request failed: it sent nothing for {self._stall:g} s."
                )
            case httpx.UnsupportedProtocol() | httpx.InvalidURL() | httpx.LocalProtocolError():
                message = f"{label} request failed: check its address and key in /admin/ai/providers."
                return ProviderError("provider_request", message, retryable=False)
            case _:
                return _retryable_error("provider_unreachable", f"{label} request failed: the connection was lost.")


def _aborted_error() -> ProviderError:
    return ProviderError("provider_closed", "The request was stopped.", retryable=False)


def _retryable_error(code: str, message: str) -> ProviderError:
    return ProviderError(code, message, retryable=True)


class _Transport(httpx.HTTPTransport):
    """httpx's own transport, over a pool whose sockets hang on our cord."""

    def __init__(self, cord: CancelScope, guard: UrlGuard | None) -> None:
        # Not super().__init__(): it would build a pool that opens its sockets out of our reach.
        self._pool = httpcore.ConnectionPool(
            max_keepalive_connections=1,
            keepalive_expiry=KEEPALIVE_SECONDS,
            network_backend=CancellableNetworkBackend(cord, guard),
        )
