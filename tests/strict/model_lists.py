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

ACCEPTED_KEY = "sk-listing-0123456789"
OLLAMA_SHOW_PATH = "/api/show"


@dataclass(frozen=True)
class ListRequest:
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any = None


@dataclass
class ModelListServer:
    url: str
    key: str = ACCEPTED_KEY
    requests: list[ListRequest] = field(default_factory=list)
    accepts_any_key: bool = False
    _answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    _shows: dict[str, Any] = field(default_factory=dict)

    def set_response(self, path: str, answer: Any) -> None:
        self._answers[path] = (200, answer)

    def set_error(self, path: str, status: int, answer: Any) -> None:
        self._answers[path] = (status, answer)

    def set_model_details(self, model: str, answer: Any) -> None:
        """What Ollama tells of one model."""
        self._shows[model] = answer

    def respond(self, asked: ListRequest) -> tuple[int, Any]:
        self.requests.append(asked)
        path = asked.path.partition("?")[0]
        if not self._is_let_in(asked.headers, path):
            return 401, {"error": {"type": "authentication_error", "message": f"no such key: {_sent(asked.headers)}"}}
        if path == OLLAMA_SHOW_PATH:
            found = self._shows.get(asked.body["model"])
            return (200, found) if found is not None else (404, {"error": "model not found"})
        return self._answers.get(path, (404, {"error": {"message": f"no {path} here"}}))

    def _is_let_in(self, headers: Mapping[str, str], path: str) -> bool:
        if self.accepts_any_key and not path.endswith("/key"):
            return True
        if "x-api-key" in headers:
            return headers["x-api-key"] == self.key and bool(headers.get("anthropic-version"))
        return headers.get("authorization") == f"Bearer {self.key}"


def _sent(headers: Mapping[str, str]) -> str:
    return headers.get("x-api-key") or headers.get("authorization", "")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    listings: ModelListServer

    def do_GET(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, answer = self.listings.respond(
            ListRequest(self.command, self.path, headers, json.loads(raw) if raw else None)
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
def run_model_list_server() -> Iterator[ModelListServer]:
    handler = type("Handler", (_Handler,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        found = ModelListServer(f"http://127.0.0.1:{server.server_port}")
        handler.listings = found
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
