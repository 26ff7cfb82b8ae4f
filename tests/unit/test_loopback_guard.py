"""No test connects beyond 127.0.0.1: the guard in tests/conftest.py refuses it."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.fixed_response_server import run_fixed_response_server
from tests.loopback_guard import ForeignConnectionError, is_on_this_machine, take_foreign_targets

pytest_plugins = ["pytester"]

DOCUMENTATION_ADDRESS = "192.0.2.1"
"""Belongs to no machine (RFC 5737)."""


@pytest.fixture(autouse=True)
def forgiven() -> Iterator[None]:
    yield
    take_foreign_targets()


def connect() -> None:
    socket.create_connection((DOCUMENTATION_ADDRESS, 80), timeout=1)


def connect_without_raising() -> None:
    with socket.socket() as client:
        client.connect_ex((DOCUMENTATION_ADDRESS, 80))


def send_datagram() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        client.sendto(b"hello", (DOCUMENTATION_ADDRESS, 53))


def connect_in_event_loop() -> None:
    asyncio.run(asyncio.wait_for(asyncio.open_connection(DOCUMENTATION_ADDRESS, 80), 1))


def request_by_name() -> None:
    httpx.get("http://example.com", trust_env=False)


@pytest.mark.parametrize(
    ("attempt", "target"),
    [
        (connect, DOCUMENTATION_ADDRESS),
        (connect_without_raising, DOCUMENTATION_ADDRESS),
        (send_datagram, DOCUMENTATION_ADDRESS),
        (connect_in_event_loop, DOCUMENTATION_ADDRESS),
        (request_by_name, "example.com"),
    ],
)
def test_no_way_out_of_this_machine_is_open(attempt: Callable[[], None], target: str) -> None:
    with pytest.raises((ForeignConnectionError, httpx.ConnectError), match=f"tried to reach {target}"):
        attempt()
    assert set(take_foreign_targets()) == {target}


def test_servers_and_unix_sockets_of_this_machine_are_reached(tmp_path: Path) -> None:
    with run_fixed_response_server() as server:
        assert httpx.get(server.url.replace("127.0.0.1", "localhost"), trust_env=False).status_code == 200
    assert socket.getaddrinfo(DOCUMENTATION_ADDRESS, 80)  # asks no name server
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(path)
        listener.listen()
        client.connect(path)
    assert take_foreign_targets() == []


def test_a_test_fails_even_if_its_code_handles_the_refusal(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("from tests.loopback_guard import pytest_runtest_call")
    pytester.makepyfile(
        f"""
        import contextlib, socket

        def test_that_hides_its_connection():
            with contextlib.suppress(Exception):
                socket.create_connection(("{DOCUMENTATION_ADDRESS}", 80), timeout=1)

        def test_that_connects_to_nothing():
            pass
        """
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines([f"*The test tried to reach {DOCUMENTATION_ADDRESS}.*"])


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        ("", True),
        ("localhost", True),
        ("bucket.s3.localhost", True),
        ("127.9.9.9", True),
        ("2130706433", True),
        ("::1", True),
        ("0.0.0.0", True),
        ("10.0.0.1", False),
        ("169.254.169.254", False),
        ("example.com", False),
        ("localhost.example.com", False),
    ],
)
def test_loopback_addresses_and_names_are_on_this_machine(host: str, is_here: bool) -> None:
    assert is_on_this_machine(host) is is_here
