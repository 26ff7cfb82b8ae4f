"""Build the parameters of DynamoDB requests from plain values."""

from typing import Any

from fermata.aws.dynamodb_items_and_writes import Put, Update, Write, serialize_item

_LOWEST_SORT_KEY = " "
_HIGHEST_SORT_KEY = "\U0010ffff"


def serialize_key(pk: str, sk: str) -> dict[str, Any]:
    """Return the key of an item in DynamoDB's typed form."""
    return serialize_item({"pk": pk, "sk": sk})


def build_partition_query(table: str, pk: str, min_sk: str, max_sk: str) -> dict[str, Any]:
    """Return the parameters of a Query for min_sk <= sk <= max_sk. An empty bound is no bound."""
    bounds = {":pk": pk, ":min": min_sk or _LOWEST_SORT_KEY, ":max": max_sk or _HIGHEST_SORT_KEY}
    return {
        "TableName": table,
        "KeyConditionExpression": "pk = :pk AND sk BETWEEN :min AND :max",
        "ExpressionAttributeValues": serialize_item(bounds),
    }


def build_write_request(write: Write) -> tuple[str, dict[str, Any]]:
    """Return the operation's name within a transaction, and its parameters."""
    condition = write.condition
    request: dict[str, Any] = {"TableName": write.table, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    if isinstance(write, Put):
        request["Item"] = serialize_item(write.item)
        if write.if_absent:
            condition = "attribute_not_exists(pk)"
    else:
        request["Key"] = serialize_key(write.pk, write.sk)
    if isinstance(write, Update):
        request["UpdateExpression"] = write.expression
    if condition:
        request["ConditionExpression"] = condition
    if write.values:
        request["ExpressionAttributeValues"] = serialize_item(write.values)
    if write.names:
        request["ExpressionAttributeNames"] = write.names
    return type(write).__name__, request
