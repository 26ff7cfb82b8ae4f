"""Run a server on this machine that gives every request the same response and counts the requests."""

from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.threaded_server import ThreadedServer, serve_in_thread


class FixedResponseServer(ThreadedServer):
    def __init__(self) -> None:
        self.body: bytes = b"{}"
        self.status = 200
        self.location = ""
        self.request_count = 0
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/here"


class _Handler(BaseHTTPRequestHandler):
    server: FixedResponseServer

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.request_count += 1
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("location", self.server.location)
        self.send_header("content-length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


def run_fixed_response_server() -> AbstractContextManager[FixedResponseServer]:
    return serve_in_thread(FixedResponseServer())
