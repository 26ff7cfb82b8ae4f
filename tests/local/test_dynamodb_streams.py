"""Check what a table's stream passes to its function, and when."""

import uuid
from typing import Any

from tests.local.emulator_lab import EmulatorLab
from tests.waiting import wait_until

COUNTER = """
import json, os
import boto3

tables = boto3.client("dynamodb")


def handler(event, context):
    keys = [record["dynamodb"]["Keys"]["sk"]["S"] for record in event["Records"]]
    name = event["Records"][0]["dynamodb"]["Keys"]["pk"]["S"]
    item = {"pk": {"S": name}, "sk": {"S": context.aws_request_id}, "what": {"S": "batch"}, "pid": {"N": "1"}}
    tables.put_item(TableName="lab-notes", Item=item | {"event": {"S": json.dumps({"keys": keys})}})
"""


def streamed_table(lab: EmulatorLab, **mapping: Any) -> str:
    """Make a table whose new items are passed to a function."""
    name = f"streamed-{uuid.uuid4().hex[:8]}"
    made = lab.dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("pk", "sk")],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
    )
    lab.functions.create_event_source_mapping(
        EventSourceArn=made["TableDescription"]["LatestStreamArn"],
        FunctionName=lab.make_function(name, COUNTER),
        StartingPosition="TRIM_HORIZON",
        **mapping,
    )
    return name


def put(lab: EmulatorLab, table: str, *keys: str) -> None:
    for key in keys:
        lab.dynamodb.put_item(TableName=table, Item={"pk": {"S": table}, "sk": {"S": key}})


def batches(lab: EmulatorLab, table: str) -> list[list[str]]:
    return [note.event["keys"] for note in lab.read_notes(table)]


def test_records_within_the_batching_window_are_delivered_together(lab: EmulatorLab) -> None:
    table = streamed_table(lab, BatchSize=100, MaximumBatchingWindowInSeconds=1)
    rows = [{"PutRequest": {"Item": {"pk": {"S": table}, "sk": {"S": key}}}} for key in "abc"]
    lab.dynamodb.batch_write_item(RequestItems={table: rows})  # however long the window is on a busy machine
    assert wait_until(lambda: batches(lab, table), "the function is called") == [["a", "b", "c"]]


def test_a_full_batch_is_delivered_at_once(lab: EmulatorLab) -> None:
    table = streamed_table(lab, BatchSize=2, MaximumBatchingWindowInSeconds=300)
    put(lab, table, "a", "b", "c")
    assert wait_until(lambda: batches(lab, table), "the function is called") == [["a", "b"]]


def test_without_a_window_records_are_delivered_at_once(lab: EmulatorLab) -> None:
    table = streamed_table(lab, BatchSize=100)
    put(lab, table, "a")
    assert wait_until(lambda: batches(lab, table), "the function is called") == [["a"]]
