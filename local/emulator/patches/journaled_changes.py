"""Patch DynamoDB and Step Functions: put each changed item, stream record and execution into the journal.

Unpatched MiniStack keeps changes in memory until a clean stop. All requests for items change them through two
functions, and all executions report each change of their status through one.
"""

from typing import Any

from ministack.core.arn import parse_arn
from ministack.services import dynamodb, stepfunctions

from local.emulator.journal import Change, change_journal
from local.emulator.patches.registry import Function, patch_function, pin_functions

Json = dict[str, Any]

pin_functions(stepfunctions, _restore_state="b94c49c3dd97")


@patch_function(dynamodb, "_set_item", "4e78ad492132")
def set_item(original: Function, table: Json, partition: str, sort: str, item: Json) -> Any:
    replaced_item = original(table, partition, sort, item)
    change_journal.append("item", table["TableArn"], partition, sort, item)
    return replaced_item


@patch_function(dynamodb, "_remove_item", "5cce50c99688")
def remove_item(original: Function, table: Json, partition: str, sort: str) -> Any:
    removed_item = original(table, partition, sort)
    if removed_item is not None:
        change_journal.append("item", table["TableArn"], partition, sort, None)
    return removed_item


@patch_function(dynamodb, "_emit_stream_event", "8568d0446f26")
def emit_stream_event(original: Function, table_name: str, *arguments: Any, **keywords: Any) -> None:
    """Emit the record of a change, and journal it when the table has a stream."""
    before = dynamodb._stream_records.get(table_name)
    newest_before = before[-1] if before else None
    original(table_name, *arguments, **keywords)
    records = dynamodb._stream_records.get(table_name)
    if records and records[-1] is not newest_before:
        change_journal.append("stream", dynamodb._tables[table_name]["TableArn"], records[-1])


@patch_function(stepfunctions, "_emit_execution_status_event", "9c89e45693e3")
def emit_execution_status(original: Function, execution: Json) -> None:
    change_journal.append("execution", execution["executionArn"], execution)
    original(execution)


def apply_change(change: Change) -> None:
    """Make a change of the journal again. Changes of a table that does not exist are left out."""
    kind, arn, *values = change
    spec = parse_arn(arn)
    scope = (spec.account_id, spec.region)
    if kind == "execution":
        stepfunctions._executions.set_scoped(*scope, arn, *values)
        return
    name = arn.rpartition("/")[2]
    table = dynamodb._tables.get_scoped(*scope, name)
    if table is None:
        return
    if kind == "item":
        _apply_item(table, *values)
    elif kind == "stream":
        dynamodb._stream_records._data.setdefault((*scope, name), []).extend(values)


def _apply_item(table: Json, partition: str, sort: str, item: Json | None) -> None:
    if item is None:
        dynamodb._remove_item(table, partition, sort)
    else:
        dynamodb._set_item(table, partition, sort, item)


def fail_running_executions() -> None:
    """Mark executions of the process before as failed, with `States.ServiceRestart`. None of them can go on."""
    stepfunctions._restore_state({"executions": {}})
