"""Serve model lists as the providers do, on real sockets, and refuse a wrong key.

server.set_response("/v1/models", {...})      # any other path is a 404
server.set_error("/v1/models", 529, {...})
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.threaded_server import ThreadedServer, serve_in_thread

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
    _responses: dict[str, tuple[int, Any]] = field(default_factory=dict)
    _model_details: dict[str, Any] = field(default_factory=dict)

    def set_response(self, path: str, body: Any) -> None:
        self._responses[path] = (200, body)

    def set_error(self, path: str, status: int, body: Any) -> None:
        self._responses[path] = (status, body)

    def set_model_details(self, model: str, body: Any) -> None:
        """Set the response of Ollama's route `show` for a model."""
        self._model_details[model] = body

    def respond(self, request: ListRequest) -> tuple[int, Any]:
        self.requests.append(request)
        path = request.path.partition("?")[0]
        if not self._is_authorized(request.headers, path):
            return 401, {
                "error": {"type": "authentication_error", "message": f"no such key: {_sent_key(request.headers)}"}
            }
        if path == OLLAMA_SHOW_PATH:
            details = self._model_details.get(request.body["model"])
            return (200, details) if details is not None else (404, {"error": "model not found"})
        return self._responses.get(path, (404, {"error": {"message": f"no {path} here"}}))

    def _is_authorized(self, headers: Mapping[str, str], path: str) -> bool:
        if self.accepts_any_key and not path.endswith("/key"):
            return True
        if "x-goog-api-key" in headers:
            return headers["x-goog-api-key"] == self.key
        if "x-api-key" in headers:
            return headers["x-api-key"] == self.key and bool(headers.get("anthropic-version"))
        return headers.get("authorization") == f"Bearer {self.key}"


def _sent_key(headers: Mapping[str, str]) -> str:
    return headers.get("x-api-key") or headers.get("x-goog-api-key") or headers.get("authorization", "")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model_lists: ModelListServer

    def do_GET(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, response = self.model_lists.respond(
            ListRequest(self.command, self.path, headers, json.loads(raw) if raw else None)
        )
        body = response if isinstance(response, bytes) else json.dumps(response).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def run_model_list_server() -> Iterator[ModelListServer]:
    handler: type[_Handler] = type("Handler", (_Handler,), {})
    server = ThreadedServer(("127.0.0.1", 0), handler)
    handler.model_lists = model_lists = ModelListServer(f"http://127.0.0.1:{server.server_port}")
    with serve_in_thread(server):
        yield model_lists
