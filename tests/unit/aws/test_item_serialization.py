"""Check that texts and integers, which are not given to boto3's serializer, become what it would make of them."""

from decimal import Decimal, Inexact
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from fermata.aws.dynamodb_items_and_writes import deserialize_item, serialize_item

VALUES: tuple[Any, ...] = (
    "",
    "text",
    0,
    -7,
    10**38 - 1,
    True,
    None,
    Decimal("1.5"),
    b"bytes",
    {"a", "b"},
    ["x", 1, {"y": False}],
    {"S": "no type", "N": 2},
)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_has_the_type_that_boto3_gives_it_and_comes_back(value: Any) -> None:
    raw = serialize_item({"name": value})
    assert raw == {"name": TypeSerializer().serialize(value)}
    assert deserialize_item(raw) == {"name": TypeDeserializer().deserialize(raw["name"])}
    assert type(deserialize_item(raw)["name"]) is type(value) or isinstance(value, bytes)


def test_an_integer_that_dynamodb_cannot_hold_is_refused() -> None:
    with pytest.raises(Inexact):
        serialize_item({"name": 10**38 + 1})
