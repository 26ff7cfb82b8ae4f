"""Headers that leave the service: a list of those that may, in a function that X-Ray traces as on AWS."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from fermata.drivers.registry import PROVIDER_MODULES
from tests.quick_suite_samples import sample_for_quick_suite
from tests.threaded_server import ThreadedServer

HTTP = {"host", "accept", "accept-encoding", "connection", "user-agent", "content-type", "content-length"}
KEYS = {"authorization", "x-api-key", "x-goog-api-key"}
PROTOCOLS = {"anthropic-version", "anthropic-beta", "http-referer", "x-title"}
TRACED_FUNCTION = {
    "AWS_XRAY_DAEMON_ADDRESS": "127.0.0.1:2000",
    "LAMBDA_TASK_ROOT": "/var/task",
    "AWS_LAMBDA_FUNCTION_NAME": "fermata-round",
    "_X_AMZN_TRACE_ID": "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1",
}
"""The environment of a function with active tracing."""
PROGRAM = """
import contextlib, sys, urllib.error, urllib.request
from pydantic import SecretStr
from fermata.aws import observability
from fermata.domain.errors import ProviderError
from fermata.domain.messages import Message
from fermata.domain.blocks import TextBlock
from fermata.drivers.registry import get_provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.http_connection import HttpConnection
from fermata.domain.model_io import ModelRequest

url, what = sys.argv[1:]

def ask_provider():
    message = Message(position=0, role="user", content=(TextBlock(text="Hi"),), turn="t1")
    request = ModelRequest(model="m", system="s", messages=(message,), max_tokens=100)
    endpoint = AuthenticatedEndpoint(url, SecretStr("key"))
    list(get_provider(what).stream(request, HttpConnection(), endpoint))

def handler(event, context):
    with contextlib.suppress(ProviderError, urllib.error.HTTPError):
        urllib.request.urlopen(url) if what == "urllib" else ask_provider()

class Context:
    function_name = "round"
    aws_request_id = "1"

traced = observability.trace_handler(handler)
assert traced is not handler
traced({}, Context())
"""


class RecordingServer(ThreadedServer):
    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        super().__init__(("127.0.0.1", 0), _Refusal)


class _Refusal(BaseHTTPRequestHandler):
    server: RecordingServer

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        body = json.dumps({"error": {"message": "no"}}).encode()
        self.send_response(401)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def recorder() -> Iterator[RecordingServer]:
    with RecordingServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("what", sample_for_quick_suite([*PROVIDER_MODULES, "urllib"], every=3))
def test_a_traced_function_sends_only_headers_of_the_request_itself(recorder: RecordingServer, what: str) -> None:
    url = f"http://127.0.0.1:{recorder.server_port}"
    environment = {"PYTHONPATH": ":".join(sys.path)} | TRACED_FUNCTION
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, url, what], capture_output=True, text=True, env=environment, check=False
    )
    assert run.returncode == 0, run.stderr
    assert recorder.headers, run.stderr
    for headers in recorder.headers:
        assert set(headers) <= HTTP | KEYS | PROTOCOLS
