"""Model lists as the five providers serve them, on real sockets; a wrong key is refused as theirs is.

server.lists("/v1/models", {...})      # what a path answers; anything else is 404
server.fails("/v1/models", 529, {...})
"""

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-listing-0123456789"
SHOW = "/api/show"


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any = None


@dataclass
class Listings:
    url: str
    key: str = KEY
    asked: list[Asked] = field(default_factory=list)
    open_to_all: bool = False
    _answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    _shows: dict[str, Any] = field(default_factory=dict)

    def lists(self, path: str, answer: Any) -> None:
        self._answers[path] = (200, answer)

    def fails(self, path: str, status: int, answer: Any) -> None:
        self._answers[path] = (status, answer)

    def shows(self, model: str, answer: Any) -> None:
        """What Ollama tells of one model."""
        self._shows[model] = answer

    def respond(self, asked: Asked) -> tuple[int, Any]:
        self.asked.append(asked)
        path = asked.path.partition("?")[0]
        if not self._is_let_in(asked.headers, path):
            return 401, {"error": {"type": "authentication_error", "message": f"no such key: {_sent(asked.headers)}"}}
        if path == SHOW:
            found = self._shows.get(asked.body["model"])
            return (200, found) if found is not None else (404, {"error": "model not found"})
        return self._answers.get(path, (404, {"error": {"message": f"no {path} here"}}))

    def _is_let_in(self, headers: Mapping[str, str], path: str) -> bool:
        if self.open_to_all and not path.endswith("/key"):
            return True
        if "x-api-key" in headers:
            return headers["x-api-key"] == self.key and bool(headers.get("anthropic-version"))
        return headers.get("authorization") == f"Bearer {self.key}"


def _sent(headers: Mapping[str, str]) -> str:
    return headers.get("x-api-key") or headers.get("authorization", "")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    listings: Listings

    def do_GET(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, answer = self.listings.respond(
            Asked(self.command, self.path, headers, json.loads(raw) if raw else None)
        )
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def listings() -> Iterator[Listings]:
    handler = type("Handler", (_Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        found = Listings(f"http://127.0.0.1:{server.server_port}")
        handler.listings = found
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
