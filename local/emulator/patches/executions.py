"""Patch Step Functions: how executions start, stop and time out.

Unpatched MiniStack waits 150 ms before the first state, refuses to start a running execution again with the same name
and input, lets a task of a stopped execution turn it into FAILED, and ignores the machine's own TimeoutSeconds.
"""

import json
import math
import time
from typing import Any

from ministack.services import stepfunctions

from local.emulator.patches import task_tokens
from local.emulator.patches.registry import Function, patch_function, patch_line, pin_functions
from local.emulator.patches.task_tokens import Json

pin_functions(
    stepfunctions,
    _emit_execution_status_event="9c89e45693e3",
    _resolve_state_machine_arn="e054a309ee54",
    _execute_task="53c818d247db",
)

patch_line(stepfunctions, "_run_execution", "996dff84e0e0", "    time.sleep(0.15)\n", "")


def is_running(execution: Json) -> bool:
    return bool(execution["status"] == "RUNNING")


def execution_deadline(execution: Json) -> float:
    """Get when the machine's TimeoutSeconds end this execution, on the monotonic clock."""
    return float(execution.get("deadline", math.inf))


@patch_function(stepfunctions, "_start_execution", "9923282fc76c")
def start_execution(original: Function, data: Json) -> Any:
    """Start an execution, or return the running one of the same name and input. Any other used name is refused."""
    machine = stepfunctions._resolve_state_machine_arn(data.get("stateMachineArn", ""))
    if machine and data.get("name"):
        arn = f"{machine.replace(':stateMachine:', ':execution:')}:{data['name']}"
        execution = stepfunctions._executions.get(arn)
        if execution and is_running(execution) and execution["input"] == data.get("input", "{}"):
            return stepfunctions.json_response({"executionArn": arn, "startDate": execution["startDate"]})
    if len(data.get("input", "")) > task_tokens.MAX_PAYLOAD_BYTES:
        return stepfunctions.error_response_json("InvalidExecutionInput", "The input is larger than 256 KiB", 400)
    return original(data)


@patch_function(stepfunctions, "_run_execution", "996dff84e0e0")
def run_execution(original: Function, arn: str) -> None:
    execution = stepfunctions._executions.get(arn)
    machine = stepfunctions._state_machines.get(execution["stateMachineArn"]) if execution else None
    limit = json.loads(machine["definition"]).get("TimeoutSeconds") if machine else None
    if limit is not None:
        execution["deadline"] = time.monotonic() + limit
    original(arn)


@patch_function(stepfunctions, "_stop_execution", "44d2d84ccd5c")
def stop_execution(original: Function, data: Json) -> Any:
    response = original(data)
    execution = stepfunctions._executions.get(data.get("executionArn"))
    if execution and not is_running(execution):
        task_tokens.stop_attempts(execution)
    return response


@patch_function(stepfunctions, "_fail_execution", "e6da895fa0b7")
def fail_execution(original: Function, execution: Json, error: str, cause: str) -> None:
    """Fail an execution that still runs. One that was stopped or has timed out stays as it is."""
    if is_running(execution):
        original(execution, error, cause)


def time_out_execution(execution: Json) -> None:
    execution["status"] = "TIMED_OUT"
    execution["stopDate"] = stepfunctions.now_iso()
    stepfunctions._add_event(execution, "ExecutionTimedOut", {"executionTimedOutEventDetails": {}})
    stepfunctions._emit_execution_status_event(execution)
