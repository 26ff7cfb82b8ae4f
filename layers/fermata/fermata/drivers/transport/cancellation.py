"""The socket side of a line: every wait on it has an end, and a pull on the cord ends it at once."""

import contextlib
import socket
import threading
import time
from collections import deque
from typing import Any

import httpcore

from fermata.drivers.transport.url_guard import UrlGuard

CONNECT_ATTEMPT_SECONDS = 0.75
"""A connection attempt cannot be interrupted, so it is made in attempts this short."""


class CancelScope:
    """Shared by the thread that reads and the one that pulls."""

    def __init__(self) -> None:
        self.deadline = float("inf")
        self._pulled = threading.Event()
        self._lock = threading.Lock()
        self._plugs: set[socket.socket] = set()

    @property
    def is_cancelled(self) -> bool:
        return self._pulled.is_set()

    def reset(self) -> None:
        self._pulled.clear()

    def cancel(self) -> None:
        with self._lock:
            self._pulled.set()
            for plug in self._plugs:
                _shut_down(plug)

    def sleep(self, seconds: float) -> bool:
        """True when the sleep was cut short by a pull."""
        return self._pulled.wait(seconds)

    def remaining_timeout(self, requested_seconds: float | None) -> float:
        """How long the next step may wait."""
        if self.is_cancelled:
            raise httpcore.ReadError("the cord was pulled")
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("out of time")
        return left if requested_seconds is None else min(requested_seconds, left)

    def register_socket(self, connection: socket.socket) -> socket.socket:
        """A second handle on a connection: it reaches the same wire, whatever TLS makes of the first."""
        handle = connection.dup()
        with self._lock:
            self._plugs.add(handle)
            if self.is_cancelled:
                _shut_down(handle)
        return handle

    def unregister_socket(self, handle: socket.socket) -> None:
        with self._lock:
            self._plugs.discard(handle)
            handle.close()


def _shut_down(handle: socket.socket) -> None:
    with contextlib.suppress(OSError):
        handle.shutdown(socket.SHUT_RDWR)


class CancellableNetworkBackend(httpcore.NetworkBackend):
    """Opens connections that hang on a cord, only to where the guard lets them go."""

    def __init__(self, cord: CancelScope, guard: UrlGuard | None) -> None:
        self._cord = cord
        self._guard = guard
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.NetworkStream:
        until = time.monotonic() + self._cord.remaining_timeout(timeout)
        addresses = deque(self._addresses(host, port))
        while True:
            patience = self._cord.remaining_timeout(CONNECT_ATTEMPT_SECONDS)
            try:
                stream = self._plain.connect_tcp(addresses[0], port, patience, local_address, socket_options)
            except httpcore.ConnectTimeout:
                addresses.rotate(-1)
                if time.monotonic() >= until:
                    raise
            except httpcore.ConnectError:
                addresses.popleft()
                if not addresses:
                    raise
            else:
                return _CancellableStream(
                    stream, self._cord, self._cord.register_socket(stream.get_extra_info("socket"))
                )

    def _addresses(self, host: str, port: int) -> tuple[str, ...]:
        """Resolved once: what was looked at is what is connected to. TLS still asks for `host` by its name."""
        if self._guard is None:
            return (host,)
        try:
            return self._guard.resolve_allowed_addresses(host, port)
        except OSError as unknown:
            raise httpcore.ConnectError(str(unknown)) from unknown

    def sleep(self, seconds: float) -> None:
        self._cord.sleep(seconds)


class _CancellableStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, cord: CancelScope, plug: socket.socket) -> None:
        self._stream = stream
        self._cord = cord
        self._plug = plug

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._cord.remaining_timeout(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._cord.remaining_timeout(timeout))

    def close(self) -> None:
        self._stream.close()
        self._cord.unregister_socket(self._plug)

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        try:
            secured = self._stream.start_tls(ssl_context, server_hostname, self._cord.remaining_timeout(timeout))
        except (httpcore.NetworkError, httpcore.TimeoutException):
            self.close()  # the pool does not know this connection yet
            raise
        return _CancellableStream(secured, self._cord, self._plug)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
