"""The example servers in Python and JavaScript verify signatures, answer calls, and handle each event once."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from fermata.domain.tools import ToolExecution
from fermata.remote_tools.manifest_tool_executor import AttemptFailed, check_tool_data
from fermata.remote_tools.signed_tool_attempt import RemoteCall, RemoteCallContext, RemoteEndpoint
from fermata.remote_tools.tool_manifest import parse_manifest
from fermata.signed_requests.signature import make_signing_secret, sign_request
from fermata.signed_requests.signed_post import open_guarded_connection
from tests.waiting import wait_until

EXAMPLES = Path(__file__).parents[3] / "examples"
SECRET = make_signing_secret()
NODE = shutil.which("node")
PROGRAMS = {".py": sys.executable, ".mjs": NODE or ""}
needs_node = pytest.mark.skipif(NODE is None, reason="Node.js is missing")
TOOL = EXAMPLES / "remote-tool" / "server"
RECEIVER = EXAMPLES / "webhook-receiver" / "receiver"
TOOLS = [TOOL.with_suffix(".py"), pytest.param(TOOL.with_suffix(".mjs"), marks=needs_node)]
RECEIVERS = [RECEIVER.with_suffix(".py"), pytest.param(RECEIVER.with_suffix(".mjs"), marks=needs_node)]


class Example(NamedTuple):
    """A running example."""

    url: str
    process: "subprocess.Popen[str]"


@pytest.fixture
def example(request: pytest.FixtureRequest) -> Iterator[Example]:
    path: Path = request.param
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [PROGRAMS[path.suffix], str(path)],
        env=os.environ | {"SIGNING_SECRET": SECRET, "PORT": str(port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        wait_until(lambda: _is_listening(port), "the example listens")
        yield Example(f"http://127.0.0.1:{port}/", process)
    finally:
        process.kill()
        process.wait()
        assert process.stdout
        process.stdout.close()


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def call_tool(url: str, arguments: Any, secret: str = SECRET, effect_key: str = "t/1/0") -> Any:
    context = RemoteCallContext("bakery", "c", "ada", "t", "anthropic")
    endpoint = RemoteEndpoint(url, [secret])
    with open_guarded_connection(loopback=True, seconds=10) as connection:
        return RemoteCall("pim.getProduct", endpoint, effect_key, context, connection, time.time).attempt(arguments)


@pytest.mark.parametrize("example", TOOLS, indirect=True)
def test_a_tool_answers_as_its_manifest_says(example: Example) -> None:
    registration = json.loads((EXAMPLES / "remote-tool" / "tool.json").read_text())
    manifest = parse_manifest(registration["manifest"])
    data = call_tool(example.url, {"sku": "SKU-123"})
    assert check_tool_data(manifest, data, ToolExecution()).ok
    assert data["title"] == "Sourdough bread"
    assert call_tool(example.url, {"sku": "another"}) == data  # the same Idempotency-Key
    with pytest.raises(AttemptFailed, match="There is no product SKU-9"):
        call_tool(example.url, {"sku": "SKU-9"}, effect_key="t/1/1")


@pytest.mark.parametrize("example", TOOLS, indirect=True)
def test_a_tool_refuses_what_the_service_has_not_signed(example: Example) -> None:
    with pytest.raises(AttemptFailed, match="401"):
        call_tool(example.url, {"sku": "SKU-123"}, make_signing_secret())


@pytest.mark.parametrize("example", [*TOOLS, *RECEIVERS], indirect=True)
def test_an_example_goes_on_after_clients_that_leave_or_send_something_else(example: Example) -> None:
    port = int(example.url.rpartition(":")[2].strip("/"))
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")  # and leaves
    with httpx.Client(trust_env=False) as client:
        for number, body in enumerate((b"{", b"null", b"[]", b"{}", b'{"arguments": null, "data": null}')):
            headers = sign_request([SECRET], f"e{number}", time.time(), body) | {"idempotency-key": f"k{number}"}
            assert client.post(example.url, content=body, headers=headers).status_code == 400, body
    assert example.process.poll() is None


@pytest.mark.parametrize("example", RECEIVERS, indirect=True)
def test_a_receiver_handles_each_event_once_and_refuses_others(example: Example) -> None:
    event = {"type": "turnEnd", "timestamp": "2026-11-28T09:30:00.000Z", "data": {"bridgeId": "t", "event": {"a": "ü"}}}
    body = json.dumps(event, ensure_ascii=False).encode()

    def post(message_id: str, secret: str = SECRET, age: float = 0) -> int:
        headers = sign_request([secret], message_id, time.time() - age, body)
        return httpx.post(example.url, content=body, headers=headers, trust_env=False).status_code

    assert [post("e1"), post("e1"), post("e2")] == [204, 204, 204]
    assert [post("e3", make_signing_secret()), post("e3", age=400)] == [401, 401]
    assert httpx.post(example.url, content=body, trust_env=False).status_code == 401
    example.process.terminate()
    printed, _ = example.process.communicate(timeout=30)
    lines = [json.loads(line) for line in printed.splitlines()]
    assert lines == [{"type": "turnEnd", "bridge": "t", "event": {"a": "ü"}}] * 2
