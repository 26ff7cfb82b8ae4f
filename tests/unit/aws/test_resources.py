"""Create the clients of a process before its first invocation."""

import socket
from unittest.mock import Mock

import pytest

from fermata.aws.resources import Resources, create_clients


def test_clients_are_created_early_without_opening_a_connection(
    resources: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_connection(*arguments: object, **options: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse_connection)
    create_clients()
    created: list[str] = []

    def create_client(service: str, **_options: object) -> Mock:
        created.append(service)
        return Mock()

    monkeypatch.setattr("boto3.client", create_client)
    first, second = (Resources(resources.settings, resources.clock) for _ in range(2))
    for each in (first, second):
        _ = each.tables, each.blobs, each.vault, each.workflow
    assert created == ["dynamodb", "s3", "kms", "stepfunctions"]
    assert first.tables is not second.tables
