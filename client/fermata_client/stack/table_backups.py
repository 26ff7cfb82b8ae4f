"""Back up the tables of a stack, restore them under new names, and stop executions that knew the tables before."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from fermata_client.stack.resources import StackLocation

MAX_TABLE_NAME = 255
WAIT = {"Delay": 20, "MaxAttempts": 3 * 60 * 24}
"""A large table is restored within hours."""
RESTORED_MARK = ".restored-"
"""Between the name that a table had first and the instant of its restore."""


@dataclass(frozen=True)
class StackTable:
    """A table of the stack: the output that names it, the parameter that adopts another one, and what it has."""

    output: str
    parameter: str
    has_expiry: bool = False
    has_stream: bool = False


STACK_TABLES = (
    StackTable("ConversationsTableName", "AdoptedConversationsTable", has_expiry=True),
    StackTable("BridgesTableName", "AdoptedBridgesTable", has_expiry=True),
    StackTable("PricingTableName", "AdoptedPricingTable"),
    StackTable("UsageTableName", "AdoptedUsageStream", has_expiry=True, has_stream=True),
    StackTable("SettingsTableName", "AdoptedSettingsTable"),
    StackTable("ContentTableName", "AdoptedContentStream", has_expiry=True, has_stream=True),
)


def read_stack_outputs(location: StackLocation) -> dict[str, str]:
    """Read the outputs of a stack."""
    stacks = location.create_client("cloudformation").describe_stacks(StackName=location.stack)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stacks[0].get("Outputs", [])}


def back_up_tables(location: StackLocation, backup_name: str) -> Iterator[str]:
    """Make a backup of each table, and yield the tables' names."""
    outputs, dynamodb = read_stack_outputs(location), location.create_client("dynamodb")
    for table in STACK_TABLES:
        dynamodb.create_backup(TableName=outputs[table.output], BackupName=backup_name)
        yield outputs[table.output]


class TableRestore:
    """One restore of all tables. Done again with the same `label`, it goes on where it was interrupted."""

    def __init__(self, location: StackLocation, label: str) -> None:
        self._dynamodb = location.create_client("dynamodb")
        self._outputs = read_stack_outputs(location)
        self._label = label

    def start(self, table: StackTable, *, at: dt.datetime | None, backup_name: str | None) -> str:
        """Begin to restore a table, unless that was done before. Return what it is restored from.

        Args:
            table: One of STACK_TABLES.
            at: The instant to restore, for a table that exists.
            backup_name: The name of a backup; without `at` and this, the newest backup of the table.

        Raises:
            click.ClickException: There is no such backup.
        """
        source, target = self._outputs[table.output], self.target_name(table)
        if self._find_table(target) is not None:
            return "before"
        if at is not None:
            self._dynamodb.restore_table_to_point_in_time(
                SourceTableName=source, TargetTableName=target, RestoreDateTime=at
            )
            return at.isoformat()
        backup = self._find_newest_backup(source, backup_name)
        self._dynamodb.restore_table_from_backup(TargetTableName=target, BackupArn=backup["BackupArn"])
        return f"{backup['BackupName']} of {backup['BackupCreationDateTime']:%Y-%m-%dT%H:%M:%SZ}"

    def target_name(self, table: StackTable) -> str:
        """Build the name of the restored table. That of a table that was restored before does not grow."""
        first_name = self._outputs[table.output].partition(RESTORED_MARK)[0]
        return f"{first_name}{RESTORED_MARK}{self._label}"[:MAX_TABLE_NAME]

    def finish(self, table: StackTable, *, is_protected: bool) -> tuple[str, str]:
        """Wait for a restored table, and give it the settings that do not come with its data.

        Returns:
            The parameter of the stack that adopts the table, and its value.
        """
        name = self.target_name(table)
        self._dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=WAIT)
        if table.has_expiry:
            self._turn_expiry_on(name)
        self._dynamodb.update_continuous_backups(
            TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
        if is_protected:
            self._dynamodb.update_table(TableName=name, DeletionProtectionEnabled=True)
            self._dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=WAIT)
        if table.has_stream:
            return table.parameter, self._turn_stream_on(name)
        return table.parameter, str(self._describe(name)["TableArn"])

    def _turn_expiry_on(self, name: str) -> None:
        expiry = self._dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        if expiry.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
            specification = {"AttributeName": "ttl", "Enabled": True}
            self._dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=specification)

    def _turn_stream_on(self, name: str) -> str:
        if not self._describe(name).get("StreamSpecification", {}).get("StreamEnabled"):
            specification = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
            self._dynamodb.update_table(TableName=name, StreamSpecification=specification)
            self._dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=WAIT)
        return str(self._describe(name)["LatestStreamArn"])

    def _find_newest_backup(self, source: str, backup_name: str | None) -> dict[str, Any]:
        pages = self._dynamodb.get_paginator("list_backups").paginate(TableName=source, BackupType="ALL")
        backups = [
            backup
            for page in pages
            for backup in page["BackupSummaries"]
            if backup["BackupStatus"] == "AVAILABLE" and backup_name in (None, backup["BackupName"])
        ]
        if not backups:
            named = f" named {backup_name}" if backup_name else ""
            raise click.ClickException(f"There is no backup{named} of {source}. Restore an instant with --at.")
        return dict(max(backups, key=lambda backup: backup["BackupCreationDateTime"]))

    def _describe(self, name: str) -> dict[str, Any]:
        return dict(self._dynamodb.describe_table(TableName=name)["Table"])

    def _find_table(self, name: str) -> dict[str, Any] | None:
        try:
            return self._describe(name)
        except self._dynamodb.exceptions.ResourceNotFoundException:
            return None


def stop_executions(location: StackLocation) -> int:
    """Stop each execution of the workflow that runs, and return how many did. The recovery goes on with their turns."""
    from botocore.config import Config

    from fermata.turns.recover.recover_turn import TABLES_RESTORED_NAME

    machine = read_stack_outputs(location)["TurnMachineArn"]
    patient = Config(retries={"mode": "adaptive", "max_attempts": 10})  # AWS allows 25 or more a second
    workflow = location.create_client("stepfunctions", patient)
    pages = workflow.get_paginator("list_executions").paginate(stateMachineArn=machine, statusFilter="RUNNING")
    running = [execution["executionArn"] for page in pages for execution in page["executions"]]
    for execution in running:
        workflow.stop_execution(executionArn=execution, error=TABLES_RESTORED_NAME)
    return len(running)
