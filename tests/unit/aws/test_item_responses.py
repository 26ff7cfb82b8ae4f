"""Responses of DynamoDB are read as the JSON that they are, and are what botocore makes of them."""

from decimal import Decimal
from typing import Any

import boto3
import pytest
from boto3.dynamodb.types import Binary

from fermata.aws.dynamodb_client import DynamoClient
from fermata.aws.dynamodb_items_and_writes import Put
from fermata.aws.item_responses import _take_items
from fermata.aws.resources import Resources

T = "bridges"
PLAIN: dict[str, Any] = {"n": -3, "d": Decimal("0.1"), "m": {"x": [1, None, {"y": "z"}]}, "t": True, "s": {"a", "b"}}


@pytest.mark.parametrize(
    "item",
    [PLAIN, {"letter": "B"}, {"sealed": b"\x00\xff"}, {"all": [b"a", {b"b"}, "B"]}],
    ids=lambda item: next(iter(item)),
)
def test_items_are_what_botocore_reads(resources: Resources, item: dict[str, Any]) -> None:
    resources.tables.write_items(Put(T, {"pk": "a", "sk": "b", **item}))
    botocores = DynamoClient(boto3.client("dynamodb"))
    found = resources.tables.get_item(T, "a", "b")
    assert found == botocores.get_item(T, "a", "b") == {"pk": "a", "sk": "b", **_decode(item)}
    assert resources.tables.query_items(T, "a") == botocores.query_items(T, "a") == [found]
    assert resources.tables.batch_get_items(T, [("a", "b"), ("a", "c")]) == {("a", "b"): found}


def _decode(item: dict[str, Any]) -> dict[str, Any]:
    if "sealed" in item:
        return {"sealed": Binary(item["sealed"])}
    return {"all": [Binary(b"a"), {Binary(b"b")}, "B"]} if "all" in item else item


@pytest.mark.parametrize(
    ("status", "body"),
    [(400, b'{"__type":"x"}'), (200, b'{"Items":['), (200, b"[]"), (200, b'{"Item":{"a":{"B":"AA=="}}}')],
)
def test_what_is_no_plain_success_is_left_to_botocore(status: int, body: bytes) -> None:
    response, members = {"status_code": status, "body": body}, dict[str, Any]()
    _take_items(response, members)
    assert (response["body"], members) == (body, {})
