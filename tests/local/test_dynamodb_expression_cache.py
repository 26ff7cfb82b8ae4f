"""Test DynamoDB key conditions: they find what DynamoDB finds, and cost little in a full partition."""

import os
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from local.processes import EmulatorProcess
from tests.local.emulator_lab import EmulatorLab

NUMBERS = [f"{number:04}" for number in range(400)]


@pytest.fixture(scope="module")
def shelf(lab: EmulatorLab) -> str:
    for number in NUMBERS:
        item = {"pk": {"S": "shelf"}, "sk": {"S": number}, "what": {"S": ""}, "pid": {"N": "1"}, "event": {"S": "{}"}}
        lab.dynamodb.put_item(TableName="lab-notes", Item=item)
    return "shelf"


def found(lab: EmulatorLab, condition: str, **more: object) -> list[str]:
    values = {":pk": {"S": "shelf"}, ":a": {"S": "0100"}, ":b": {"S": "0103"}, ":start": {"S": "03"}}
    used = {name: value for name, value in values.items() if name in condition}
    query = {"TableName": "lab-notes", "KeyConditionExpression": condition, "ExpressionAttributeValues": used}
    return [item["sk"]["S"] for item in lab.dynamodb.query(**query, **more)["Items"]]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("pk = :pk", NUMBERS),
        ("pk = :pk AND sk = :a", ["0100"]),
        ("sk < :a AND pk = :pk", NUMBERS[:100]),
        ("pk = :pk AND sk <= :a", NUMBERS[:101]),
        ("pk = :pk AND sk > :a", NUMBERS[101:]),
        ("pk = :pk AND sk >= :a", NUMBERS[100:]),
        ("pk = :pk AND sk BETWEEN :a AND :b", NUMBERS[100:104]),
        ("pk = :pk AND begins_with(sk, :start)", NUMBERS[300:]),
        ("(pk = :pk) AND (sk = :a)", ["0100"]),
    ],
)
def test_a_key_condition_finds_what_it_says(lab: EmulatorLab, shelf: str, condition: str, expected: list[str]) -> None:
    assert found(lab, condition) == expected


def test_expression_attribute_names_are_resolved(lab: EmulatorLab, shelf: str) -> None:
    names = {"#p": "pk", "#s": "sk"}
    assert found(lab, "#p = :pk AND #s >= :a", ExpressionAttributeNames=names, Limit=2) == ["0100", "0101"]


def test_a_backward_query_with_limit_can_be_continued(lab: EmulatorLab, shelf: str) -> None:
    assert found(lab, "pk = :pk AND sk <= :a", ScanIndexForward=False, Limit=2) == ["0100", "0099"]
    start = {"pk": {"S": "shelf"}, "sk": {"S": "0099"}}
    backwards = {"ScanIndexForward": False, "Limit": 1, "ExclusiveStartKey": start}
    assert found(lab, "pk = :pk AND sk <= :a", **backwards) == ["0098"]


@pytest.mark.parametrize("condition", ["pk = :pk AND what = :a", "sk = :a", "pk = :pk AND AND sk = :a"])
def test_a_condition_dynamodb_refuses_is_refused(lab: EmulatorLab, shelf: str, condition: str) -> None:
    with pytest.raises(ClientError, match="ValidationException"):
        found(lab, condition)


def test_one_item_out_of_many_is_found_in_little_processor_time(
    lab: EmulatorLab, shelf: str, emulator: EmulatorProcess
) -> None:
    before, times = processor_seconds(emulator.pid), 50
    for _ in range(times):
        found(lab, "pk = :pk AND sk <= :a", ScanIndexForward=False, Limit=1)
    each = (processor_seconds(emulator.pid) - before) / times
    print(f"the last of {len(NUMBERS)} items: {each * 1000:.1f} ms")
    assert each < 0.01


def processor_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
