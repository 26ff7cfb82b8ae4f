"""Run the example host of docs/host.md as printed, and query it with the tools."""

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

from fermata.agents.registry import get_toolset
from fermata.domain.blocks import ToolCallBlock
from fermata.drivers.transport.url_guard import UrlGuard
from fermata.hosts.auth import sign_host_token
from fermata.hosts.client import HostClient, HostConnectionPool
from fermata.hosts.errors import HostError
from fermata.tools.calls.pipeline import AdmittedCall, admit_call
from fermata.tools.tool import ToolContext
from tests.scripted_host import HOST_CALLER, HOST_SECRET
from tests.unit.tools.builders import run_tool
from tests.waiting import wait_until

DOCUMENT = Path(__file__).parents[3] / "docs" / "host.md"


def read_example() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return str(code)


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    number = find_free_port()
    environment = os.environ | {"PORT": str(number), "HOST_SECRET": HOST_SECRET}
    process = subprocess.Popen([sys.executable, "-c", read_example()], env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: is_listening(number), "the example listens")
        yield number
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def pool() -> Iterator[HostConnectionPool]:
    pool = HostConnectionPool(UrlGuard(loopback=True), 5.0)
    yield pool
    pool.close()


def open_client(port: int, pool: HostConnectionPool, secret: str = HOST_SECRET) -> HostClient:
    return HostClient(
        f"http://127.0.0.1:{port}",
        lambda: sign_host_token(HOST_CALLER, secret, "k", time.time()),
        lambda _seconds: pool,
    )


@pytest.mark.parametrize(
    ("name", "arguments", "path"),
    [
        ("list_collections", {}, ("collections", 0, "label")),
        ("list_documents", {"tableId": "t1"}, ("documents", 0, "slug")),
        ("get_document", {"documentId": "d1"}, ("document", "fields", "title")),
    ],
)
def test_the_printed_host_answers(
    port: int, pool: HostConnectionPool, name: str, arguments: Any, path: tuple[Any, ...]
) -> None:
    context = ToolContext(
        tenant="bakery",
        user="ada",
        capabilities=frozenset({"data.custom.tables.read", "content.manage"}),
        scope="content",
        turn="t",
        open_host=lambda: open_client(port, pool),
    )
    admitted = admit_call(
        get_toolset("content"), ToolCallBlock(tool_call_id="c", tool_name=name, input=arguments), context
    )
    assert isinstance(admitted, AdmittedCall)
    value = run_tool(admitted, context).data
    for step in path:
        value = value[step]
    assert value in ("Posts", "hello", "Hello")


def test_the_printed_host_takes_no_other_token(port: int, pool: HostConnectionPool) -> None:
    with pytest.raises(HostError, match="does not take Fermata's token"):
        open_client(port, pool, "another secret that is long enough to be one").list_tables()


def test_the_printed_host_has_about_twenty_lines() -> None:
    assert len([line for line in read_example().splitlines() if line.strip()]) <= 24
