"""Run a remote tool on this machine, which returns scripted responses, and records and verifies its requests."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from standardwebhooks import Webhook

from tests.threaded_server import ThreadedServer, serve_in_thread


@dataclass
class ReceivedCall:
    """A request as the server got it."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)

    def verify(self, secret: str) -> None:
        """Check the signature as a vendor does, with the reference library. Raises if it is wrong or old."""
        Webhook(secret).verify(self.raw, self.headers)


@dataclass
class ScriptedAnswer:
    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    before: Callable[[ReceivedCall], object] | None = None
    """Called with the request before it is answered."""


class ScriptedToolServer(ThreadedServer):
    def __init__(self) -> None:
        self.answers: list[ScriptedAnswer] = []
        self.calls: list[ReceivedCall] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/tools/getProduct"

    def script_answer(
        self,
        body: Any = None,
        status: int = 200,
        *,
        headers: dict[str, str] | None = None,
        before: Callable[[ReceivedCall], object] | None = None,
    ) -> None:
        """Add an answer; the last one is repeated. `bytes` are sent as they are."""
        self.answers.append(ScriptedAnswer(body, status, headers or {}, before))


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedToolServer

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        call = ReceivedCall(self.path, {name.lower(): value for name, value in self.headers.items()}, raw)
        self.server.calls.append(call)
        answers = self.server.answers or [ScriptedAnswer({"data": {}})]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer.before:
            answer.before(call)
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in ({"content-length": str(len(body))} | answer.headers).items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            self.close_connection = True  # the client has read enough

    do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

    def log_message(self, *_: Any) -> None:
        pass


def run_scripted_tool_server() -> AbstractContextManager[ScriptedToolServer]:
    return serve_in_thread(ScriptedToolServer())
