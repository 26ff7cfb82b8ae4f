"""Create the clients of a process before its first invocation."""

import socket
from collections.abc import Iterator

import pytest

from fermata.aws.resources import Resources, create_clients, get_resources
from tests.resources import environment_from_resources


@pytest.fixture(autouse=True)
def new_process() -> Iterator[None]:
    get_resources.cache_clear()
    yield
    get_resources.cache_clear()


def test_clients_are_created_early_without_opening_a_connection(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment_from_resources(resources).items():
        monkeypatch.setenv(name, value)

    def refuse_connection(*arguments: object, **options: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse_connection)
    create_clients()
    assert {"tables", "blobs", "vault", "workflow"} <= set(vars(get_resources()))
