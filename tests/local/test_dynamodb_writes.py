"""Test that transactions of the emulator say what they consume, and leave rows alone that they do not write."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.local.emulator_lab import EmulatorLab

TABLE = "lab-notes"
ROW: dict[str, Any] = {
    "pk": {"S": "writes"},
    "sk": {"S": "nested"},
    "count": {"N": "1"},
    "list": {"L": [{"M": {"a": {"S": "b"}}}]},
    "bytes": {"B": b"\x00"},
}
KEY = {"pk": ROW["pk"], "sk": ROW["sk"]}


def build_update(expression: str, values: dict[str, Any], condition: str = "attribute_exists(pk)") -> dict[str, Any]:
    return {
        "Update": {
            "TableName": TABLE,
            "Key": KEY,
            "UpdateExpression": expression,
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {"#count": "count", "#list": "list"},
            "ExpressionAttributeValues": values,
        }
    }


def read_row(lab: EmulatorLab) -> Any:
    return lab.dynamodb.get_item(TableName=TABLE, Key=KEY, ConsistentRead=True)["Item"]


def test_a_refused_update_changes_nothing_of_a_nested_row_and_another_one_what_it_says(lab: EmulatorLab) -> None:
    lab.dynamodb.put_item(TableName=TABLE, Item=ROW)
    expression = "SET #count = #count + :one, #list[0].a = :text"
    values = {":one": {"N": "1"}, ":text": {"S": "c"}}
    with pytest.raises(ClientError, match="TransactionCanceled"):
        lab.dynamodb.transact_write_items(
            TransactItems=[build_update(expression, values, condition="attribute_not_exists(pk)")]
        )
    assert read_row(lab) == ROW
    lab.dynamodb.transact_write_items(TransactItems=[build_update(expression, values)])
    assert read_row(lab) == {**ROW, "count": {"N": "2"}, "list": {"L": [{"M": {"a": {"S": "c"}}}]}}


def test_a_transaction_tells_what_it_consumes_if_it_is_asked_and_so_does_its_repetition(lab: EmulatorLab) -> None:
    put = {"Put": {"TableName": TABLE, "Item": {**ROW, "text": {"S": "x" * 1500}}}}
    request: Any = {"TransactItems": [put], "ClientRequestToken": "consumes", "ReturnConsumedCapacity": "TOTAL"}
    units = [lab.dynamodb.transact_write_items(**request)["ConsumedCapacity"][0]["CapacityUnits"] for _ in range(2)]
    assert units == [4.0, 2.0], "two for each KB that was written, then two for each 4 KB that was read"
