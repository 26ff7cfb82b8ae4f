"""Refuse connections beyond this machine. A test that tries one fails, also when the code handles the refusal.

The hook sees every connection that Python opens, and every name that it resolves, in all threads (decision 0133).
"""

import contextlib
import ipaddress
import socket
import sys
from collections.abc import Generator
from typing import Any

import pytest

_WATCHED_EVENTS = frozenset({"socket.getaddrinfo", "socket.connect", "socket.sendto", "socket.sendmsg"})
_foreign_targets: list[str] = []


class ForeignConnectionError(OSError):
    """A test tried to reach another machine."""


def install_guard() -> None:
    """Watch this process from now on. An audit hook stays until the process ends."""
    sys.addaudithook(_refuse_foreign_target)


def take_foreign_targets() -> list[str]:
    """Return what was refused since the last call."""
    targets = _foreign_targets[:]
    del _foreign_targets[: len(targets)]
    return targets


def _refuse_foreign_target(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _WATCHED_EVENTS:  # Python calls the hook for each import, each file and each `id()`, too
        return
    if event == "socket.getaddrinfo":
        target = _to_text(arguments[0])
        is_allowed = is_on_this_machine(target) or _parse_address(target) is not None  # no name server is asked
    elif isinstance(arguments[1], tuple):
        target = _to_text(arguments[1][0])
        is_allowed = is_on_this_machine(target)
    else:
        return
    if not is_allowed:
        _foreign_targets.append(target)
        raise ForeignConnectionError(f"A test tried to reach {target}. Tests reach 127.0.0.1 only.")


def is_on_this_machine(host: str) -> bool:
    address = _parse_address(host)
    if address is not None:
        return address.is_loopback or address.is_unspecified
    return host in ("", "localhost") or host.endswith(".localhost")


def _to_text(host: str | bytes | None) -> str:
    return host.decode() if isinstance(host, bytes) else host or ""


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return None for a name. The C library also reads numbers such as 2130706433 as addresses."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host)
    with contextlib.suppress(OSError):
        return ipaddress.ip_address(socket.inet_aton(host))
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """Fail a test during which a connection was refused, whatever became of the error."""
    try:
        outcome = yield
    finally:
        targets = take_foreign_targets()
    if targets:
        pytest.fail(f"The test tried to reach {', '.join(targets)}. Tests reach 127.0.0.1 only.", pytrace=False)
    return outcome
