"""Collect what the judge looks at from the emulator's own API: raw rows, objects and executions of one tenant."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from local.cloud import LocalCloud
from tests.chaos.memory_aws.s3 import StoredObject
from tests.chaos.provider import ServedRequest
from tests.chaos.world import SimulatedTurn

TABLES = {"bridges": "BridgesTableName", "conversations": "ConversationsTableName", "usage": "UsageTableName"}
"""Tables by the name that the judge uses, and the output of the stack that names each."""


@dataclass
class TenantTable:
    items: dict[tuple[str, str], dict[str, Any]]


@dataclass
class DynamoEvidence:
    tables: dict[str, TenantTable]


@dataclass
class BucketObjects:
    """The objects of the bucket by their key."""

    cloud: LocalCloud

    def __getitem__(self, key: str) -> StoredObject:
        response = self.cloud.get_client("s3").get_object(Bucket=self.cloud.get_output("BucketName"), Key=key)
        return StoredObject(response["Body"].read(), put_at=0.0)


@dataclass
class S3Evidence:
    objects: BucketObjects


@dataclass
class ProviderEvidence:
    served: list[ServedRequest]
    refusals: list[str]


@dataclass
class FaultEvidence:
    counts: Counter[tuple[str, str]]


@dataclass
class ExecutionRecord:
    name: str
    status: str


@dataclass
class WorkflowEvidence:
    executions: dict[str, ExecutionRecord]


@dataclass
class Evidence:
    """What the judge asks of a simulation, of one tenant of the real cloud."""

    turns: list[SimulatedTurn]
    dynamodb: DynamoEvidence
    s3: S3Evidence
    step_functions: WorkflowEvidence
    provider: ProviderEvidence
    faults: FaultEvidence
    quiet_after: float
    function_errors: list[Exception] = field(default_factory=list)


def read_tenant_table(cloud: LocalCloud, name: str, tenant: str) -> TenantTable:
    pages = (
        cloud.get_client("dynamodb")
        .get_paginator("scan")
        .paginate(
            TableName=cloud.get_output(TABLES[name]),
            ConsistentRead=True,
            FilterExpression="begins_with(pk, :own)",
            ExpressionAttributeValues={":own": {"S": f"t#{tenant}#"}},
        )
    )
    return TenantTable({(item["pk"]["S"], item["sk"]["S"]): item for page in pages for item in page["Items"]})


def list_tenant_turns(table: TenantTable) -> set[str]:
    """List the ids of all turns in the table of turns, those that no browser knows too."""
    return {pk.rpartition("#turn#")[2] for pk, sk in table.items if sk == "turn"}


def find_running_executions(cloud: LocalCloud) -> set[str]:
    machine = cloud.get_output("TurnMachineArn")
    pages = cloud.get_client("stepfunctions").get_paginator("list_executions")
    running = pages.paginate(stateMachineArn=machine, statusFilter="RUNNING")
    return {execution["name"] for page in running for execution in page["executions"]}


def collect_workflow(cloud: LocalCloud, turns: set[str]) -> WorkflowEvidence:
    names = {name for name in find_running_executions(cloud) if name.rpartition("-")[0] in turns}
    return WorkflowEvidence({name: ExecutionRecord(name, "RUNNING") for name in names})


def find_open_turns(cloud: LocalCloud) -> Iterator[str]:
    """Find the partition keys of all turns that have not ended, in the sparse index of open turns."""
    pages = cloud.get_client("dynamodb").get_paginator("scan")
    for page in pages.paginate(TableName=cloud.get_output(TABLES["bridges"]), IndexName="open"):
        yield from (item["pk"]["S"] for item in page["Items"])
