"""Base class of the provider servers: scripted responses, and checks of the requests."""

import contextlib
import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Self

from local.demo_model.request_checks.errors import RequestRejected
from tests.threaded_server import ThreadedServer
from tests.waiting import BACKSTOP_SECONDS

Rule = Callable[[dict[str, Any]], str | None]


@dataclass
class ScriptedResponse:
    """One response: a body in chunks, or an error status with a JSON body.

    `before` runs before the response, `then` between the last chunk and the end. With `cut` the connection is closed
    without an end.
    """

    chunks: Sequence[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    before: Callable[[], object] | None = None
    then: Callable[[], object] | None = None
    cut: bool = False


class StrictServer:
    """A server that sends queued responses and records requests. A request that the real API refuses gets its error.

    `rules` are the peculiarities of one server: each returns the message it refuses a body with, or None.
    """

    content_type = "text/event-stream"

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections: list[socket.socket] = []
        self.refusals: list[str] = []
        self.rules: list[Rule] = []
        self.refusal_status = 400
        """The status of what `rules` refuse."""
        self._responses: deque[ScriptedResponse] = deque()
        self._server = ThreadedServer(("127.0.0.1", 0), _handler_class(self))

    def check_request(self, headers: dict[str, str], body: dict[str, Any]) -> None:
        """Check a request against the protocol.

        Raises:
            RequestRejected: The real API would refuse the request.
        """
        raise NotImplementedError

    def error_body(self, rejection: RequestRejected) -> dict[str, Any]:
        """Return the body of an error response."""
        return {"error": {"message": rejection.message, "type": rejection.kind, "param": None, "code": None}}

    def record_stream(self, stream: bytes) -> None:
        """Record the parts of a response that later requests may send back."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script_chunks(self, *chunks: bytes) -> None:
        self._responses.append(ScriptedResponse(chunks))

    def script_response(self, response: ScriptedResponse) -> None:
        self._responses.append(response)

    def script_error(self, status: int, kind: str = "api_error", message: str = "no", **headers: str) -> None:
        body = json.dumps(self.error_body(RequestRejected(message, kind=kind))).encode()
        self._responses.append(
            ScriptedResponse([body], status, {name.replace("_", "-"): value for name, value in headers.items()})
        )

    def script_json(self, status: int, body: dict[str, Any]) -> None:
        self._responses.append(ScriptedResponse([json.dumps(body).encode()], status))

    def reset(self) -> None:
        """Drop recorded requests, rules and queued responses."""
        self.refusal_status = 400
        for records in (self.paths, self.bodies, self.headers, self.connections, self.refusals, self.rules):
            records.clear()
        self._responses.clear()

    def respond(self, path: str, headers: dict[str, str], raw: bytes) -> ScriptedResponse:
        body = json.loads(raw)
        self.paths.append(path)
        self.headers.append(headers)
        self.bodies.append(body)
        try:
            self.check_request(headers, body)
            for rule in self.rules:
                if problem := rule(body):
                    raise RequestRejected(problem, status=self.refusal_status)
        except RequestRejected as rejection:
            self.refusals.append(rejection.message)
            return ScriptedResponse([json.dumps(self.error_body(rejection)).encode()], rejection.status)
        response = self._responses.popleft()
        self.record_stream(b"".join(response.chunks))
        return response

    @classmethod
    @contextlib.contextmanager
    def run(cls) -> Iterator[Self]:
        server = cls()
        thread = threading.Thread(target=server._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server._server.shutdown()
            server._server.server_close()
            thread.join(BACKSTOP_SECONDS)


def _handler_class(strict: StrictServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            strict.connections.append(self.connection)
            raw = self.rfile.read(int(self.headers["content-length"]))
            response = strict.respond(self.path, {name.lower(): value for name, value in self.headers.items()}, raw)
            if response.before:
                response.before()
            with contextlib.suppress(OSError):
                self._send(response)

        def _send(self, response: ScriptedResponse) -> None:
            kind = strict.content_type if response.status == 200 else "application/json"
            self.send_response(response.status)
            for name, value in {"content-type": kind, "transfer-encoding": "chunked", **response.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            for chunk in response.chunks:
                self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                self.wfile.flush()
            if response.then:
                response.then()
            if response.cut:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            else:
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
