"""Run an HTTP server of tests whose clients may close their connection at any time."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any, TypeVar


class ThreadedServer(ThreadingHTTPServer):
    """A server with a thread for each connection. It prints the errors of its handlers, except closed connections."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


Server = TypeVar("Server", bound=ThreadedServer)


@contextmanager
def serve_in_thread(server: Server) -> Iterator[Server]:
    """Let a server answer until the end of the block, and wait for its end."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
