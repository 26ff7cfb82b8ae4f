"""A tenant's content system on this machine, that says what a test tells it and remembers what it was asked.

with scripted_host() as host:
    host.says("GET tables", {"tables": []})
    host.says("GET users", status=503)
    context(host=host.opened)
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import jwt

from fermata.drivers.transport.url_guard import UrlGuard
from fermata.hosts.auth import HostCaller, sign_host_token
from fermata.hosts.client import (
    HOST_BUILD_SECONDS,
    HOST_READ_SECONDS,
    HostClient,
    HostConnectionPool,
    get_connection_pool,
)

HOST_SECRET = "a secret that only the host and the service know"
HOST_CALLER = HostCaller("bakery", "ada", frozenset({"ai.chat", "content.manage"}), "content", "turn-1")


@dataclass
class ReceivedRequest:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    port: int
    """Of whoever asked: the same for requests over one connection."""

    @property
    def claims(self) -> dict[str, Any]:
        """Of the token, verified as a host should, but for the time, which tests hold still."""
        token = self.headers["authorization"].removeprefix("Bearer ")
        claims: dict[str, Any] = jwt.decode(
            token,
            HOST_SECRET,
            algorithms=["HS256"],
            audience="host",
            options={"verify_exp": False, "verify_iat": False},
        )
        return claims


@dataclass
class ScriptedResponse:
    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hold: threading.Event | None = None
    """Its answer is not complete before this is set."""


class ScriptedHost(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        self.script: dict[str, list[ScriptedResponse]] = {}
        self.requests: list[ReceivedRequest] = []
        self.pools: dict[float, HostConnectionPool] = {}
        self.stall_seconds = 5.0
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/fermata"

    def script_response(self, wish: str, body: Any = None, status: int = 200, **how: Any) -> None:
        """From now on, or after what was ordered before; the last order stays. `bytes` go out as they are."""
        self.script.setdefault(wish, []).append(ScriptedResponse(body, status, **how))

    def open_client(self) -> HostClient:
        """As a turn of ERRAND's opens it; its stalls are short."""
        return HostClient(
            self.url, lambda: sign_host_token(HOST_CALLER, HOST_SECRET, "k1", 1_800_000_000.0), self._lines_for
        )

    def _lines_for(self, seconds: float) -> HostConnectionPool:
        return self.pools.setdefault(
            seconds, HostConnectionPool(UrlGuard(loopback=True), min(seconds, self.stall_seconds))
        )


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedHost
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = urlsplit(self.path)
        path, headers = parts.path.removeprefix("/fermata/"), {name.lower(): v for name, v in self.headers.items()}
        query, port = dict(parse_qsl(parts.query)), self.client_address[1]
        self.server.requests.append(ReceivedRequest(self.command, path, query, headers, port))
        orders = self.server.script.get(f"{self.command} {path}", [ScriptedResponse({"error": "no such thing"}, 404)])
        self._say(orders.pop(0) if len(orders) > 1 else orders[0])

    do_POST = do_GET

    def _say(self, said: ScriptedResponse) -> None:
        body = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
        self.send_response(said.status)
        for name, value in ({"content-type": "application/json"} | said.headers).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if said.hold is not None:
            self.wfile.write(body[:1])
            self.wfile.flush()
            said.hold.wait(10)
            body = body[1:]
        try:
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # whoever asked did not want all of it

    def log_message(self, *_: Any) -> None:
        pass


def process_connection_pools() -> list[HostConnectionPool]:
    """Those that a turn uses, which are kept from one turn to the next."""
    return [get_connection_pool(loopback=True, seconds=seconds) for seconds in (HOST_READ_SECONDS, HOST_BUILD_SECONDS)]


@contextmanager
def scripted_host() -> Iterator[ScriptedHost]:
    with ScriptedHost() as host:
        thread = threading.Thread(target=host.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield host
        finally:
            for kept in (*host.pools.values(), *process_connection_pools()):
                kept.close()
            host.shutdown()
            thread.join()
