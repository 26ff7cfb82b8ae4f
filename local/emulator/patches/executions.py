"""Step Functions executions start at once and once, end once, and take their open token with them.

Stock MiniStack waits 150 ms before the first state, refuses to start what already runs under the same name and input,
lets a stopped execution's task answer it into FAILED, and ignores the machine's own TimeoutSeconds.
"""

import json
import math
import time
from typing import Any

from ministack.services import stepfunctions as states

from local.emulator.patches import task_tokens
from local.emulator.patches.registry import Function, patch_function, patch_line, pin_functions
from local.emulator.patches.task_tokens import Json

pin_functions(
    states,
    _emit_execution_status_event="9c89e45693e3",
    _resolve_state_machine_arn="e054a309ee54",
    _execute_task="53c818d247db",
)

patch_line(states, "_run_execution", "996dff84e0e0", "    time.sleep(0.15)\n", "")


def is_running(execution: Json) -> bool:
    return bool(execution["status"] == "RUNNING")


def execution_deadline(execution: Json) -> float:
    """When the machine's TimeoutSeconds end this execution, on the monotonic clock."""
    return float(execution.get("deadline", math.inf))


@patch_function(states, "_start_execution", "9923282fc76c")
def start_execution(stock: Function, data: Json) -> Any:
    """The same name and input while it runs is the same execution; otherwise a used name is refused."""
    machine = states._resolve_state_machine_arn(data.get("stateMachineArn", ""))
    if machine and data.get("name"):
        arn = f"{machine.replace(':stateMachine:', ':execution:')}:{data['name']}"
        execution = states._executions.get(arn)
        if execution and is_running(execution) and execution["input"] == data.get("input", "{}"):
            return states.json_response({"executionArn": arn, "startDate": execution["startDate"]})
    if len(data.get("input", "")) > task_tokens.MAX_PAYLOAD_BYTES:
        return states.error_response_json("InvalidExecutionInput", "The input is larger than 256 KiB", 400)
    return stock(data)


@patch_function(states, "_run_execution", "996dff84e0e0")
def run_execution(stock: Function, arn: str) -> None:
    execution = states._executions.get(arn)
    machine = states._state_machines.get(execution["stateMachineArn"]) if execution else None
    limit = json.loads(machine["definition"]).get("TimeoutSeconds") if machine else None
    if limit is not None:
        execution["deadline"] = time.monotonic() + limit
    stock(arn)


@patch_function(states, "_stop_execution", "44d2d84ccd5c")
def stop_execution(stock: Function, data: Json) -> Any:
    response = stock(data)
    execution = states._executions.get(data.get("executionArn"))
    if execution and not is_running(execution):
        task_tokens.stop_attempts(execution)
    return response


@patch_function(states, "_fail_execution", "e6da895fa0b7")
def fail_execution(stock: Function, execution: Json, error: str, cause: str) -> None:
    """What a task comes to after its execution was stopped or timed out changes nothing any more."""
    if is_running(execution):
        stock(execution, error, cause)


def time_out_execution(execution: Json) -> None:
    execution["status"] = "TIMED_OUT"
    execution["stopDate"] = states.now_iso()
    states._add_event(execution, "ExecutionTimedOut", {"executionTimedOutEventDetails": {}})
    states._emit_execution_status_event(execution)
