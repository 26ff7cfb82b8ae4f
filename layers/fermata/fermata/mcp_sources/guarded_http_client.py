"""Send the requests of the MCP package over connections whose every address is checked (decision 0374).

The package asks for a client of its own HTTP library. This one resolves each host itself, connects only to addresses
that the guard allows, reads no more than a limit, and decodes nothing.
"""

import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import anyio.to_thread
import httpcore2
import httpx2

from fermata.aws.security_events import log_refused_address
from fermata.drivers.transport.http_connection import CONNECT_TIMEOUT_SECONDS, get_tls_context
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.signed_requests.signed_post import MAX_RESPONSE_BYTES

MAX_MCP_RESPONSE_BYTES = 4 * MAX_RESPONSE_BYTES
"""Images come as base64. A server-sent event is limited by the package."""


class ResponseRefused(httpx2.ProtocolError):
    """A response that is not read: too large, or compressed although that was not asked for."""


def open_guarded_http_client(
    headers: Mapping[str, str], *, seconds: float, is_local: bool, on_response: Any = None
) -> httpx2.AsyncClient:
    """Return a client for one server. It follows no redirect by itself, and the package none to another origin.

    Args:
        headers: Sent with each request.
        seconds: How long a response may stay silent.
        is_local: Whether this machine may be reached, in plain http and on any port.
        on_response: Called with each response, before its body is read.
    """
    guard = UrlGuard(loopback=is_local, on_refusal=log_refused_address)
    return httpx2.AsyncClient(
        transport=_GuardedTransport(guard),
        headers={**headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(seconds, connect=CONNECT_TIMEOUT_SECONDS),
        trust_env=False,
        follow_redirects=False,
        event_hooks={"response": [on_response]} if on_response else {},
    )


class _GuardedTransport(httpx2.AsyncHTTPTransport):
    """The library's own transport, over a pool that connects through the guard."""

    def __init__(self, guard: UrlGuard) -> None:
        # Not super().__init__(): it would build a pool that connects anywhere, and a TLS context of its own.
        self._guard = guard
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=get_tls_context(), network_backend=GuardedNetworkBackend(guard)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._guard.check_url(str(request.url))
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise ResponseRefused("it answered with compressed data, which was not asked for")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _LimitedStream(response.stream)
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_MCP_RESPONSE_BYTES:
                raise ResponseRefused(f"it answered with more than {MAX_MCP_RESPONSE_BYTES >> 20} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class GuardedNetworkBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections, and only to addresses that the guard allows."""

    def __init__(self, guard: UrlGuard) -> None:
        self._guard = guard
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that answers. TLS still asks for `host` by its name."""
        deadline = time.monotonic() + (CONNECT_TIMEOUT_SECONDS if timeout is None else timeout)
        failure: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in await self._resolve(host, port):
            seconds = max(0.1, deadline - time.monotonic())
            try:
                return await self._backend.connect_tcp(address, port, seconds, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _resolve(self, host: str, port: int) -> tuple[str, ...]:
        """Resolve once, so that the checked addresses are the ones to connect to (decision 0041)."""
        try:
            return await anyio.to_thread.run_sync(
                self._guard.resolve_allowed_addresses, host, port, abandon_on_cancel=True
            )
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)
