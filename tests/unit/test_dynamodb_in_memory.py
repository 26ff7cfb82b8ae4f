"""Requests that moto refuses are refused, although the rows of the tests are in memory."""

from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fermata.aws.resources import Resources
from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]

pytestmark = pytest.mark.exhaustive  # the quick suite does not ask moto

KEY = {"pk": {"S": "a"}, "sk": {"S": "1"}}
INVALID_UPDATES: dict[str, dict[str, Any]] = {
    "reserved keyword": {"UpdateExpression": "SET name = :one"},
    "unused in expressions": {"UpdateExpression": "SET spent = :one", "ExpressionAttributeNames": {"#name": "name"}},
}


@pytest.mark.parametrize("reason", INVALID_UPDATES)
@pytest.mark.parametrize("is_transaction", [False, True])
def test_an_invalid_write_is_refused_each_time_that_it_is_sent(
    resources: Resources, reason: str, is_transaction: bool
) -> None:
    client = resources.tables._client
    values = {":one": {"N": "1"}}
    update = {"TableName": "usage", "Key": KEY, "ExpressionAttributeValues": values} | INVALID_UPDATES[reason]
    send: Any = partial(client.update_item, **update)
    if is_transaction:
        send = partial(client.transact_write_items, TransactItems=[{"Update": update}])
    for _ in range(2):
        with pytest.raises(ClientError, match=reason):
            send()
    assert "Item" not in client.get_item(TableName="usage", Key=KEY)


def test_an_update_that_needs_its_item_is_refused_only_without_it(resources: Resources) -> None:
    client = resources.tables._client
    update: dict[str, Any] = {"TableName": "usage", "Key": KEY, "UpdateExpression": "SET spent = spent + :one"}
    update["ExpressionAttributeValues"] = {":one": {"N": "1"}}
    with pytest.raises(ClientError, match="does not exist in the item"):
        client.update_item(**update)
    client.put_item(TableName="usage", Item=KEY | {"spent": {"N": "1"}})
    client.update_item(**update)
    assert client.get_item(TableName="usage", Key=KEY)["Item"]["spent"] == {"N": "2"}


def test_a_value_that_is_refused_spoils_no_later_request(resources: Resources) -> None:
    client = resources.tables._client
    with pytest.raises(ClientError, match="empty string"):
        client.put_item(TableName="usage", Item=KEY | {"sk": {"S": ""}, "note": {"S": "a"}})
    client.put_item(TableName="usage", Item=KEY | {"note": {"S": "a"}})
    assert client.get_item(TableName="usage", Key=KEY)["Item"]["note"] == {"S": "a"}
