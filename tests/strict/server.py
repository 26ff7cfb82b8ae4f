"""A provider's server for tests: says what it is told, and refuses what the real one refuses."""

import contextlib
import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from local.demo_model.request_checks.anthropic_messages import RequestRejected

Rule = Callable[[dict[str, Any]], str | None]


@dataclass
class ScriptedResponse:
    """One response: chunks of a body, or a status with a JSON body. `then` runs after the chunks, before the end."""

    chunks: Sequence[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    before: Callable[[], object] | None = None
    then: Callable[[], object] | None = None
    cut: bool = False


class StrictServer:
    """`say` queues responses, `bodies` holds what was asked. A request the real API refuses gets its error.

    `rules` are peculiarities of one server: each returns the words it refuses a body with, or None.
    """

    content_type = "text/event-stream"

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections: list[socket.socket] = []
        self.refusals: list[str] = []
        self.rules: list[Rule] = []
        self._responses: deque[ScriptedResponse] = deque()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    def check_request(self, headers: dict[str, str], body: dict[str, Any]) -> None:
        """Raise `Refused` for what the protocol does not allow."""
        raise NotImplementedError

    def error_body(self, refused: RequestRejected) -> dict[str, Any]:
        """The body of a refusal."""
        return {"error": {"message": refused.message, "type": refused.kind, "param": None, "code": None}}

    def record_stream(self, stream: bytes) -> None:
        """Look at what goes out, for what may come back."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script_chunks(self, *chunks: bytes) -> None:
        self._responses.append(ScriptedResponse(chunks))

    def script_response(self, said: ScriptedResponse) -> None:
        self._responses.append(said)

    def script_error(self, status: int, kind: str = "api_error", message: str = "no", **headers: str) -> None:
        body = json.dumps(self.error_body(RequestRejected(message, kind=kind))).encode()
        self._responses.append(
            ScriptedResponse([body], status, {name.replace("_", "-"): value for name, value in headers.items()})
        )

    def reset(self) -> None:
        """What was asked, and what was to be said."""
        for seen in (self.paths, self.bodies, self.headers, self.connections, self.refusals, self.rules):
            seen.clear()
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
                    raise RequestRejected(problem)
        except RequestRejected as refused:
            self.refusals.append(refused.message)
            return ScriptedResponse([json.dumps(self.error_body(refused)).encode()], refused.status)
        said = self._responses.popleft()
        self.record_stream(b"".join(said.chunks))
        return said

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
            thread.join(5)


def _handler(strict: StrictServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            strict.connections.append(self.connection)
            raw = self.rfile.read(int(self.headers["content-length"]))
            said = strict.respond(self.path, {name.lower(): value for name, value in self.headers.items()}, raw)
            if said.before:
                said.before()
            with contextlib.suppress(OSError):
                self._send(said)

        def _send(self, said: ScriptedResponse) -> None:
            kind = strict.content_type if said.status == 200 else "application/json"
            self.send_response(said.status)
            for name, value in {"content-type": kind, "transfer-encoding": "chunked", **said.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            for chunk in said.chunks:
                self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                self.wfile.flush()
            if said.then:
                said.then()
            if said.cut:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            else:
                self.wfile.write(b"0\r\n\r\n")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
