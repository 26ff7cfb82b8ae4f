"""The DynamoDB in memory answers the requests of the product as moto does, both as it is and made lean."""

import random
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.chaos.memory_aws.dynamodb import MemoryDynamoDB, MemoryTable
from tests.lean_moto import make_moto_lean

SEEDS = range(16)
STEPS = 50
BOTH = {"SS": ["b", "a"]}
CONDITIONS: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("attribute_not_exists(pk)", {}, {}),
    ("attribute_exists(pk)", {}, {}),
    ("#version = :was", {"#version": "version"}, {":was": {"N": "1"}}),
    ("attribute_not_exists(claim) OR claim = :turn", {}, {":turn": {"S": "t1"}}),
    (
        "(attribute_not_exists(begun) OR begun < :since) AND version = :was",
        {},
        {":since": {"N": "3"}, ":was": {"N": "1"}},
    ),
    ("NOT claim IN (:turn, :other)", {}, {":turn": {"S": "t1"}, ":other": {"S": "t2"}}),
    ("version BETWEEN :low AND :high", {}, {":low": {"N": "1"}, ":high": {"N": "2"}}),
    ("(attribute_not_exists(leases) OR size(leases) < :two)", {}, {":two": {"N": "2"}}),
    ("leases = :both", {}, {":both": BOTH}),
    ("begins_with(claim, :turn) AND version <> :was", {}, {":turn": {"S": "t"}, ":was": {"N": "1"}}),
]
UPDATES: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("SET claim = :turn, version = :next", {}, {":turn": {"S": "t1"}, ":next": {"N": "2"}}),
    (
        "SET #held = if_not_exists(#held, :zero) + :one REMOVE claim",
        {"#held": "held"},
        {":zero": {"N": "0"}, ":one": {"N": "1"}},
    ),
    ("REMOVE claim ADD spent :one", {}, {":one": {"N": "2"}}),
    ("SET begun = :one", {}, {":one": {"N": "1"}}),
    ("SET begun = :one ADD leases :a", {}, {":one": {"N": "1"}, ":a": {"SS": ["a"]}}),
    ("ADD leases :b", {}, {":b": {"SS": ["b"]}}),
    ("REMOVE begun DELETE leases :a", {}, {":a": {"SS": ["a"]}}),
    ("SET leases = :both", {}, {":both": BOTH}),
]


@pytest.fixture(scope="module", params=["moto as it is", "moto made lean"])
def moto_client(request: pytest.FixtureRequest) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
        if request.param == "moto made lean":
            make_moto_lean(patch)
        yield create_client_with_table()


