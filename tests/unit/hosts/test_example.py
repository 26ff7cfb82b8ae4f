"""The host of docs/host.md runs as it is printed, and answers the tools."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fermata.domain.blocks import ToolCallBlock
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.hosts.auth import sign_host_token
from fermata.hosts.client import HostClient, HostConnectionPool
from fermata.hosts.errors import HostError
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.calls.runner import run_tool
from fermata.tools.registry import get_toolset
from fermata.tools.tool import ToolContext
from tests.scripted_host import HOST_CALLER, HOST_SECRET
from tests.waiting import wait_until

DOCUMENT = Path(__file__).parents[3] / "docs" / "host.md"


def example() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return str(code)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    chosen = free_port()
    environment = os.environ | {"PORT": str(chosen), "HOST_SECRET": HOST_SECRET}
    process = subprocess.Popen([sys.executable, "-c", example()], env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: answers(chosen), "the example listens")
        yield chosen
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def lines() -> Iterator[HostConnectionPool]:
    kept = HostConnectionPool(UrlGuard(loopback=True), 5.0)
    yield kept
    kept.close()


def host(port: int, lines: HostConnectionPool, secret: str = HOST_SECRET) -> HostClient:
    return HostClient(
        f"http://127.0.0.1:{port}",
        lambda: sign_host_token(HOST_CALLER, secret, "k", time.time()),
        lambda _seconds: lines,
    )


@pytest.mark.parametrize(
    ("name", "given", "path"),
    [
        ("list_collections", {}, ("collections", 0, "label")),
        ("list_documents", {"tableId": "t1"}, ("documents", 0, "slug")),
        ("get_document", {"documentId": "d1"}, ("document", "fields", "title")),
    ],
)
def test_the_printed_host_answers(
    port: int, lines: HostConnectionPool, name: str, given: Any, path: tuple[Any, ...]
) -> None:
    context = ToolContext(
        tenant="bakery",
        user="ada",
        capabilities=frozenset({"data.custom.tables.read", "content.manage"}),
        scope="content",
        turn="t",
        host=lambda: host(port, lines),
    )
    admitted = admit_call(get_toolset("content"), ToolCallBlock(tool_call_id="c", tool_name=name, input=given), context)
    assert isinstance(admitted, AdmittedCall)
    found = run_tool(admitted, context).data
    for step in path:
        found = found[step]
    assert found in ("Posts", "hello", "Hello")


def test_the_printed_host_takes_no_other_token(port: int, lines: HostConnectionPool) -> None:
    with pytest.raises(HostError, match="does not take Fermata's token"):
        host(port, lines, "another secret that is long enough to be one").list_tables()


def test_the_printed_host_has_about_twenty_lines() -> None:
    assert len([line for line in example().splitlines() if line.strip()]) <= 24
