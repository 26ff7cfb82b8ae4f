"""DynamoDB units of requests, by the billing rules."""

from typing import Any

import pytest

from bench.dynamodb_units import CapacityMeter, ItemKey, item_bytes, read_units_for, write_units_for

TABLE = "T"


def item(sk: str = "a", **texts: str) -> dict[str, Any]:
    return {"pk": {"S": "p"}, "sk": {"S": sk}} | {name: {"S": text} for name, text in texts.items()}


def nothing_stored(_key: ItemKey) -> int:
    return 0


def metered(operation: str, request: dict[str, Any], response: dict[str, Any] | None = None) -> CapacityMeter:
    meter = CapacityMeter(nothing_stored)
    meter.add_request(operation, request, response or {})
    return meter


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "abc"}, 3),
        ({"S": "ä"}, 2),
        ({"N": "0"}, 2),
        ({"N": "1795829357488"}, 8),
        ({"N": "-1500"}, 2),
        ({"BOOL": True}, 1),
        ({"NULL": True}, 1),
        ({"B": "AAAA"}, 3),
        ({"SS": ["ab", "c"]}, 3),
        ({"M": {"r": {"S": "x"}}}, 3 + 1 + 1 + 1),
        ({"L": [{"S": "xy"}]}, 3 + 1 + 2),
    ],
)
def test_an_item_is_its_names_and_values(value: dict[str, Any], size: int) -> None:
    assert item_bytes({"name": value}) == len("name") + size


@pytest.mark.parametrize(("size", "units"), [(0, 1), (1024, 1), (1025, 2), (4096, 4)])
def test_writes_are_billed_by_the_kilobyte_and_twice_in_a_transaction(size: int, units: int) -> None:
    assert write_units_for(size) == units
    assert write_units_for(size, transactional=True) == 2 * units


@pytest.mark.parametrize(("size", "units"), [(0, 1), (4096, 1), (4097, 2)])
def test_reads_are_billed_by_four_kilobytes_and_half_when_they_need_not_be_consistent(size: int, units: int) -> None:
    assert read_units_for(size) == units
    assert read_units_for(size, consistent=False) == units / 2


def test_a_put_is_billed_by_the_larger_of_what_was_there_and_what_comes() -> None:
    meter = CapacityMeter(nothing_stored)
    meter.add_request("PutItem", {"TableName": TABLE, "Item": item(text="x" * 3000)}, {})
    meter.add_request("PutItem", {"TableName": TABLE, "Item": item()}, {})
    assert meter.write_units == 3 + 3


def test_an_update_is_billed_by_what_it_left_behind() -> None:
    meter = CapacityMeter(lambda key: 2000 if key == (TABLE, "p", "a") else 0)
    request = {"TableName": TABLE, "Key": item(), "UpdateExpression": "SET n = :n"}
    meter.add_request("UpdateItem", request, {})
    assert meter.write_units == 2


def test_each_write_of_a_transaction_is_rounded_for_itself_and_doubled() -> None:
    writes = [{"Put": {"TableName": TABLE, "Item": item(sk)}} for sk in ("a", "b")]
    check = {"ConditionCheck": {"TableName": TABLE, "Key": item("c")}}
    assert metered("TransactWriteItems", {"TransactItems": [*writes, check]}).write_units == 6


def test_a_put_writes_the_index_it_is_in() -> None:
    assert metered("PutItem", {"TableName": TABLE, "Item": item(gsk="2026", text="x" * 1500)}).write_units == 2 + 2
    assert metered("PutItem", {"TableName": TABLE, "Item": item(open="1", text="x" * 1500)}).write_units == 2 + 1


def test_an_update_that_moves_an_index_key_writes_the_index_twice() -> None:
    moved = {"TableName": TABLE, "Key": item(), "UpdateExpression": "SET title = :t, gsk = :now"}
    assert metered("UpdateItem", moved).write_units == 1 + 2


def test_an_update_that_leaves_an_index_writes_it_once_for_any_placeholder() -> None:
    names = {"#open": "open"}
    request = {"TableName": TABLE, "Key": item(), "UpdateExpression": "REMOVE #open", "ExpressionAttributeNames": names}
    assert metered("UpdateItem", request).write_units == 1 + 1


def test_an_update_of_something_else_leaves_the_indexes_alone() -> None:
    other = {"TableName": TABLE, "Key": item(), "UpdateExpression": "SET openedBy = :x, n = :gsk"}
    assert metered("UpdateItem", other).write_units == 1


def test_a_missing_item_costs_one_unit() -> None:
    request = {"TableName": TABLE, "Key": item(), "ConsistentRead": True}
    assert metered("GetItem", request).read_units == 1


def test_a_batch_rounds_each_item_up_and_counts_the_missing_ones() -> None:
    keys = [item("a"), item("b"), item("c")]
    request = {"RequestItems": {TABLE: {"Keys": keys, "ConsistentRead": True}}}
    response = {"Responses": {TABLE: [item("a", text="x" * 5000), item("b")]}}
    assert metered("BatchGetItem", request, response).read_units == 2 + 1 + 1


def test_a_query_rounds_the_sum_up() -> None:
    response = {"Items": [item("a", text="x" * 3000), item("b", text="x" * 3000)]}
    assert metered("Query", {"TableName": TABLE}, response).read_units == 2 / 2
    assert metered("Query", {"TableName": TABLE, "ConsistentRead": True}, response).read_units == 2


def test_an_operation_without_a_rule_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="no rule for Scan"):
        metered("Scan", {})