def create_client_with_table() -> Any:
    client = boto3.client("dynamodb")
    client.create_table(
        TableName="t",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "claim")],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "byClaim",
                "KeySchema": [
                    {"AttributeName": "claim", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    return client


def draw_item(draw: random.Random) -> dict[str, Any]:
    item: dict[str, Any] = {"pk": {"S": draw.choice("ab")}, "sk": {"S": draw.choice("123")}}
    if draw.random() < 0.7:
        item["version"] = {"N": draw.choice("123")}
    if draw.random() < 0.5:
        item["claim"] = {"S": draw.choice(("t1", "t2"))}
    return item


def draw_write(draw: random.Random) -> tuple[str, dict[str, Any]]:
    kind = draw.choice(("Put", "Update", "Delete", "ConditionCheck"))
    item = draw_item(draw)
    request: dict[str, Any] = {"TableName": "t", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    request |= {"Item": item} if kind == "Put" else {"Key": {"pk": item["pk"], "sk": item["sk"]}}
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    if kind == "Update":
        request["UpdateExpression"], more_names, more_values = draw.choice(UPDATES)
        names, values = names | more_names, values | more_values
    if kind == "ConditionCheck" or draw.random() < 0.7:
        request["ConditionExpression"], more_names, more_values = draw.choice(CONDITIONS)
        names, values = names | more_names, values | more_values
    return kind, request | ({"ExpressionAttributeNames": names} if names else {}) | (
        {"ExpressionAttributeValues": values} if values else {}
    )


def call(client: Any, operation: str, request: dict[str, Any]) -> Any:
    """Return the answer without metadata, or the error with its reasons."""
    try:
        answer = getattr(client, operation)(**request)
    except ClientError as error:
        reasons = [(reason.get("Code"), reason.get("Item")) for reason in error.response.get("CancellationReasons", [])]
        return error.response["Error"]["Code"], reasons, error.response.get("Item")
    return {name: answer[name] for name in ("Item", "Items", "Responses") if name in answer}


def contents(client: Any) -> list[Any]:
    pages = [client.query(**key_query("pk", value)) for value in "ab"]
    pages += [client.query(**key_query("claim", value), IndexName="byClaim") for value in ("t1", "t2")]
    pages.append(client.scan(TableName="t"))
    return [
        page["Items"] if number < 2 else sorted(map(repr, map(sorted, page["Items"])))
        for number, page in enumerate(pages)
    ]


def key_query(name: str, value: str, low: str = " ", high: str = "~") -> dict[str, Any]:
    return {
        "TableName": "t",
        "KeyConditionExpression": f"{name} = :key AND sk BETWEEN :low AND :high",
        "ExpressionAttributeValues": {":key": {"S": value}, ":low": {"S": low}, ":high": {"S": high}},
    }


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", SEEDS)
def test_any_requests_are_answered_as_moto_answers_them(moto_client: Any, seed: int) -> None:
    draw, memory = random.Random(seed), MemoryDynamoDB([MemoryTable("t", {"byClaim": ("claim", "sk")})])
    for pk in "ab":
        for sk in "123":
            moto_client.delete_item(TableName="t", Key={"pk": {"S": pk}, "sk": {"S": sk}})
    for _ in range(STEPS):
        operation, request = draw_request(draw)
        ours, theirs = (sort_sets(call(client, operation, request)) for client in (memory, moto_client))
        assert ours == theirs or is_refused_as_invalid(ours, theirs), (operation, request)
        assert sort_sets(contents(memory)) == sort_sets(contents(moto_client)), (operation, request)


def sort_sets(answer: Any) -> Any:
    """Give the members of sets one order: they have none."""
    if isinstance(answer, dict):
        return {name: sorted(value) if name == "SS" else sort_sets(value) for name, value in answer.items()}
    return type(answer)(map(sort_sets, answer)) if isinstance(answer, list | tuple) else answer


def draw_request(draw: random.Random) -> tuple[str, dict[str, Any]]:
    writes = [draw_write(draw) for _ in range(draw.choice((1, 1, 2, 3)))]
    if len(writes) == 1 and writes[0][0] != "ConditionCheck":
        return f"{writes[0][0].lower()}_item", writes[0][1]
    return "transact_write_items", {"TransactItems": [{kind: one} for kind, one in writes]}


def is_refused_as_invalid(ours: Any, theirs: Any) -> bool:
    """moto words a transaction that is invalid in itself in several ways; both must refuse it."""
    return isinstance(ours, tuple) and isinstance(theirs, tuple) and ours[0] == "ValidationException"


def test_queries_are_paged_in_both_directions() -> None:
    memory = MemoryDynamoDB([MemoryTable("t")])
    for number in range(10):
        memory.put_item(TableName="t", Item={"pk": {"S": "a"}, "sk": {"S": f"{number}"}})
    for forward in (True, False):
        seen: list[str] = []
        request = key_query("pk", "a", "2", "8") | {"Limit": 3, "ScanIndexForward": forward}
        while True:
            page = memory.query(**request)
            seen += [item["sk"]["S"] for item in page["Items"]]
            if "LastEvaluatedKey" not in page:
                break
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        assert seen == sorted("2345678", reverse=not forward)


def test_a_change_is_one_record_of_the_stream_and_the_same_write_again_is_none() -> None:
    memory = MemoryDynamoDB([MemoryTable("t")])
    item = {"pk": {"S": "a"}, "sk": {"S": "1"}}
    memory.put_item(TableName="t", Item=item)
    memory.put_item(TableName="t", Item=item)
    memory.put_item(TableName="t", Item=item | {"version": {"N": "1"}})
    memory.delete_item(TableName="t", Key=item)
    assert [record.event for record in memory.tables["t"].stream] == ["INSERT", "MODIFY", "REMOVE"]


def test_an_item_above_400_kb_is_refused() -> None:
    memory = MemoryDynamoDB([MemoryTable("t")])
    with pytest.raises(ClientError, match="Item size"):
        memory.put_item(TableName="t", Item={"pk": {"S": "a"}, "sk": {"S": "1"}, "data": {"S": "x" * 410_000}})


def test_a_query_without_a_limit_has_one_page_and_one_that_meets_its_limit_may_have_another() -> None:
    memory = MemoryDynamoDB([MemoryTable("t")])
    for number in range(3):
        memory.put_item(TableName="t", Item={"pk": {"S": "a"}, "sk": {"S": f"{number}"}})
    assert "LastEvaluatedKey" not in memory.query(**key_query("pk", "a"))
    assert "LastEvaluatedKey" not in memory.query(**key_query("pk", "a"), Limit=4)
    assert memory.query(**key_query("pk", "a"), Limit=3)["LastEvaluatedKey"] == {"pk": {"S": "a"}, "sk": {"S": "2"}}


def test_a_scan_reads_all_rows_page_by_page_and_its_limit_counts_what_the_filter_drops() -> None:
    memory = MemoryDynamoDB([MemoryTable("t")])
    for number in range(5):
        memory.put_item(TableName="t", Item={"pk": {"S": f"{number % 2}"}, "sk": {"S": f"{number}"}})
    request: dict[str, Any] = {"TableName": "t", "Limit": 2, "FilterExpression": "pk = :even"}
    request["ExpressionAttributeValues"] = {":even": {"S": "0"}}
    pages = [memory.scan(**request)]
    while "LastEvaluatedKey" in pages[-1]:
        pages.append(memory.scan(**request, ExclusiveStartKey=pages[-1]["LastEvaluatedKey"]))
    assert [[item["sk"]["S"] for item in page["Items"]] for page in pages] == [["0", "2"], ["4"], []]
