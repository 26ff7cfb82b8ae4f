"""Run a tenant's content system on this machine, which returns scripted responses and records its requests.

with scripted_host() as host:
    host.script_response("GET tables", {"tables": []})
    host.script_response("GET users", status=503)
    make_context(open_host=host.open_client)
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
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
from tests.threaded_server import ThreadedServer
from tests.waiting import BACKSTOP_SECONDS

HOST_SECRET = "a secret that only the host and the service know"
HOST_CALLER = HostCaller("bakery", "ada", frozenset({"ai.chat", "content.manage"}), "content", "turn-1")


@dataclass
class ReceivedRequest:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    port: int
    """The client's port, which is the same for requests over one connection."""

    @property
    def claims(self) -> dict[str, Any]:
        """The claims of the token. They are verified as a host should, except for the time, which tests freeze."""
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
    completed_by: threading.Event | None = None
    """The response is not completed before this event is set."""


class ScriptedHost(ThreadedServer):
    def __init__(self) -> None:
        self.script: dict[str, list[ScriptedResponse]] = {}
        self.requests: list[ReceivedRequest] = []
        self.pools: dict[float, HostConnectionPool] = {}
        self.stall_seconds = 5.0
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/fermata"

    def script_response(
        self,
        route: str,
        body: Any = None,
        status: int = 200,
        *,
        headers: dict[str, str] | None = None,
        completed_by: threading.Event | None = None,
    ) -> None:
        """Add a response to `route`, such as `GET tables`. The last one is repeated. `bytes` are sent as they are."""
        self.script.setdefault(route, []).append(ScriptedResponse(body, status, headers or {}, completed_by))

    def open_client(self) -> HostClient:
        """Return a client for HOST_CALLER with a short stall time-out."""
        return HostClient(
            self.url, lambda: sign_host_token(HOST_CALLER, HOST_SECRET, "k1", 1_800_000_000.0), self.pool_for
        )

    def pool_for(self, seconds: float) -> HostConnectionPool:
        return self.pools.setdefault(
            seconds, HostConnectionPool(UrlGuard(loopback=True), min(seconds, self.stall_seconds))
        )


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedHost
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = urlsplit(self.path)
        path = parts.path.removeprefix("/fermata/")
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(parts.query))
        self.server.requests.append(ReceivedRequest(self.command, path, query, headers, self.client_address[1]))
        responses = self.server.script.get(
            f"{self.command} {path}", [ScriptedResponse({"error": "no such thing"}, 404)]
        )
        self._respond(responses.pop(0) if len(responses) > 1 else responses[0])

    do_POST = do_GET

    def _respond(self, response: ScriptedResponse) -> None:
        body = response.body if isinstance(response.body, bytes) else json.dumps(response.body).encode()
        self.send_response(response.status)
        for name, value in ({"content-type": "application/json"} | response.headers).items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if response.completed_by is not None:
            self.wfile.write(body[:1])
            self.wfile.flush()
            response.completed_by.wait(BACKSTOP_SECONDS)
            body = body[1:]
        try:
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # the client has closed the connection

    def log_message(self, *_: Any) -> None:
        pass


def process_connection_pools() -> list[HostConnectionPool]:
    """Return the pools that turns of this process share."""
    return [get_connection_pool(loopback=True, seconds=seconds) for seconds in (HOST_READ_SECONDS, HOST_BUILD_SECONDS)]


@contextmanager
def scripted_host() -> Iterator[ScriptedHost]:
    with ScriptedHost() as host:
        thread = threading.Thread(target=host.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield host
        finally:
            for pool in (*host.pools.values(), *process_connection_pools()):
                pool.close()
            host.shutdown()
            thread.join()
