"""Run an HTTP server of tests whose clients may close their connection at any time."""

import sys
from http.server import ThreadingHTTPServer
from typing import Any


class ThreadedServer(ThreadingHTTPServer):
    """A server with a thread for each connection. It prints the errors of its handlers, except closed connections."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
