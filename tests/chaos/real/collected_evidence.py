"""Collect the evidence of one tenant by the emulator's own API: raw rows, objects, executions and logged errors."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from local.cloud import LocalCloud
from local.logs import read_log_lines
from tests.chaos.evidence import Row

TABLES = {"bridges": "BridgesTableName", "conversations": "ConversationsTableName", "usage": "UsageTableName"}
"""Tables, and the output of the stack that names each."""
RAISED = re.compile(r"^([\w.]+)(?::|$)")
EXPECTED_ERRORS = ("botocore.", "urllib3.", "fermata.domain.errors.")
"""Modules of the errors that faults cause, and of those that callers are answered with."""


@dataclass
class BucketObjects(Mapping[str, bytes]):
    """The objects of the bucket by their keys, read when they are asked for."""

    cloud: LocalCloud

    def __getitem__(self, key: str) -> bytes:
        response = self.cloud.get_client("s3").get_object(Bucket=self.cloud.get_output("BucketName"), Key=key)
        return bytes(response["Body"].read())

    def __iter__(self) -> Iterator[str]:
        pages = self.cloud.get_client("s3").get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self.cloud.get_output("BucketName")):
            yield from (entry["Key"] for entry in page.get("Contents", ()))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def read_rows(cloud: LocalCloud, table: str, tenant: str) -> list[Row]:
    """Read all rows of a tenant in a table, in the order of their keys."""
    pages = (
        cloud.get_client("dynamodb")
        .get_paginator("scan")
        .paginate(
            TableName=cloud.get_output(TABLES[table]),
            ConsistentRead=True,
            FilterExpression="begins_with(pk, :own)",
            ExpressionAttributeValues={":own": {"S": f"t#{tenant}#"}},
        )
    )
    items = [item for page in pages for item in page["Items"]]
    rows = [{name: to_plain(value) for name, value in item.items()} for item in items]
    return sorted(rows, key=lambda row: (row["pk"], row["sk"]))


def to_plain(attribute: dict[str, Any]) -> Any:
    ((kind, value),) = attribute.items()
    if kind == "N":
        return Decimal(value)
    if kind == "M":
        return {name: to_plain(part) for name, part in value.items()}
    if kind == "L":
        return [to_plain(part) for part in value]
    return None if kind == "NULL" else value


def find_running_executions(cloud: LocalCloud) -> set[str]:
    machine = cloud.get_output("TurnMachineArn")
    pages = cloud.get_client("stepfunctions").get_paginator("list_executions")
    running = pages.paginate(stateMachineArn=machine, statusFilter="RUNNING")
    return {execution["name"] for page in running for execution in page["executions"]}


def find_open_turns(cloud: LocalCloud) -> list[str]:
    """Find the partition keys of all turns that have not ended, in the sparse index of open turns."""
    pages = cloud.get_client("dynamodb").get_paginator("scan")
    found = pages.paginate(TableName=cloud.get_output(TABLES["bridges"]), IndexName="open")
    return [item["pk"]["S"] for page in found for item in page["Items"]]


def find_unexpected_errors(cloud: LocalCloud, since: str) -> list[str]:
    """Find the errors that functions have logged since an instant and that no fault explains."""
    found = []
    for line in read_log_lines(cloud.get_client("logs"), cloud.directory):
        entry = json.loads(line)
        text = str(entry.get("exception", "")).strip()
        if text and entry["timestamp"] >= since:
            raised = RAISED.match(text.splitlines()[-1])
            if raised is None or not raised[1].startswith(EXPECTED_ERRORS):
                found.append(f"{entry['message']}: {text[-500:]}")
    return found
