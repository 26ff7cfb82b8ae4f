"""Check that requests that are built quickly are those that botocore builds, byte for byte."""

import re
from typing import Any

import boto3
import pytest

from fermata.aws.quick_requests import KnownEndpoint, PlainSerializer, build_requests_quickly
from fermata.aws.resources import CLIENT_CONFIG

ROW = {"pk": {"S": "t#é"}, "n": {"N": "1"}, "list": {"L": [{"BOOL": True}, {"NULL": True}]}, "set": {"SS": ["a", "b"]}}
KEY = {"pk": ROW["pk"]}
PUT = {"TableName": "rows", "Item": ROW, "ConditionExpression": "#a = :a", "ExpressionAttributeNames": {"#a": "n"}}
DYNAMODB_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_item", {"TableName": "rows", "Key": KEY, "ConsistentRead": True}),
    ("batch_get_item", {"RequestItems": {"rows": {"Keys": [KEY], "ConsistentRead": False}}}),
    ("query", {"TableName": "rows", "KeyConditionExpression": "pk = :pk", "Limit": 3, "ScanIndexForward": False}),
    ("put_item", PUT),
    ("put_item", {"TableName": "rows", "Item": {**ROW, "bytes": {"B": b"\x00"}}}),
    ("update_item", {"TableName": "rows", "Key": KEY, "UpdateExpression": "SET n = :n"}),
    ("delete_item", {"TableName": "rows", "Key": KEY}),
    ("batch_write_item", {"RequestItems": {"rows": [{"DeleteRequest": {"Key": KEY}}]}}),
    ("transact_write_items", {"TransactItems": [{"Put": PUT}], "ClientRequestToken": "token"}),
    ("scan", {"TableName": "rows", "ConsistentRead": True}),
)
OTHER_CALLS = (
    ("kms", "decrypt", {"CiphertextBlob": b"\x00\x01", "EncryptionContext": {"a": "b"}}),
    ("stepfunctions", "send_task_success", {"taskToken": "token", "output": "{}"}),
)
CALLS = [*(("dynamodb", *call) for call in DYNAMODB_CALLS), *OTHER_CALLS]


class Sent(Exception):
    """In the place of the response."""


def make_client(service: Any) -> Any:
    """Return a client with the settings of the service, that raises what it would send."""
    client = boto3.client(
        service,
        region_name="eu-central-1",
        aws_access_key_id="id",
        aws_secret_access_key="secret",
        config=CLIENT_CONFIG,
    )

    def stop(request: Any, **_: Any) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        signed = re.sub(rb"/\d{8}/", b"/day/", headers["authorization"]).partition(b"Signature=")[0]
        raise Sent(request.method, request.url, request.body, headers["x-amz-target"], headers["content-type"], signed)

    client.meta.events.register("before-send", stop)
    return client


@pytest.fixture(scope="module")
def clients() -> dict[str, tuple[Any, Any]]:
    """For each service a client of boto3, and one that builds requests quickly."""
    made = {service: (make_client(service), make_client(service)) for service in ("dynamodb", "kms", "stepfunctions")}
    for _, quick in made.values():
        build_requests_quickly(quick)
    return made


def send(client: Any, operation: str, parameters: dict[str, Any]) -> tuple[Any, ...]:
    with pytest.raises(Sent) as sent:
        getattr(client, operation)(**parameters)
    return sent.value.args


@pytest.mark.parametrize(("service", "operation", "parameters"), CALLS, ids=lambda value: str(value)[:40])
def test_a_request_is_the_one_that_botocore_builds(
    clients: dict[str, tuple[Any, Any]], service: str, operation: str, parameters: dict[str, Any]
) -> None:
    usual, quick = clients[service]
    expected = send(usual, operation, parameters)
    assert [send(quick, operation, parameters) for _ in range(2)] == [expected, expected]


def test_a_client_is_changed_once(clients: dict[str, tuple[Any, Any]]) -> None:
    _, quick = clients["dynamodb"]
    build_requests_quickly(quick)
    assert isinstance(quick._ruleset_resolver, KnownEndpoint)
    assert isinstance(quick._serializer, PlainSerializer)
    assert not isinstance(quick._ruleset_resolver._resolver, KnownEndpoint)
    assert not isinstance(quick._serializer._serializer, PlainSerializer)


def test_an_endpoint_is_resolved_once(clients: dict[str, tuple[Any, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    _, quick = clients["stepfunctions"]
    _, url, *_ = send(quick, "send_task_success", {"taskToken": "token", "output": "{}"})
    monkeypatch.setattr(quick._ruleset_resolver, "_resolver", None)
    _, next_url, *_ = send(quick, "send_task_heartbeat", {"taskToken": "token"})
    assert next_url == url
