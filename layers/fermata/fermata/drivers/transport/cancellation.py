"""Open sockets whose every wait has a deadline and can be cancelled from another thread (decision 0061)."""

import contextlib
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import httpcore

from fermata.drivers.transport.url_guard import UrlGuard

CONNECT_ATTEMPT_SECONDS = 0.75
"""A connection attempt cannot be interrupted, so it consists of attempts this short."""


class CancelScope:
    """Cancel the waits of one call; shared by the thread that waits and the thread that cancels."""

    def __init__(self) -> None:
        self.deadline = float("inf")
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self.before_wait: Callable[[], object] | None = None
        """Called once, by whoever reads next, if nothing has arrived."""

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def reset(self) -> None:
        self._cancelled.clear()
        self.before_wait = None

    def announce_wait(self) -> None:
        """Call `before_wait`, and forget it."""
        action, self.before_wait = self.before_wait, None
        if action is not None:
            action()

    def cancel(self) -> None:
        """Shut every registered socket down, which ends reads and writes at once."""
        with self._lock:
            self._cancelled.set()
            for handle in self._sockets:
                _shut_down(handle)

    def sleep(self, seconds: float) -> bool:
        """Return True if the sleep was cut short by a cancellation."""
        return self._cancelled.wait(seconds)

    def remaining_timeout(self, requested_seconds: float | None) -> float:
        """Return the seconds that the next step may wait.

        Raises:
            httpcore.ReadError: The call was cancelled.
            httpcore.ReadTimeout: The deadline has passed.
        """
        if self.is_cancelled:
            raise httpcore.ReadError("cancelled")
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise httpcore.ReadTimeout("out of time")
        return remaining if requested_seconds is None else min(requested_seconds, remaining)

    def register_socket(self, connection: socket.socket) -> socket.socket:
        """Return a duplicate handle to unregister later; it reaches the same connection when TLS wraps the first."""
        handle = connection.dup()
        with self._lock:
            self._sockets.add(handle)
            if self.is_cancelled:
                _shut_down(handle)
        return handle

    def unregister_socket(self, handle: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(handle)
            handle.close()


def _shut_down(handle: socket.socket) -> None:
    with contextlib.suppress(OSError):
        handle.shutdown(socket.SHUT_RDWR)


class CancellableNetworkBackend(httpcore.NetworkBackend):
    """Open connections that a `CancelScope` can end, and only to addresses that the guard allows."""

    def __init__(self, scope: CancelScope, guard: UrlGuard | None) -> None:
        self._scope = scope
        self._guard = guard
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.NetworkStream:
        deadline = time.monotonic() + self._scope.remaining_timeout(timeout)
        addresses = deque(self._resolve(host, port))
        while True:
            seconds = self._scope.remaining_timeout(CONNECT_ATTEMPT_SECONDS)
            try:
                stream = self._backend.connect_tcp(addresses[0], port, seconds, local_address, socket_options)
            except httpcore.ConnectTimeout:
                addresses.rotate(-1)
                if time.monotonic() >= deadline:
                    raise
            except httpcore.ConnectError:
                addresses.popleft()
                if not addresses:
                    raise
            else:
                handle = self._scope.register_socket(stream.get_extra_info("socket"))
                return _CancellableStream(stream, self._scope, handle)

    def _resolve(self, host: str, port: int) -> tuple[str, ...]:
        """Resolve once, so that the checked addresses are the ones to connect to (decision 0041).

        TLS still asks for `host` by its name.
        """
        if self._guard is None:
            return (host,)
        try:
            return self._guard.resolve_allowed_addresses(host, port)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error

    def sleep(self, seconds: float) -> None:
        self._scope.sleep(seconds)


class _CancellableStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, scope: CancelScope, handle: socket.socket) -> None:
        self._stream = stream
        self._scope = scope
        self._handle = handle

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._scope.before_wait is not None and not self.get_extra_info("is_readable"):
            self._scope.announce_wait()
        return self._stream.read(max_bytes, self._scope.remaining_timeout(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._scope.remaining_timeout(timeout))

    def close(self) -> None:
        self._stream.close()
        self._scope.unregister_socket(self._handle)

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            stream = self._stream.start_tls(ssl_context, server_hostname, self._scope.remaining_timeout(timeout))
        except (httpcore.NetworkError, httpcore.TimeoutException):
            self.close()  # the pool does not know this connection yet
            raise
        return _CancellableStream(stream, self._scope, self._handle)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
